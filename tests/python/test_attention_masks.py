"""Masks of large negative numbers in attention and its gradients: they are numbers, and only -inf
hides a key.

Where the simulated device is an older one, the tests run once more in a process of its own, whose
device is one of 9.0.
"""

import contextlib

import ml_dtypes
import numpy as np
import pytest
from attention_model import NORM, normal
from hopper import HOPPER, run_at_9_0, simulated_elsewhere

import kernwright as kw
from kernwright import _core

nn = kw.nn
LOWEST = float(np.finfo(np.float32).min)
LOWEST_BRAIN = float(ml_dtypes.finfo(ml_dtypes.bfloat16).min)
INF = float("inf")
# Pairs of values: those of the first half of a row's keys, and of the second half.
ROWS = [
    (LOWEST, LOWEST), (LOWEST, 0), (-INF, -INF), (LOWEST, -INF), (-1e9, -1e9), (-1e4, -1e4),
    (LOWEST_BRAIN, LOWEST), (-2e38, LOWEST), (-8e37, -9e37), (-1e30, -INF), (0, -1e9), (0, 1e4),
    (-65504, -65504),
]  # fmt: skip


@simulated_elsewhere
def test_on_a_simulated_device_of_9_0():
    run_at_9_0(__file__)


@pytest.fixture
def kernels():
    """The kernels for Hopper where there are some: else few queries take others."""
    force = "hopper" if HOPPER else "auto"
    with contextlib.ExitStack() as stack:
        plans = (_core._AttentionPlan, _core._AttentionBackwardPlan)
        yield lambda dtype: [
            stack.enter_context(plan(force if dtype != "float32" else "auto")) for plan in plans
        ]


def masks(queries, keys, dtype):
    """Every kind of row in turn, the halves of its keys taking turns too."""
    made = np.zeros((queries, keys), np.float32)
    for i in range(queries):
        first, second = ROWS[i % len(ROWS)]
        made[i] = np.where(np.arange(keys) % 4 < 2, first, second)
    with np.errstate(over="ignore"):
        return np.maximum(made, LOWEST if dtype == "float32" else -INF).astype(dtype)


def weights(q, k, mask, seen=True):
    """The scores are rounded to float32 with their mask; what follows is in float64."""
    q, k = (x.astype(np.float64) for x in (q, k))
    scores = (q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5).astype(np.float32)
    scores = np.where(seen, scores + mask.astype(np.float32), np.float32(-INF)).astype(np.float64)
    most = scores.max(-1, keepdims=True)
    base = np.where(np.isinf(most), 0, most)
    powers = np.exp(scores - base)
    total = powers.sum(-1, keepdims=True)
    with np.errstate(divide="ignore"):
        return powers / np.where(total == 0, 1, total), (base + np.log(total))[..., 0]


def assert_close(got, wanted, dtype, what):
    got = got.numpy().astype(np.float64)
    # Scores of 1e4 have errors of 1e-3 in float32.
    bound = max(4 * NORM[dtype], 2e-3)
    assert np.linalg.norm(got - wanted) <= bound * np.linalg.norm(wanted), what
    np.testing.assert_allclose(got, wanted, rtol=8 * bound, atol=8 * bound, err_msg=what)


def check(dtype, mask_dtype, queries, keys, dim, lengths=None):
    q, v = (normal(2, 1, n, dim, dtype=dtype, seed=n) for n in (queries, keys))
    k, dy = normal(2, 1, keys, dim, dtype=dtype), normal(2, 1, queries, dim, dtype=dtype, seed=9)
    mask = masks(queries, keys, mask_dtype)
    seen, more = True, {}
    if lengths is not None:
        seen = np.arange(keys) < np.reshape(lengths, (2, 1, 1, 1))
        more = {"lengths": kw.asarray(np.array(lengths, np.int32))}
    share, logarithms = weights(q, k, mask, seen)
    on_device = [kw.asarray(x) for x in (q, k, v)]
    options = {"attn_mask": kw.asarray(mask), **more}
    out, lse = nn.attention(*on_device, return_lse=True, **options)
    assert_close(out, share @ v.astype(np.float64), dtype, "result")
    finite = np.isfinite(logarithms)
    assert (np.isfinite(lse.numpy()) == finite).all()
    np.testing.assert_allclose(lse.numpy()[finite], logarithms[finite], rtol=1e-6, atol=1e-4)
    grads = nn.attention_backward(kw.asarray(dy), *on_device, out, lse, **options)
    q, k, v, dy = (x.astype(np.float64) for x in (q, k, v, dy))
    change = dy @ v.swapaxes(-1, -2)
    change = share * (change - (share * change).sum(-1, keepdims=True)) * dim**-0.5
    exact = (change @ k, change.swapaxes(-1, -2) @ q, share.swapaxes(-1, -2) @ dy)
    for name, ours, wanted in zip("qkv", grads, exact, strict=True):
        assert_close(ours, wanted, dtype, f"gradient of {name}")


@pytest.mark.parametrize(
    ("dtype", "mask_dtype"),
    [
        ("float32", "float32"), ("float16", "float32"), ("float16", "float16"),
        ("bfloat16", "bfloat16"),
    ],
)  # fmt: skip
def test_finite_masks_hide_nothing(kernels, dtype, mask_dtype):
    kernels(dtype)
    mask_dtype = ml_dtypes.bfloat16 if mask_dtype == "bfloat16" else np.dtype(mask_dtype)
    check(dtype, mask_dtype, 70, 90, 64)


def test_with_lengths(kernels):
    kernels("float16")
    check("float16", np.float32, 24, 90, 64, lengths=(90, 13))


def test_few_queries():
    """Where the context is shared by blocks."""
    check("float16", np.float32, 12, 600, 64)


def test_sinks_far_below():
    q, k, v = (normal(1, 2, 5, 16, seed=n) for n in range(3))
    sinks = np.array([LOWEST, -INF], np.float32)
    mask = np.full((5, 5), LOWEST, np.float32)
    arrays = [kw.asarray(x) for x in (q, k, v)]
    out = nn.attention(*arrays, attn_mask=kw.asarray(mask), sinks=kw.asarray(sinks)).numpy()
    sums = v.astype(np.float64).sum(2)
    # The first sink weighs as much as each of the five keys, the second nothing.
    np.testing.assert_allclose(out[0, 0], np.tile(sums[0, 0] / 6, (5, 1)), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(out[0, 1], np.tile(sums[0, 1] / 5, (5, 1)), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_rows_without_keys_beside_sinks(dtype):
    """They are 0, however small the sink, which is all of their logarithm."""
    q, k, v = (kw.asarray(normal(1, 3, 5, 16, dtype=dtype, seed=n)) for n in range(3))
    sinks = np.array([-200.0, 0.5, 200.0], np.float32)
    out, lse = nn.attention(
        q, k, v, sinks=kw.asarray(sinks), lengths=kw.asarray(np.zeros(1, np.int32)), return_lse=True
    )
    assert (out.numpy() == 0).all()
    np.testing.assert_allclose(lse.numpy()[0], np.tile(sinks[:, None], (1, 5)), rtol=1e-6)
