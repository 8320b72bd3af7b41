"""attention(), decode_attention() and paged_attention() write to arrays of the caller.

All is compared with the same call without `out`, bit for bit. Where the simulated device is one of
8.0, the file runs once more on one of 9.0.
"""

from functools import partial

import numpy as np
import pytest
from hopper import HOPPER, run_at_9_0, simulated_elsewhere
from result_targets import (
    allocations,
    as_tuple,
    bits,
    by_columns,
    like,
    random,
    require_same_bits,
    require_wrong_kinds_refused,
    reversed_rows,
    shifted,
    spaced,
)

import kernwright as kw
from kernwright import nn
from kernwright.errors import ArgumentError, InvalidArgument


@simulated_elsewhere
def test_all_of_this_on_hopper():
    run_at_9_0(__file__)


def attend(dtype, dim=64, batches=2, queries=70, **options):
    q = random(batches, 2, queries, dim, dtype=dtype)
    k, v = (random(batches, 1, 90, dim, dtype=dtype, seed=each) for each in (1, 2))
    return partial(nn.attention, q, k, v, enable_gqa=True, **options)


def axes(*front):
    """Queries with other axes in front of (tokens, head_dim)."""
    q, k, v = (random(*front, 6, 16, seed=each) for each in range(3))
    return partial(nn.attention, q, k, v, return_lse=True)


def packed_sequences(dtype):
    q, k, v = (random(40, 2, 64, dtype=dtype, seed=each) for each in range(3))
    starts = kw.asarray([0, 17, 40], "int32")
    return partial(nn.attention, q, k, v, cu_seqlens_q=starts, cu_seqlens_k=starts, return_lse=True)


def decode(dtype, batches=2, **options):
    q = random(batches, 4, 1, 64, dtype=dtype)
    caches = [random(batches, 2, 96, 64, dtype=dtype, seed=each) for each in (1, 2)]
    lengths = kw.asarray(np.arange(70, 70 + batches), "int32")
    return partial(nn.decode_attention, q, *caches, lengths, **options)


def paged(dtype, **options):
    pages = [random(6, 16, 1, 64, dtype=dtype, seed=each) for each in (1, 2)]
    table, lengths = kw.asarray([[4, 1], [0, 3]], "int32"), kw.asarray([20, 7], "int32")
    starts = kw.asarray([0, 5, 6], "int32")
    q = random(6, 2, 64, dtype=dtype)
    return partial(nn.paged_attention, q, *pages, table, lengths, starts, **options)


def float8(queries, keys):
    q, k, v = (
        random(1, 1, count, 128, seed=count).astype("float8_e4m3fn")
        for count in (queries, keys, keys)
    )
    return partial(nn.attention, q, k, v, query_scale=0.5, return_lse=True)


