"""What a recording knows: arrays by identity, while they live; and what recording costs."""

import gc
import operator
import sys
import threading

import numpy as np
import pytest

import kernwright as kw
from kernwright import _core
from kernwright._grad.recording import is_traced, note, recorded


def test_a_dead_array_leaves_no_place_to_the_next_one_with_its_identity():
    x = kw.ones(2)
    with recorded() as recording:
        recording.add_leaf(x)
        for _ in range(50):
            y = x + 1
            assert is_traced(y)
            del y
            z = kw.zeros(2)
            assert not is_traced(z) and not is_traced(z + 1)
        held = [x + 1]
        other = threading.Thread(target=held.clear)  # it dies in a thread that records nothing
        other.start()
        other.join()
        assert not any(is_traced(kw.zeros(2)) for _ in range(50))
        assert is_traced(x) and recording.place(x)[0].name == "an argument"
    assert recording.place(x) is None


def test_nodes_tell_the_operation_and_outlines_of_results():
    x = kw.ones((2, 3))
    with recorded() as recording:
        leaf = recording.add_leaf(x)
        y = x * 2
        node, number = recording.place(y)
        ((operand, place, pull),) = node.edges
        assert (node.name, node.size, number, node.joint) == ("multiply", 1, 0, None)
        assert operand is leaf and place == 0 and node.order > leaf.order
        assert pull(kw.ones((2, 3))).numpy().tolist() == [[2, 2, 2], [2, 2, 2]]
        outline = node.outline(0)
        assert outline.shape == (2, 3) and outline.dtype == np.float32 and outline.ptr == 0
        assert node.fits(0, x) and not node.fits(0, x.T) and not node.fits(0, x.astype("float16"))
        with pytest.raises(IndexError, match="no result 1: it has 1"):
            node.outline(1)
        _, largest = kw.topk(x, 1)
        assert recording.place(largest) is None
        norm = recording.place(kw.nn.rms_norm(x, kw.ones(3)))[0]
        assert norm.joint is not None and [i for *_, i in norm.edges] == [0]


def test_a_long_chain_is_released_without_recursion():
    depth = 40_000

    def sums(x):
        for _ in range(depth):
            x = x + 1
        return x

    def squares(x):  # each node holds the array before it, which had a node of its own
        for _ in range(depth):
            x = x * x
        return x

    for chain in (sums, squares):
        y, back = kw.vjp(chain, kw.ones(0))
        del y, back
    _, back = kw.vjp(lambda x: sums(x).sum(), kw.ones(0))
    assert back(kw.ones(()))[0].shape == (0,)


def test_a_cycle_through_a_recording_is_collected():
    x = kw.ones(1000)
    gc.collect()
    before = kw.memory.stats()["used"]
    cycle = []
    y, back = kw.vjp(lambda x: kw.exp(x) * kw.sin(x), x)
    cycle += [cycle, back]
    del y, back, cycle
    gc.collect()
    assert kw.memory.stats()["used"] == before


def test_options_go_to_handlers_by_position_and_by_name():
    x = kw.asarray(np.arange(6.0).reshape(2, 3))
    for call in (
        lambda x, to: x.sum(0, None, to),
        lambda x, to: x.sum(axis=0, out=to),
        lambda x, to: kw.sum(x, axis=[0], out=to),
        lambda x, to: kw.exp(x[0], out=to),
        lambda x, to: kw.nn.softmax(x[0], out=to),
        lambda x, to: kw.cumulative_sum(x[0], out=to),
    ):
        assert kw.gradcheck(lambda x, call=call: call(x, kw.zeros(3, "float64")), x)
    axes = [0]
    _, back = kw.vjp(lambda x: x.sum(axis=axes), x)
    axes[0] = 1
    assert back(kw.ones(3, "float64"))[0].numpy().tolist() == [[1, 1, 1]] * 2
    with pytest.raises(kw.ArgumentError, match="sum"):
        kw.grad(lambda x: x.sum(bogus=1))(x)


def test_indices_of_all_kinds():
    values = np.arange(12.0).reshape(3, 4)
    x = kw.asarray(values)
    weights = np.random.default_rng(0).normal(size=values.shape)
    mask = values % 2 == 0
    for key in (
        *(1, -1, np.int64(2), None, ..., slice(1, None, 2), (0, slice(None, None, -1))),
        *((..., None, 1), (np.int32(1), np.uint8(3)), np.array([2, 0, 2]), [0, 0], mask, True),
        (slice(None), np.array([1, 1])),
    ):
        cotangent = weights[key]
        y, back = kw.vjp(lambda x, key=key: x[key], x)
        expected = np.zeros_like(values)
        np.add.at(expected, key, cotangent)
        np.testing.assert_array_equal(y.numpy(), values[key])
        np.testing.assert_allclose(back(kw.asarray(cotangent))[0].numpy(), expected)


