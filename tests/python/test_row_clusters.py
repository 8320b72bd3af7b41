"""Softmax and norms of long rows that the blocks of a cluster share, against NumPy in float64."""

import ml_dtypes
import numpy as np
import pytest
from hopper import hopper_alone, run_at_9_0, simulated_elsewhere

import kernwright as kw
from kernwright import nn

TOLERANCES = {"bfloat16": 8e-3, "float32": 3e-6, "float64": 1e-13}
# Clusters of 8, 4 and 2 blocks; the last block of a cluster may have less than the others. 40 rows
# are few, 70 are longer than registers of a block hold.
SHAPES = [((40, 17988), "float32"), ((40, 17000), "bfloat16"), ((70, 33000), "bfloat16"),
          ((17, 17408), "float64")]  # fmt: skip


def random(shape, dtype="float32", seed=0):
    values = np.random.default_rng(seed).normal(size=shape) * 2
    return values.astype(getattr(ml_dtypes, dtype, dtype))


def kernels_of(function):
    """The names of the kernels of a call."""
    graph, stream = kw.Graph(), kw.Stream()
    with graph.capture(stream):
        function()
    return [node.name for node in graph.nodes if node.name]


def softmax_of(x, mask=None):
    s = np.asarray(x, np.float64)
    s = s if mask is None else np.where(mask, s, -np.inf)
    with np.errstate(all="ignore"):
        power = np.exp(s - s.max(-1, keepdims=True))
        return power / power.sum(-1, keepdims=True)


def close(result, expected, tolerance):
    values = np.asarray(result.numpy(), np.float64)
    assert np.linalg.norm(values - expected) <= tolerance * np.linalg.norm(expected)


@hopper_alone
@pytest.mark.parametrize(("shape", "dtype"), SHAPES)
def test_softmax(shape, dtype):
    x = random(shape, dtype)
    mask = np.arange(shape[1]) % 3 > 0
    array = kw.asarray(x)
    close(nn.softmax(array), softmax_of(x), TOLERANCES[dtype])
    close(nn.log_softmax(array), np.log(softmax_of(x)), TOLERANCES[dtype])
    close(nn.softmax(array, mask=kw.asarray(mask)), softmax_of(x, mask), TOLERANCES[dtype])
    if dtype != "bfloat16" or shape[0] == 40:
        assert any("softmax_cluster" in name for name in kernels_of(lambda: nn.softmax(array)))


@hopper_alone
@pytest.mark.parametrize(("shape", "dtype"), SHAPES)
def test_norms(shape, dtype):
    x, weight, bias = random(shape, dtype), random(shape[1], dtype, 1), random(shape[1], dtype, 2)
    residual = random(shape, dtype, 3)
    total = (np.asarray(x, np.float64) + np.asarray(residual, np.float64)).astype(x.dtype)
    y, s = nn.rms_norm(kw.asarray(x), kw.asarray(weight), residual=kw.asarray(residual))
    assert (s.numpy() == total).all()
    wide = np.asarray(total, np.float64)
    divisor = np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-6)
    close(y, wide / divisor * np.asarray(weight, np.float64), TOLERANCES[dtype])
    array = kw.asarray(x + np.asarray(5, x.dtype))
    wide = np.asarray(array.numpy(), np.float64)
    wide = wide - wide.mean(-1, keepdims=True)
    expected = wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-5)
    close(nn.layer_norm(array, kw.asarray(weight), kw.asarray(bias)),
          expected * np.asarray(weight, np.float64) + np.asarray(bias, np.float64),
          2 * TOLERANCES[dtype])  # fmt: skip
    assert any("norm_cluster" in name for name in kernels_of(lambda: nn.layer_norm(array)))


@hopper_alone
def test_groups_of_channels():
    x, weight = random((5, 32, 20, 40)), random(32, seed=1)
    y = nn.group_norm(kw.asarray(np.repeat(x, 5, 3)), 8, kw.asarray(weight))
    wide = np.repeat(x, 5, 3).astype(np.float64).reshape(5, 8, -1)
    wide = wide - wide.mean(-1, keepdims=True)
    wide = wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-5)
    close(y, wide.reshape(y.shape) * weight[:, None, None], 3e-6)


@hopper_alone
def test_special_values():
    inf, nan, n = np.inf, np.nan, 18000
    x = random((40, n))
    x[0] = -inf
    x[1, : n - 1] = -inf
    x[2, 3] = inf
    x[3, n - 2] = nan
    x[4, : n // 2] = -inf  # whole blocks have no finite element
    x[4, n // 2 :] -= 2000
    x[5] = np.where(np.arange(n) % 2, 3e38, -3e38)
    x[6, : n // 2] += 2000
    with np.errstate(all="ignore"):
        expected = softmax_of(x)
    result = nn.softmax(kw.asarray(x)).numpy()
    np.testing.assert_allclose(result, expected, rtol=2e-5, atol=1e-7)
    nothing = np.zeros((40, n), bool)
    nothing[1, n - 1] = True
    hidden = nn.softmax(kw.asarray(random((40, n))), mask=kw.asarray(nothing)).numpy()
    np.testing.assert_array_equal(hidden, nothing.astype(np.float32))


@hopper_alone
def test_views_and_the_same_result_each_time():
    x = random((40, 3 * 18000))
    view = kw.asarray(x)[:, 18000:36000]
    first = nn.softmax(view)
    close(first, softmax_of(x[:, 18000:36000]), 3e-6)
    assert (nn.softmax(view).numpy() == first.numpy()).all()
    odd = kw.asarray(x)[:, 1:18002]
    close(nn.softmax(odd), softmax_of(x[:, 1:18002]), 3e-6)


@hopper_alone
def test_under_all_checks(sim):
    x, weight = kw.asarray(random((34, 16400))), kw.asarray(random(16400, seed=1))
    with kw.checks("memory", "init", "race", "sync") as report:
        nn.softmax(x)
        nn.layer_norm(x, weight)
        kw.current_device().synchronize()
    assert not report.findings


@simulated_elsewhere
def test_clusters_on_a_device_of_9_0():
    run_at_9_0(__file__)
