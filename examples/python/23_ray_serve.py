"""A model in replicas of Ray Serve: each has an engine of its own, on a device of its own, and
takes a share of the requests; texts come whole or as a stream.

The deployment is called by its handle, without HTTP. Without a GPU each replica has a simulated
device.
"""

import importlib.util
import logging
import pathlib

MODEL = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "tiny_llama"

for package in ("tokenizers", "jinja2", "ray", "grpc"):
    if importlib.util.find_spec(package) is None:
        print(f"nothing to show without {package}: pip install 'kernwright[llm,cluster]'")
        raise SystemExit(0)

import ray  # noqa: E402
from ray import serve  # noqa: E402

import kernwright as kw  # noqa: E402
from kernwright import llm  # noqa: E402

ROWS = 6  # requests of a replica at a time; others wait, or go to another one
GPUS = 0 if kw.current_device().is_simulated else 1  # of a replica


@serve.deployment(
    num_replicas=2, max_ongoing_requests=ROWS, ray_actor_options={"num_cpus": 1, "num_gpus": GPUS}
)
class Served:
    """An engine. Requests that come together run as one batch."""

    def __init__(self, path):
        self.engine = llm.Engine(llm.load(path), max_rows=ROWS)

    async def __call__(self, prompt, **options):
        made = await self.engine.submit(prompt, **options)
        return serve.get_replica_context().replica_id.unique_id, made.text

    async def stream(self, prompt, **options):
        async for piece in self.engine.submit(prompt, **options):
            yield piece.text

    def check_health(self):
        """Ray starts another replica in place of one that raises."""
        if not self.engine.healthy:
            raise RuntimeError("the engine has stopped")


logging.getLogger("ray.serve").setLevel(logging.ERROR)  # it tells each start otherwise
ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
serve.start(http_options={"location": "NoServer"}, logging_config={"log_level": "ERROR"})
try:
    handle = serve.run(Served.bind(str(MODEL)), route_prefix=None)
    prompts = [f"def f{i}(x):" for i in range(12)]
    answers = [handle.remote(prompt, max_tokens=8) for prompt in prompts]
    found = [answer.result(timeout_s=300) for answer in answers]
    print("replicas:", len({replica for replica, _ in found}))

    with llm.Engine(llm.load(MODEL), max_rows=ROWS) as engine:  # the same model, here
        alone = [engine.submit(prompt, max_tokens=8).result().text for prompt in prompts]
    assert [text for _, text in found] == alone
    stream = handle.options(stream=True).stream.remote(prompts[0], max_tokens=8)
    pieces = list(stream)
    assert "".join(pieces) == alone[0]
    print(len(pieces), "pieces:", repr("".join(pieces)))
finally:
    ray.shutdown()  # this program's own cluster ends, and the replicas in it
