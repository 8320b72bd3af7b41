"""Plans of kernels that no table changes: kw.tune.Plans, and kw.captured by itself."""

import json
import threading

import numpy as np
import pytest

import kernwright as kw
from kernwright import _core

rng = np.random.default_rng(3)
X = kw.asarray(rng.standard_normal((70, 300), dtype=np.float32))
W = kw.asarray(rng.standard_normal((68, 300), dtype=np.float32))
ONE, OTHER = ["fma", 64, 64, 8, 4, 8, 4, 2], ["fma", 64, 64, 8, 4, 8, 4, 1]


@pytest.fixture(autouse=True)
def no_table(tmp_path, monkeypatch):
    monkeypatch.setenv("KERNWRIGHT_KERNEL_CHOICES", str(tmp_path / "choices.json"))
    _core._use_launch_table(None)
    yield
    monkeypatch.undo()
    _core._use_launch_table(None)


def use(plan, values=None):
    """A table with this plan of the product, and a number of softmax()."""
    name = kw.current_device().name
    rows = {"70x68x300": plan}
    choices = {} if values is None else {"softmax.values": {"short/4": values}}
    _core._use_launch_table(json.dumps({
        "format": 1, "devices": {name: choices},
        "products": {name: {"float32.float32.float32.nt": rows}},
    }))  # fmt: skip


def plan():
    found = _core._product_plan(X, W.T)
    return found and [found[0], *found[1:8]]


def launches(call):
    """Names, grids and blocks of the kernels of a call."""
    graph = kw.Graph()
    with graph.capture():
        call()
    return [(node.name, node.grid, node.block) for node in graph.nodes]


def test_plans_stay_where_a_table_changes():
    use(ONE)
    plans = kw.tune.Plans()
    use(OTHER)
    assert plan() == OTHER
    with plans:
        assert plan() == ONE
        with plans, pytest.raises(ZeroDivisionError), kw.tune.Plans():
            assert plan() == ONE  # those of the block around it
            _ = 1 / 0
        use(None or [])
        assert plan() == ONE
    assert plan() is None
    with plans:
        assert plan() == ONE
    assert "Plans" in repr(plans)


def test_plans_are_those_of_a_thread():
    use(ONE)
    plans = kw.tune.Plans()
    use(OTHER)
    seen = []
    with plans:
        thread = threading.Thread(target=lambda: seen.append(plan()))
        thread.start()
        thread.join()
        assert plan() == ONE
    assert seen == [OTHER]


def test_a_capture_has_the_kernels_of_its_plans():
    def call():
        kw.nn.linear(X, W)
        kw.nn.softmax(X)

    use(ONE, 4)
    first = launches(call)
    plans = kw.tune.Plans()
    use(OTHER, 16)
    second = launches(call)
    assert first[0] != second[0] and first[-1] != second[-1]
    with plans:
        assert launches(call) == first
    assert launches(call) == second


def test_captured_keeps_the_plans_of_its_second_call():
    step = kw.captured(lambda x: kw.nn.linear(x, W))
    use(OTHER)
    step(X)
    use(ONE)
    wanted = step(X).numpy()
    first = launches(lambda: kw.nn.linear(X, W))
    use(OTHER)
    assert launches(lambda: kw.nn.linear(X, W)) != first
    np.testing.assert_array_equal(step(X).numpy(), wanted)
    (graph,) = step.graphs
    assert [(node.name, node.grid, node.block) for node in graph.nodes][-len(first) :] == first
    assert plan() == OTHER  # what is used outside
