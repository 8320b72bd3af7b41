"""Functions of kw.nn that write their results to an array of the caller."""

from functools import partial

import numpy as np
import pytest
from children import run_child
from result_targets import (
    as_tuple,
    bits,
    like,
    random,
    require_captured,
    require_wrong_kinds_refused,
)

import kernwright as kw
from kernwright import nn
from kernwright.errors import ArgumentError, InvalidArgument


def turned(**options):
    cos, sin = nn.rope_tables(16, 8)
    k = None if options.pop("alone", False) else random(2, 5, 1, 8)
    return partial(nn.rope, random(2, 5, 3, 8), k, cos, sin, **options)


X, RESIDUAL = partial(random, 3, 40), partial(random, 3, 40, seed=1)
WEIGHT, CHANNELS = partial(random, 40, seed=2), partial(random, 2, 6, 5)
# Each makes a call without `out`.
CASES = {
    "rms_norm": lambda: partial(nn.rms_norm, X(), WEIGHT()),
    "rms_norm sum": lambda: partial(nn.rms_norm, X(), residual=RESIDUAL()),
    "rms_norm int8": lambda: partial(nn.rms_norm, X(), quantize="int8"),
    "rms_norm all": lambda: partial(nn.rms_norm, X(), residual=RESIDUAL(), quantize="int8"),
    "rms_norm long": lambda: partial(
        nn.rms_norm, random(1, 40000), residual=random(1, 40000, seed=1)
    ),
    "layer_norm": lambda: partial(nn.layer_norm, X(), WEIGHT(), WEIGHT()),
    "group_norm": lambda: partial(nn.group_norm, CHANNELS(), 3),
    "instance_norm": lambda: partial(nn.instance_norm, CHANNELS()),
    "l2_norm": lambda: partial(nn.l2_norm, X()),
    "l2_norm columns": lambda: partial(nn.l2_norm, X(), 0),
    "rope": turned,
    "rope alone": lambda: turned(alone=True, interleaved=True),
}


@pytest.mark.parametrize("name", CASES)
def test_the_result_has_the_bits_of_a_new_one(name):
    call = CASES[name]()
    expected = call()
    out = like(expected)
    got = call(out=out)
    for made, given, wanted in zip(as_tuple(got), as_tuple(out), as_tuple(expected), strict=True):
        assert made is given
        assert bits(given) == bits(wanted)


@pytest.mark.parametrize("name", CASES)
def test_arrays_that_do_not_fit_are_refused(name):
    call = CASES[name]()
    expected = call()
    rest = as_tuple(like(expected))[1:]

    def attempt(first):
        return call(out=(first, *rest) if rest else first)

    one = as_tuple(expected)[0]
    longer = (*one.shape[:-1], one.shape[-1] + 1)
    with pytest.raises(InvalidArgument, match=r"shape"):
        attempt(kw.empty(longer, one.dtype))
    require_wrong_kinds_refused(attempt, one)
    backwards = kw.empty(longer, one.dtype)[..., -2::-1]
    with pytest.raises(InvalidArgument, match=r"gaps|contiguous|side by side"):
        attempt(backwards)


@pytest.mark.parametrize("name", ["rms_norm", "rms_norm all", "group_norm", "l2_norm columns"])
def test_gaps_are_refused(name):
    call = CASES[name]()
    wanted = as_tuple(call())
    wide = [kw.empty((*each.shape[:-1], 2 * each.shape[-1]), each.dtype) for each in wanted]
    out = tuple(each[..., : each.shape[-1] // 2] for each in wide)
    with pytest.raises(InvalidArgument, match=r"gaps|contiguous"):
        call(out=out if len(out) > 1 else out[0])


def spread(shape, dtype):
    """Heads side by side, with gaps between them."""
    return kw.full((*shape[:-1], 2 * shape[-1]), 77, dtype=dtype)[..., : shape[-1]]


@pytest.mark.parametrize("name", ["rope", "rope alone"])
def test_strides(name):
    call = CASES[name]()
    expected = call()
    out = like(expected, spread)
    call(out=out)
    for given, wanted in zip(as_tuple(out), as_tuple(expected), strict=True):
        assert bits(given) == bits(wanted)


@pytest.mark.parametrize("name", ["rms_norm", "rms_norm long", "l2_norm", "l2_norm columns"])
def test_norms_in_place(name):
    call = CASES[name]()
    expected, x = as_tuple(call()), call.args[0]
    out = x if len(expected) == 1 else (x, call.keywords["residual"])
    call(out=out)
    for given, wanted in zip(as_tuple(out), expected, strict=True):
        assert bits(given) == bits(wanted)


def test_rope_in_place():
    call = turned()
    expected, out = call(), call.args[:2]
    call(out=out)
    for given, wanted in zip(out, expected, strict=True):
        assert bits(given) == bits(wanted)


def shifted(call):
    """Memory that begins 16 bytes behind the first argument's."""
    x = call.args[0]
    flat = kw.zeros(x.size + 16, x.dtype)
    step = 16 // x.itemsize
    first = flat[: x.size].reshape(x.shape)
    first[...] = x
    return partial(call.func, first, *call.args[1:], **call.keywords), flat[step : step + x.size]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("rms_norm", "shares memory with x; it may be x itself"),
        ("l2_norm columns", "shares memory with x"),
        ("rope alone", "shares memory with q; it may be q itself"),
    ],
)
def test_memory_of_arguments_is_refused(name, message):
    call, memory = shifted(CASES[name]())
    with pytest.raises(InvalidArgument, match=message):
        call(out=memory.reshape(call.args[0].shape))


