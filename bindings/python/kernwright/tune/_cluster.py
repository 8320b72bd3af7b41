"""Cluster: compiles and devices of a Ray cluster for a session."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kernwright import _core, errors
from kernwright.errors import ArgumentError, Error, InvalidArgument, Timeout
from kernwright.tune._cluster_node import NodeLane, compile_plan, device_facts
from kernwright.tune._config import mapping

_SLICE = 0.05  # seconds between two looks whether a call is still wanted
_PATIENCE = 120.0  # seconds that a node may take beyond a call's own deadline: starts, restarts
_RETRIES = 3


def _ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise ArgumentError(
            "kw.tune.Cluster needs Ray: pip install 'kernwright[cluster]'"
        ) from error
    return ray


def _start(ray: Any) -> None:
    """A Ray of this machine alone. Its messages about its own defaults are no news here."""
    logger = logging.getLogger("ray")
    level = logger.level
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            ray.init(log_to_driver=False, include_dashboard=False, logging_level=logging.ERROR)
    finally:
        logger.setLevel(level)


def _raise(answer: tuple[str, str]) -> Any:
    kind = getattr(errors, answer[0], Error)
    raise kind(answer[1])


class Cluster:
    """Devices of a Ray cluster, where a session compiles and runs its trials.

    ::

        ray.init("auto")
        session = kw.tune.Session(kernel, space, args, grid=..., block=..., devices=Cluster(8))
        session.run()

    Each of `devices` is an actor with one GPU (by default one for each GPU of the cluster);
    compiles are tasks of one processor, `compiles` at once (by default the processors that the
    actors leave). The session's process keeps search, budget and journal; it must see a device of
    the same kind, which its results are for, and the nodes need this package. If a node is lost,
    its tasks run elsewhere, its actors start again, and their unfinished trials are repeated.
    `resources` are Ray's options for an actor, such as {"resources": {"H100": 1}}. A session uses
    the Ray that is started, or starts one of this machine; the actors end with the session. On the
    simulated device, `devices` is the number of processes.
    """

    def __init__(
        self,
        devices: int | None = None,
        *,
        compiles: int | None = None,
        resources: Mapping[str, Any] | None = None,
    ) -> None:
        self.devices = self._count("devices", devices)
        self.compiles = self._count("compiles", compiles)
        self.resources = dict(mapping(resources, "resources="))
        self._ray = _ray()

    @staticmethod
    def _count(name: str, value: Any) -> int | None:
        if value is None:
            return None
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise ArgumentError(f"{name}= is an int, got {type(value).__name__}")
        if value.__index__() < 1:
            raise InvalidArgument(f"{name}={value}: it must be at least 1")
        return int(value.__index__())

    def __repr__(self) -> str:
        return f"Cluster({self.devices}, compiles={self.compiles})"

    def _started(self) -> tuple[Any, int, int]:
        """Ray, started where it is not, with the devices and the compiles of a session."""
        ray = self._ray
        if not ray.is_initialized():
            _start(ray)
        total = ray.cluster_resources()
        simulated = _core.current_device().is_simulated
        gpus = 2 if simulated else int(total.get("GPU", 0))
        devices = gpus if self.devices is None else self.devices
        if not simulated and not 1 <= devices <= gpus:
            raise InvalidArgument(f"devices={devices}: the Ray cluster has {gpus} GPUs")
        left = int(total.get("CPU", 1)) - devices
        return ray, devices, max(left, 1) if self.compiles is None else self.compiles


class _Work:
    """A configuration on its way: its plan, and its code on the cluster."""

    def __init__(self, index: int, plan: tuple[Any, ...]) -> None:
        from kernwright._jit.kernels import _state

        program, name, *launch = plan
        self.index, self.name, self.launch = index, name, tuple(launch)
        self.state = _state(program)
        self.code: Any = None


class ClusterBackend:
    """The calls of _core's engine in its lanes' threads."""

    def __init__(
        self, cluster: Cluster, hooks: Any, lane: Mapping[str, Any], arch: str, kind: str
    ) -> None:
        """For one session. `hooks.plan(index)` tells what a configuration is; `lane` is what a
        NodeLane is made of."""
        ray, self.device_lanes, self.compile_lanes = cluster._started()
        self._ray, self._hooks = ray, hooks
        simulated = _core.current_device().is_simulated
        self.has_clock = not simulated
        self._arch, self._kind = arch, kind
        units = 0 if simulated else 1
        options: dict[str, Any] = {
            "num_cpus": units,
            "num_gpus": units,
            "max_restarts": -1,
            "max_task_retries": _RETRIES,
            **cluster.resources,
        }
        self._compile = ray.remote(num_cpus=1, max_retries=_RETRIES, num_returns=2)(compile_plan)
        node = ray.remote(**options)(NodeLane)
        # Within a list it is a reference still where it arrives. Each call has it, because an actor
        # that Ray starts again knows nothing.
        self._shared = [ray.put(dict(lane))]
        device = "sim" if simulated else ""
        self._start: Callable[[], Any] = lambda: node.remote(device)
        self._lanes = [self._start() for _ in range(self.device_lanes)]

    def check_devices(self, own: Mapping[str, Any]) -> None:
        """Throws InvalidArgument where a node's device is of another kind than this process's."""
        for lane in self._lanes:
            facts = self._wait(lane.facts.remote(), _PATIENCE, lambda: False)
            if facts != own:
                raise InvalidArgument(
                    f"the cluster has a {facts}, the session's process a {dict(own)}: run the "
                    "session where it sees a device of the same kind"
                )

    def close(self) -> None:
        for lane in self._lanes:
            self._ray.kill(lane)
        self._lanes = []

    # -- called by the engine --------------------------------------------------------------------

    def plan(self, index: int) -> _Work:
        plan = self._hooks.plan(index)
        if isinstance(plan, str):
            raise InvalidArgument(plan)
        return _Work(index, plan)

    def compile(
        self, work: _Work, seconds: float | None, stopped: Callable[[], bool]
    ) -> tuple[str, str, float]:
        told, work.code = self._compile.remote(
            work.state, work.name, self._arch, self._kind, seconds
        )
        answer = self._wait(told, seconds, stopped)
        if len(answer) == 2:
            _raise(answer)
        code, lowered, taken = answer
        launch = f"{code} {lowered} {work.launch!r}"
        return code, hashlib.sha256(launch.encode()).hexdigest()[:32], taken

    def load(
        self, lane: int, work: _Work, seconds: float | None, stopped: Callable[[], bool]
    ) -> Any:
        return self._run(lane, work, "load", (), seconds, stopped)

    def verify(
        self, lane: int, work: _Work, launches: int, seconds: float | None,
        stopped: Callable[[], bool],
    ) -> Any:  # fmt: skip
        return self._run(lane, work, "verify", (launches,), seconds, stopped)

    def sample(
        self, lane: int, work: _Work, count: int, seconds: float | None,
        stopped: Callable[[], bool],
    ) -> Any:  # fmt: skip
        return self._run(lane, work, "sample", (count,), seconds, stopped)

    def _run(
        self, lane: int, work: _Work, stage: str, more: Sequence[Any], seconds: float | None,
        stopped: Callable[[], bool],
    ) -> Any:  # fmt: skip
        for attempt in range(_RETRIES + 1):
            call = self._lanes[lane].run.remote(
                self._shared, stage, work.index, work.name, work.launch, work.code, more, seconds
            )
            try:
                answer = self._wait(call, seconds, stopped)
            except self._ray.exceptions.RayActorError as error:
                # Beyond what Ray starts again by itself.
                if attempt == _RETRIES:
                    raise Error(
                        f"a node of the cluster was lost again and again: {error}"
                    ) from None
                self._ray.kill(self._lanes[lane])  # it may be out of reach alone, with its GPU
                self._lanes[lane] = self._start()
                continue
            kind, value = answer
            return value if kind == "" else _raise((kind, value))
        raise AssertionError("unreachable")

    def _wait(self, call: Any, seconds: float | None, stopped: Callable[[], bool]) -> Any:
        """The result of a call; Timeout when it takes much longer than it should."""
        end = None if seconds is None else time.monotonic() + seconds + _PATIENCE
        while True:
            ready, _ = self._ray.wait([call], timeout=_SLICE)
            if ready:
                return self._result(call)
            if stopped():
                self._cancel(call)
                from concurrent.futures import CancelledError

                raise CancelledError("the trial is not wanted any more")
            if end is not None and time.monotonic() > end:
                self._cancel(call)
                raise Timeout(f"no node of the cluster answered within {seconds} s")

    def _result(self, call: Any) -> Any:
        failures = self._ray.exceptions
        try:
            return self._ray.get(call)
        except (failures.RayActorError, failures.RayTaskError):
            raise  # a lane's; or what the caller's functions raised
        except failures.RayError as error:
            raise Error(f"the cluster lost a task for good: {error}") from None

    def _cancel(self, call: Any) -> None:
        # What is no task, but an actor's method, ends by its own deadline.
        with contextlib.suppress(ValueError, TypeError):
            self._ray.cancel(call)


def session_backend(
    cluster: Cluster, hooks: Any, settings: Mapping[str, Any], reference: _core.Kernel, parts: Any
) -> ClusterBackend:
    """The backend of a session: `parts` are its arguments and verifier, `reference` its kernel in
    the default configuration, whose code tells for what others are compiled."""
    major, minor = _core.current_device().compute_capability
    arch, kind = f"sm_{major}{minor}", "cubin"
    try:
        facts = reference._facts(None)
        arch, kind = facts["arch"], facts["kind"]
    except Error:
        pass  # the trial says so
    if _core.current_device().is_simulated:
        arch, kind = f"compute_{major}{minor}", "ptx"
    arguments, verifier = parts
    names = ("symbols", "checks", "policy", "energy", "run_timeout", "free_outputs")
    lane = {
        "arguments": arguments,
        "verifier": verifier,
        "settings": {name: settings[name] for name in names if name in settings},
    }
    made = ClusterBackend(cluster, hooks, lane, arch, kind)
    try:
        made.check_devices(device_facts())
    except BaseException:
        made.close()
        raise
    return made