def test_a_rule_gives_pairs_and_a_result_is_an_array():
    x = kw.ones(2)
    with recorded() as recording:
        recording.add_leaf(x)
        with pytest.raises(kw.ArgumentError, match="pairs"):
            note("f", [(x, 1, 2)], kw.ones(2))
        with pytest.raises(kw.ArgumentError, match="arrays alone"):
            note("f", [(x, lambda g: g)], 1.5)
        with pytest.raises(TypeError, match="recording"):
            _core._set_recordings([x])
        assert is_traced(x)


@pytest.mark.parametrize("name", ["iadd", "isub", "imul", "itruediv", "ipow", "imod"])
def test_operators_in_place_are_those_that_make_an_array(name):
    rng = np.random.default_rng(0)
    x, w, row = (kw.asarray(rng.uniform(1, 2, shape)) for shape in ((2, 3), (2, 3), (3,)))
    apply, plain = getattr(operator, name), getattr(operator, name[1:])
    for other in (1.5, row, None):  # None: both sides have a gradient

        def changed(x, w, other=other):
            y = x * 1
            z = apply(y, w if other is None else other)
            assert z is y
            return (z * z).sum()

        def made(x, w, other=other):
            z = plain(x * 1, w if other is None else other)
            return (z * z).sum()

        one, two = (kw.value_and_grad(f, wrt=(0, 1))(x, w) for f in (changed, made))
        assert one[0].item() == two[0].item()
        for a, b in zip(one[1], two[1], strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12)


def test_an_operator_in_place_rounds_as_outside_of_a_recording():
    rng = np.random.default_rng(1)
    x, w = (kw.asarray(rng.normal(size=100).astype(np.float32)) for _ in range(2))
    for apply in (operator.iadd, operator.isub, operator.imul, operator.itruediv):
        outside = apply(x.astype("bfloat16"), w)
        inside, _ = kw.vjp(lambda x, f=apply: f(x.astype("bfloat16"), w), x)
        assert inside.dtype.name == "bfloat16" and (inside == outside).all()


def test_an_array_in_place_with_itself():
    x = kw.asarray([1.0, 2.0, -3.0])

    def doubled(x):
        y = x * 3
        y += y
        y *= y
        return y.sum()

    assert kw.grad(doubled)(x).numpy().tolist() == [72, 144, -216]


def test_a_list_that_contains_itself_is_told():
    cycle = []
    cycle.append(cycle)
    with recorded() as recording:
        recording.add_leaf(kw.ones(2))
        with pytest.raises(kw.InvalidArgument, match="asarray"):
            kw.asarray(cycle)


def python_calls(statement, names):
    """How many functions of Python a statement calls."""
    code, calls = compile(statement, "<statement>", "eval"), []
    gc.disable()  # it calls functions that other packages have given it
    sys.setprofile(lambda frame, event, arg: calls.append(event == "call"))
    try:
        eval(code, names)
    finally:
        sys.setprofile(None)
        gc.enable()
    return sum(calls)


@pytest.mark.parametrize(
    ("statement", "most"),
    [
        *((each, 1) for each in ("a + b", "a * 2", "-a", "a @ b", "a.T", "a.sum(axis=1)", "a[1:]")),
        *((each, 1) for each in ("a.reshape(4)", "kw.nn.linear(a, b)", "kw.nn.softmax(a)")),
        *((each, 2) for each in ("kw.exp(a)", "kw.maximum(a, b)", "kw.mean(a)", "kw.nn.silu(a)")),
        ("a > b", 0),
        ("c * c", 0),
    ],
)
def test_a_recorded_call_runs_no_function_of_python_but_its_rule(statement, most):
    names = {"kw": kw, "a": kw.ones((2, 2)), "b": kw.ones((2, 2)), "c": kw.ones(2)}
    eval(statement, names)  # imports happen once
    before = python_calls(statement, names)
    with recorded() as recording:
        recording.add_leaf(names["a"])
        recording.add_leaf(names["b"])
        assert python_calls(statement, names) - before <= most
        written = names["a"] + names["b"]
        written += names["a"]  # from here on operands are compared with what was written
        assert python_calls(statement, names) - before <= most
