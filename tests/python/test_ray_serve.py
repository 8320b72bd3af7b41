"""The example of Ray Serve with threads in place of Ray's processes. `make ray-serve` runs it on a
real Ray of processes."""

import ast
import importlib.util
import pathlib
import runpy
import sys

import pytest
from ray_threads import Ray

EXAMPLE = pathlib.Path(__file__).parents[2] / "examples" / "python" / "23_ray_serve.py"


@pytest.fixture(scope="module")
def shown():
    """The stand-in that the example ran on, and what the example printed."""
    with pytest.MonkeyPatch.context() as patch:
        ray, lines = Ray(), []
        for name, module in ray.modules.items():
            patch.setitem(sys.modules, name, module)
        patch.setattr("builtins.print", lambda *words: lines.append(" ".join(map(str, words))))
        runpy.run_path(str(EXAMPLE))
    yield ray, lines
    for replica in ray.replicas:
        replica.instance.engine.close()


def test_replicas_answer_as_the_model_alone(shown):
    """The example itself compares the texts, and those of the stream."""
    ray, lines = shown
    assert lines[0] == "replicas: 2" and lines[1].startswith("8 pieces:") and len(lines) == 2
    (options,) = ray.deployments
    assert options["ray_actor_options"]["num_gpus"] == 0  # on the simulated device
    assert [each.calls for each in ray.replicas] == [7, 6]  # 12 texts and a stream
    assert all(each.most_running == 6 for each in ray.replicas)  # together, as one batch
    started = [each.instance.engine.stats()["started"] for each in ray.replicas]
    assert started == [7, 6]
    assert not ray.started and not any(each.thread.is_alive() for each in ray.replicas)


def test_a_replica_whose_engine_has_stopped_is_not_healthy(shown):
    instance = shown[0].replicas[1].instance
    instance.check_health()
    instance.engine.close()
    with pytest.raises(RuntimeError, match="stopped"):
        instance.check_health()


def test_ray_takes_the_options_of_the_example(shown):
    """By the sources of the Ray that is installed: to import its `serve` takes more packages."""
    folder = pathlib.Path(importlib.util.find_spec("ray").origin).parent
    places = {
        "ray.init": ("_private/worker.py", "init"),
        "serve.deployment": ("serve/api.py", "deployment"),
        "serve.start": ("serve/api.py", "start"),
        "serve.run": ("serve/api.py", "run"),
    }
    assert {name for name, _ in shown[0].calls} == set(places)
    for name, options in shown[0].calls:
        path, function = places[name]
        assert set(options) <= arguments(folder / path, function), name
    assert "stream" in arguments(folder / "serve/handle.py", "options")
    assert "timeout_s" in arguments(folder / "serve/handle.py", "result")


def arguments(path, function):
    """Of all functions of that name in a file."""
    tree = ast.parse(path.read_text())
    return {
        each.arg
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name == function
        for each in (*node.args.args, *node.args.kwonlyargs)
    }