def test_other_overlaps_are_refused():
    x, weight = X(), WEIGHT()
    with pytest.raises(InvalidArgument, match="shares memory with weight"):
        nn.rms_norm(x[:1], weight, out=weight.reshape(1, 40))
    with pytest.raises(InvalidArgument, match="shares memory with out"):
        out = kw.empty_like(x)
        nn.rms_norm(x, residual=RESIDUAL(), out=(out, out))
    with pytest.raises(InvalidArgument, match="shares memory with the out of k"):
        q, (cos, sin) = random(1, 2, 1, 8), nn.rope_tables(4, 8)
        nn.rope(q, random(1, 2, 1, 8), cos, sin, out=(kept := kw.empty_like(q), kept))
    with pytest.raises(InvalidArgument, match="multiple of 16 bytes"):
        nn.rms_norm(x, out=kw.empty(121)[1:].reshape(3, 40))
    with pytest.raises(ArgumentError, match="exclude each other"):
        turned(inplace=True)(out=like(turned()()))


def test_another_device_is_refused():
    done = run_child(
        """
        import kernwright as kw, pytest
        x, other = kw.ones((4, 8)), kw.empty((4, 8), device="sim:1")
        with pytest.raises(kw.errors.InvalidArgument, match="same device as the arguments"):
            kw.nn.rms_norm(x, out=other)
        print("refused")
        """,
        KERNWRIGHT_DEVICE="sim",
        KERNWRIGHT_SIM_DEVICES="2",
    )
    assert (done.code, done.out) == (0, "refused\n"), done.err


def test_tuples():
    call = CASES["rms_norm all"]()
    expected = call()
    total = kw.empty_like(expected[2])
    made = call(out=(None, None, total))
    assert made[2] is total
    assert [bits(each) for each in made] == [bits(each) for each in expected]
    for wrong in (total, (total,), [None, None, total]):
        with pytest.raises(ArgumentError, match="tuple of 3, for result, scales, sum"):
            call(out=wrong)


def test_no_elements():
    x = kw.empty((0, 40))
    out = kw.empty_like(x)
    assert nn.rms_norm(x, out=out) is out


GRADIENTS = [
    "rms_norm",
    "rms_norm sum",
    "layer_norm",
    "group_norm",
    "l2_norm",
    "rope",
    "rope alone",
]


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name):
    call = CASES[name]()
    out = like(call())
    x, rest = call.args[0], call.args[1:]

    def loss(x, out):
        made = as_tuple(call.func(x, *rest, **call.keywords, out=out))
        factor = random(*made[0].shape).astype(made[0].dtype)
        return (made[0] * factor).astype("float32").sum()

    one, wanted = kw.value_and_grad(loss)(x, None)
    value, gradient = kw.value_and_grad(loss)(x, out)
    assert float(value) == float(one)
    assert bits(gradient) == bits(wanted)
    assert np.abs(gradient.numpy().astype(np.float64)).max() > 0


def test_the_argument_of_a_gradient_is_not_overwritten():
    x = X()
    with pytest.raises(InvalidArgument, match="an argument that gradients are taken of"):
        kw.grad(lambda x: nn.rms_norm(x, out=x).sum())(x)


@pytest.mark.parametrize("name", ["rms_norm all", "rms_norm long", "l2_norm columns", "rope"])
def test_a_graph_writes_there_again(name):
    call = CASES[name]()
    expected = call()
    out = like(expected)
    call(out=out)
    graph = kw.Graph()
    with graph.capture():
        call(out=out)
    for each in as_tuple(out):
        each[...] = 0
    graph.launch()
    for given, wanted in zip(as_tuple(out), as_tuple(expected), strict=True):
        assert bits(given) == bits(wanted)


@pytest.mark.parametrize("name", ["rms_norm", "l2_norm", "rope alone"])
def test_captured_functions(name):
    call = CASES[name]()
    require_captured(call)


@pytest.mark.parametrize("name", ["rms_norm all", "layer_norm", "l2_norm", "rope", "rope alone"])
def test_no_memory_is_allocated(name):
    call = CASES[name]()
    out = like(call())
    call(out=out)
    before = kw.memory.stats()["allocations"]
    call(out=out)
    assert kw.memory.stats()["allocations"] == before
    call()
    assert kw.memory.stats()["allocations"] > before


def test_scratch_memory_comes_from_the_resource_in_use():
    call = CASES["l2_norm columns"]()
    out = like(call())
    workspace = kw.memory.PoolResource(kw.memory.DeviceResource())
    with kw.memory.use(workspace):
        call(out=out)
        reserved = workspace.stats()["driver_allocs"]
        for _ in range(3):
            call(out=out)
    assert reserved > 0
    assert workspace.stats()["driver_allocs"] == reserved
    assert bits(out) == bits(call())
