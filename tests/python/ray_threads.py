"""Ray Serve with threads in place of the processes of replicas: as much of its public interface as
examples/python/23_ray_serve.py calls."""

import asyncio
import importlib.machinery
import threading
import types

_HERE = threading.local()


class Replica:
    """An instance of a deployment with a thread, as many of whose calls run as it may have."""

    def __init__(self, made, arguments, limit):
        self.calls, self.running, self.most_running = 0, 0, 0
        self._loop, self._limit = asyncio.new_event_loop(), asyncio.Semaphore(limit)
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()
        self.instance = self.begin(self._make(made, arguments)).result(120)

    def _run(self):
        _HERE.context = types.SimpleNamespace(
            replica_id=types.SimpleNamespace(unique_id=f"replica-{id(self)}")
        )
        self._loop.run_forever()
        self._loop.close()

    async def _make(self, made, arguments):
        return made(*arguments)

    def begin(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    async def call(self, method, arguments, options):
        async with self._limit:
            self.running += 1
            self.most_running = max(self.most_running, self.running)
            try:
                return await getattr(self.instance, method)(*arguments, **options)
            finally:
                self.running -= 1

    def end(self):
        self._loop.call_soon_threadsafe(self._loop.stop)
        self.thread.join(20)


class Response:
    def __init__(self, future):
        self._future = future

    def result(self, timeout_s=None):
        return self._future.result(timeout_s)


class Handle:
    """Calls take the replicas in turn."""

    def __init__(self, replicas, method="__call__", stream=False):
        self._replicas, self._method, self._stream = replicas, method, stream

    def options(self, *, stream):
        return Handle(self._replicas, self._method, stream)

    def __getattr__(self, method):
        return Handle(self._replicas, method, self._stream)

    def remote(self, *arguments, **options):
        replica = min(self._replicas, key=lambda each: each.calls)
        replica.calls += 1
        if self._stream:
            return self._items(replica, arguments, options)
        return Response(replica.begin(replica.call(self._method, arguments, options)))

    def _items(self, replica, arguments, options):
        items = getattr(replica.instance, self._method)(*arguments, **options)
        while True:
            try:
                yield replica.begin(anext(items)).result(120)
            except StopAsyncIteration:
                return


class Ray:
    """The modules of a stand-in, and what it was asked."""

    def __init__(self):
        self.started, self.deployments, self.replicas, self.calls = False, [], [], []
        self.serve = module("ray.serve")
        self.serve.deployment, self.serve.run = self._deployment, self._serve
        self.serve.start = self._record("serve.start")
        self.serve.get_replica_context = lambda: _HERE.context
        self.ray = module("ray")
        self.ray.serve, self.ray.init, self.ray.shutdown = self.serve, self._init, self._shutdown

    @property
    def modules(self):
        return {"ray": self.ray, "ray.serve": self.serve, "grpc": module("grpc")}

    def _record(self, name):
        return lambda **options: self.calls.append((name, options))

    def _init(self, **options):
        self.started = True
        self.calls.append(("ray.init", options))

    def _deployment(self, **options):
        self.deployments.append(options)
        self.calls.append(("serve.deployment", options))

        def decorate(made):
            def bind(*arguments):
                return made, arguments, options

            return types.SimpleNamespace(bind=bind)

        return decorate

    def _serve(self, application, **options):
        assert self.started
        self.calls.append(("serve.run", options))
        made, arguments, of_deployment = application
        for _ in range(of_deployment["num_replicas"]):
            limit = of_deployment["max_ongoing_requests"]
            self.replicas.append(Replica(made, arguments, limit))
            self.replicas[-1].instance.check_health()  # Ray calls it every some seconds
        return Handle(self.replicas)

    def _shutdown(self):
        self.started = False
        for replica in self.replicas:
            replica.end()


def module(name):
    made = types.ModuleType(name)
    made.__spec__ = importlib.machinery.ModuleSpec(name, None)
    return made
