"""linear(), grouped_linear() and unpermute() write their results to an array of the caller.

All is compared with the same call without `out`, bit for bit. Where the simulated device is one of
8.0, the file runs once more on one of 9.0.
"""

from functools import partial

import numpy as np
import pytest
from hopper import HOPPER, run_at_9_0, simulated_elsewhere
from result_targets import (
    LAYOUTS,
    UNTOUCHED,
    allocations,
    bits,
    like,
    random,
    require_captured,
    require_same_bits,
    shifted,
    spaced,
)

import kernwright as kw
from kernwright import nn
from kernwright.errors import ArgumentError, InvalidArgument


@simulated_elsewhere
def test_all_of_this_on_hopper():
    run_at_9_0(__file__)


def layer(rows, dtype, n=24, k=64, **options):
    """rows of x in three axes."""
    x, weight = random(2, rows // 2, k, dtype=dtype), random(n, k, dtype=dtype)
    return partial(nn.linear, x, weight, random(n, dtype=dtype), **options)


def with_residual(rows, dtype, **options):
    residual = random(2, rows // 2, 24, dtype=dtype, seed=3)
    return layer(rows, dtype, residual=residual, **options)


def narrow():
    codes, scales = nn.quantize_rows(random(24, 64))
    return partial(nn.linear, random(6, 64, dtype="bfloat16"), codes, scale=scales)


def packed(rows, dtype):
    weight = nn.quant.pack(nn.quant.quantize(random(32, 256), "q8_0"), "q8_0")
    x, residual = random(rows, 256, dtype=dtype), random(rows, 32, dtype=dtype, seed=3)
    return partial(nn.linear, x, weight, activation="silu", residual=residual)


def groups(dtype, **options):
    x, weights = random(24, 64, dtype=dtype), random(3, 32, 64, dtype=dtype)
    offsets = kw.asarray([0, 5, 5, 24], "int32")
    return partial(nn.grouped_linear, x, weights, offsets, **options)


def groups_apart(dtype):
    x, weights = random(2, 8, 64, dtype=dtype), random(2, 32, 64, dtype=dtype)
    return partial(nn.grouped_linear, x, weights, counts=kw.asarray([8, 8], "int32"))


def sums(dtype, weighted=True):
    positions = kw.asarray([[0, 3], [4, -1], [2, 1]], "int32")
    weights = random(3, 2, dtype=dtype) if weighted else None
    return partial(nn.unpermute, random(5, 24, dtype=dtype), positions, weights)


def counts_no_tiles(dtype):
    """On 9.0 blocks take tiles of groups by a number in memory. A GPU keeps that memory for later
    calls; the simulated device allocates it for each."""
    return dtype == "float32" or not HOPPER or not kw.current_device().is_simulated


# Each makes a call without `out`; True where it takes no memory with one.
CASES = {
    **{f"few rows {each}": (partial(layer, 6, each, activation="silu"), True)
       for each in ("float16", "bfloat16", "float32")},
    **{f"residual {each}": (partial(with_residual, 6, each), True)
       for each in ("bfloat16", "float32")},
    "float32": (partial(layer, 40, "float32", activation="relu"), True),
    "float32 residual": (partial(with_residual, 40, "float32"), True),
    "tf32": (partial(layer, 40, "float32", precision="tf32"), True),
    "tiles": (lambda: layer(128, "float16", n=256), True),
    "steps": (lambda: layer(80, "bfloat16", activation="relu"), False),
    "float64": (lambda: layer(6, "float64"), False),
    "columns": (lambda: partial(nn.linear, random(6, 64), random(64, 24).mT), True),
    "one axis": (lambda: partial(nn.linear, random(64), random(24, 64)), True),
    "int8": (narrow, True),
    "packed": (lambda: packed(6, "bfloat16"), True),
    "packed float32": (lambda: packed(6, "float32"), False),
    "gate": (lambda: layer(6, "bfloat16", n=32, gate="silu"), HOPPER),
    "gate float32": (lambda: layer(6, "float32", n=32, gate="gelu"), False),
    **{f"groups {each}": (partial(groups, each, activation="relu"), counts_no_tiles(each))
       for each in ("float16", "float32")},
    "groups gate": (lambda: groups("bfloat16", gate="silu"), HOPPER),
    "groups gate float32": (lambda: groups("float32", gate="silu"), False),
    **{f"groups apart {each}": (partial(groups_apart, each), counts_no_tiles(each))
       for each in ("bfloat16", "float32")},
    **{f"unpermute {each}": (partial(sums, each), each == "float32")
       for each in ("float16", "bfloat16", "float32", "float64")},
    "unpermute alone": (lambda: sums("bfloat16", weighted=False), True),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_result_has_the_bits_of_a_new_one(name):
    make, is_direct = CASES[name]
    call = make()
    expected = call()
    require_same_bits(call, expected)
    for layout in LAYOUTS if expected.ndim > 1 else (shifted,):
        require_same_bits(call, expected, layout)
    taken = allocations(partial(call, out=like(expected)))
    assert (taken == 0) == is_direct, taken


@pytest.mark.parametrize(
    "name", ["few rows bfloat16", "float32", "groups float16", "unpermute alone"]
)
def test_gaps_keep_what_they_have(name):
    call = CASES[name][0]()
    expected = call()
    shape = (*expected.shape[:-1], 2 * expected.shape[-1])
    whole = kw.full(shape, UNTOUCHED, dtype=expected.dtype)
    call(out=whole[..., : expected.shape[-1]])
    assert (whole[..., expected.shape[-1] :].numpy() == UNTOUCHED).all()


@pytest.mark.parametrize(
    "name", ["few rows float32", "packed", "gate", "groups float32", "unpermute float32"]
)
def test_arrays_that_do_not_fit_are_refused(name):
    call = CASES[name][0]()
    one = call()
    with pytest.raises(InvalidArgument, match=r"cannot write to out.*of shape"):
        call(out=kw.empty((*one.shape[:-1], one.shape[-1] + 1), one.dtype))
    with pytest.raises(InvalidArgument, match=str(one.dtype)):
        call(out=kw.empty(one.shape, "uint8"))
    with pytest.raises(ArgumentError, match="array of a device"):
        call(out=np.empty(one.shape))
    with pytest.raises(InvalidArgument, match=r"read-only|several of its elements are one"):
        call(out=kw.broadcast_to(kw.zeros((), dtype=one.dtype), one.shape))


def test_memory_of_arguments_is_refused():
    memory = random(4096)
    x, weight = memory[: 6 * 64].reshape(6, 64), memory[1024 : 1024 + 24 * 64].reshape(24, 64)
    residual = memory[3000:3144].reshape(6, 24)
    for begin, name in ((16, "x"), (1040, "weight"), (2990, "residual; it may be residual itself")):
        with pytest.raises(InvalidArgument, match=f"shares memory with {name}"):
            nn.linear(x, weight, residual=residual, out=memory[begin : begin + 144].reshape(6, 24))
    with pytest.raises(
        InvalidArgument, match="shares memory with x; give an array that lies apart"
    ):
        nn.linear(x, random(64, 64), out=x)
    call = groups_apart("float32")
    with pytest.raises(InvalidArgument, match="shares memory with weights"):
        call(out=call.args[1].reshape(-1)[: 2 * 8 * 32].reshape(2, 8, 32))
    call = sums("float32")
    with pytest.raises(InvalidArgument, match="shares memory with rows"):
        call(out=call.args[0][:3])


@pytest.mark.parametrize(
    "name",
    ["residual bfloat16", "residual float32", "float32 residual", "packed", "packed float32"],
)
def test_the_residual_itself(name):
    call = CASES[name][0]()
    expected, residual = call(), call.keywords["residual"]
    assert call(out=residual) is residual
    assert bits(residual) == bits(expected)
    call = CASES[name][0]()
    wide = spaced(expected.shape, expected.dtype)
    wide[...] = call.keywords["residual"]
    call(residual=wide, out=wide)
    assert bits(wide) == bits(expected)


@pytest.mark.parametrize("rows", [0, 40])
def test_no_elements(rows):
    x, out = kw.empty((rows, 64)), kw.empty((rows, 0 if rows else 24))
    assert nn.linear(x, kw.empty((out.shape[1], 64)), out=out) is out
    filled = random(rows, 24)
    nn.linear(kw.empty((rows, 0)), kw.empty((24, 0)), random(24), activation="relu", out=filled)
    assert bits(filled) == bits(kw.broadcast_to(kw.maximum(random(24), 0), (rows, 24)).copy())


@pytest.mark.parametrize(
    "name",
    ["few rows float32", "float32 residual", "gate float32", "groups float32", "unpermute float32"],
)
def test_gradients(name):
    call = CASES[name][0]()
    x, rest = call.args[0], call.args[1:]
    out = like(call())

    def loss(x, out):
        made = call.func(x, *rest, **call.keywords, out=out)
        return (made * random(*made.shape, seed=5)).sum()

    one, wanted = kw.value_and_grad(loss)(x, None)
    value, gradient = kw.value_and_grad(loss)(x, out)
    assert float(value) == float(one)
    assert bits(gradient) == bits(wanted)
    assert np.abs(gradient.numpy()).max() > 0


def test_packed_weights_have_no_gradient():
    call = CASES["packed float32"][0]()
    out = like(call())
    with pytest.raises(ArgumentError, match="packed weights has no gradient"):
        kw.grad(lambda x: call.func(x, *call.args[1:], out=out).sum())(call.args[0])


@pytest.mark.parametrize(
    "name", ["few rows bfloat16", "float32 residual", "packed", "groups float32"]
)
def test_a_graph_takes_no_memory_and_writes_there_again(name):
    call = CASES[name][0]()
    expected = call()
    out = like(expected)
    call(out=out)
    graph = kw.Graph()
    before = kw.memory.stats()["allocations"]
    with graph.capture():
        call(out=out)
    assert kw.memory.stats()["allocations"] == before
    out[...] = 0
    graph.launch()
    assert bits(out) == bits(expected)


def test_captured_functions():
    call = CASES["few rows bfloat16"][0]()
    require_captured(call)