# Blocks on Hopper count the parts of packed sequences that they take. Each launch on a simulated
# device has a counter of its own.
SHARES_COUNTERS = not HOPPER or not kw.current_device().is_simulated
# Each makes a call without `out`; True where it takes no memory with one. Blocks of float32 share
# keys, and put their parts into new memory.
CASES = {
    **{f"attention {each}": (partial(attend, each), each != "float32")
       for each in ("float16", "bfloat16", "float32")},
    "logarithms bfloat16": (lambda: attend("bfloat16", return_lse=True, is_causal=True), True),
    "logarithms float32": (lambda: attend("float32", queries=9, return_lse=True), False),
    "small heads": (lambda: attend("float16", dim=20, queries=9), True),
    "no batch": (lambda: axes(3), True),
    "five axes": (lambda: axes(2, 1, 3), True),
    "packed bfloat16": (partial(packed_sequences, "bfloat16"), SHARES_COUNTERS),
    "packed float32": (partial(packed_sequences, "float32"), True),
    **{f"decode {each}": (partial(decode, each, splits=1), True)
       for each in ("bfloat16", "float32")},
    "decode splits": (lambda: decode("float16", splits=3, return_lse=True), HOPPER),
    **{f"paged {each}": (partial(paged, each, return_lse=True), True)
       for each in ("bfloat16", "float32")},
    "float8": (lambda: float8(130, 520), False),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_result_has_the_bits_of_a_new_one(name):
    make, is_direct = CASES[name]
    call = make()
    expected = call()
    require_same_bits(call, expected)
    for layout in (spaced, reversed_rows, by_columns, shifted):
        require_same_bits(call, expected, layout)
    taken = allocations(partial(call, out=like(expected)))
    assert (taken == 0) == is_direct, taken


def tokens_first(shape, dtype):
    """(batch, heads, tokens, dim) as a view of (batch, tokens, heads, dim)."""
    batch, heads, tokens, dim = shape
    return kw.full((batch, tokens, heads, dim), 77, dtype=dtype).transpose(0, 2, 1, 3)


@pytest.mark.parametrize("batches", [1, 2])
@pytest.mark.parametrize("kind", [attend, decode])
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_tokens_in_front_of_heads(kind, dtype, batches):
    options = {"splits": 1} if kind is decode else {}
    call = kind(dtype, batches=batches, **options)
    expected = call()
    require_same_bits(call, expected, tokens_first)
    taken = [allocations(partial(call, out=like(expected, make))) for make in (None, tokens_first)]
    assert taken[1] == taken[0]


@pytest.mark.parametrize(
    "name", ["attention float16", "logarithms float32", "decode bfloat16", "paged float32"]
)
def test_arrays_that_do_not_fit_are_refused(name):
    call = CASES[name][0]()
    expected = call()
    one, rest = as_tuple(expected)[0], as_tuple(like(expected))[1:]

    def attempt(first):
        return call(out=(first, *rest) if rest else first)

    function = call.func.__name__
    with pytest.raises(InvalidArgument, match=rf"^{function} cannot write to out.*of shape"):
        attempt(kw.empty((*one.shape[:-1], one.shape[-1] + 1), one.dtype))
    require_wrong_kinds_refused(attempt, one)
    with pytest.raises(InvalidArgument, match="shares memory with query"):
        attempt(call.args[0])
    with pytest.raises(InvalidArgument, match=f"^{function}: scale is nan"):
        call(scale=float("nan"))


def test_logarithms():
    call = CASES["logarithms bfloat16"][0]()
    expected = call()
    lse = kw.empty_like(expected[1])
    made = call(out=(None, lse))
    assert made[1] is lse
    assert [bits(each) for each in made] == [bits(each) for each in expected]
    for wrong in (lse, (lse,), [None, lse]):
        with pytest.raises(ArgumentError, match="tuple of 2, for result, logarithms"):
            call(out=wrong)
    with pytest.raises(InvalidArgument, match="the out of logarithms"):
        call(out=(None, kw.empty((2, 2, 71))))
    with pytest.raises(InvalidArgument, match="shares memory with the out of logarithms"):
        shared = kw.empty(2 * 2 * 70 * 64)
        attend("float32", return_lse=True)(
            out=(shared.reshape(2, 2, 70, 64), shared[:280].reshape(2, 2, 70))
        )
    with pytest.raises(InvalidArgument, match="of shape"):  # the four axes that kernels have
        axes(3)(out=(kw.empty((1, 3, 6, 16)), None))


@pytest.mark.parametrize("shape", [(0, 2, 3, 16), (1, 2, 0, 16)])
def test_no_elements(shape):
    q, k = kw.empty(shape), kw.empty((*shape[:2], 4, 16))
    out = kw.empty(shape)
    assert nn.attention(q, k, k, out=out) is out


@pytest.mark.parametrize("name", ["attention float32", "logarithms float32", "no batch"])
def test_gradients(name):
    call = CASES[name][0]()
    q, rest = call.args[0], call.args[1:]
    out = like(call())

    def loss(q, out):
        made = as_tuple(call.func(q, *rest, **call.keywords, out=out))[0]
        return (made * random(*made.shape, seed=5)).sum()

    one, wanted = kw.value_and_grad(loss)(q, None)
    value, gradient = kw.value_and_grad(loss)(q, out)
    assert float(value) == float(one)
    assert bits(gradient) == bits(wanted)
    assert np.abs(gradient.numpy()).max() > 0


@pytest.mark.parametrize("name", ["decode float32", "paged float32"])
def test_constants_of_a_recording(name):
    call = CASES[name][0]()
    expected = call()
    out = like(expected)

    def loss(w):
        return (as_tuple(call(out=out))[0] * w).sum()

    gradient = kw.grad(loss)(kw.ones(()))
    assert float(gradient) == pytest.approx(float(as_tuple(expected)[0].sum()), rel=1e-4)
    assert bits(as_tuple(out)[0]) == bits(as_tuple(expected)[0])
    with pytest.raises(ArgumentError, match="has no gradient"):
        kw.grad(
            lambda q: as_tuple(call.func(q, *call.args[1:], **call.keywords, out=out))[0].sum()
        )(call.args[0])


@pytest.mark.parametrize("name", ["attention bfloat16", "packed float32", "decode bfloat16"])
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
    for each in as_tuple(out):
        each[...] = 0
    graph.launch()
    for given, wanted in zip(as_tuple(out), as_tuple(expected), strict=True):
        assert bits(given) == bits(wanted)
