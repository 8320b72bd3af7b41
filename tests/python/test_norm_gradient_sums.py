"""Gradients of norms with another one added in their kernel, and summed for a bias behind it."""

import numpy as np
import pytest
from test_norms import DTYPES, close, gradients, random, wide

import kernwright as kw
from kernwright import _core

# Rows in warps, copied ahead, in two copies ahead, without room for sums, and read several times.
ROWS = [
    *(((70, 384), "bfloat16"), ((40, 768), "bfloat16"), ((9, 600), "float32")),
    *(((20, 4096), "bfloat16"), ((3, 7, 40), "float64"), ((2, 17000), "float32")),
    ((21, 512), "float32"),
]


@pytest.mark.parametrize("kind", ["layer", "rms"])
@pytest.mark.parametrize(("shape", "dtype"), ROWS)
def test_an_added_gradient_and_sums(shape, dtype, kind):
    x, dy, added = (random(shape, dtype, seed) for seed in (0, 3, 4))
    weight = random(shape[-1], dtype, 1)
    arrays = [kw.asarray(each) for each in (dy, x, weight)]
    eps = 1e-5
    dx, dweight, dbias, sums = _core._norm_backward(
        kind, *arrays, eps, kind == "layer", None, added=kw.asarray(added), columns=True
    )
    expected = gradients(kind, dy, x, weight, eps)
    whole = expected[0] + wide(added)
    tolerance = max(DTYPES[dtype], 1e-13) * (4 if dtype == "float32" else 1)
    close(dx, whole, tolerance)
    close(dweight, expected[1], tolerance)
    if kind == "layer":
        close(dbias, expected[2], tolerance)
    short = shape[-1] <= {2: 2048, 4: 512}.get(x.dtype.itemsize, 0)
    assert sums is not None or not short
    if sums is not None:
        assert sums.shape == (shape[-1],) and sums.dtype == x.dtype
        close(sums, whole.reshape(-1, shape[-1]).sum(0), 2 * tolerance)


def test_groups_take_another_gradient():
    x, dy, added = (random((2, 6, 9), seed=seed) for seed in range(3))
    weight = random(6)
    given = [kw.asarray(each) for each in (dy, x, weight)]
    dx, *plain = _core._norm_backward("layer", *given, 1e-5, True, 3)
    made, *others = _core._norm_backward(
        "layer", *given, 1e-5, True, 3, added=kw.asarray(added), columns=True
    )
    close(made, wide(dx.numpy()) + wide(added), 1e-6)
    assert others[2] is None
    for one, other in zip(plain[:2], others, strict=False):
        assert (one.numpy() == other.numpy()).all()


def test_strides_offsets_and_emptiness():
    x, dy = kw.asarray(random((8, 33))), kw.asarray(random((8, 33), seed=1))
    wide_added = kw.asarray(random((33, 16), seed=2))
    weight = kw.ones(33)
    for added in (wide_added[:, ::2].T, kw.asarray(random(8 * 33 + 1))[1:].reshape(8, 33)):
        expected = _core._norm_backward("rms", dy, x, weight, 1e-6, False, None)[0] + added
        made = _core._norm_backward("rms", dy, x, weight, 1e-6, False, None, added=added)[0]
        np.testing.assert_allclose(made.numpy(), expected.numpy(), rtol=1e-6, atol=1e-6)
    none = kw.zeros((0, 33))
    made = _core._norm_backward(
        "rms", none, none, weight, 1e-6, True, None, added=none, columns=True
    )
    assert made[0].shape == (0, 33) and made[3] is None
    for wrong in (kw.zeros((8, 32)), kw.zeros((8, 33), "float64")):
        with pytest.raises(kw.InvalidArgument, match="takes added and x of one shape and dtype"):
            _core._norm_backward("rms", dy, x, weight, 1e-6, False, None, added=wrong)


@pytest.mark.parametrize("shape", [(300, 384), (150, 768), (140, 4096)])
def test_all_checks(sim, shape):
    x, dy, added = (kw.asarray(random(shape, "bfloat16", seed)) for seed in (0, 3, 4))
    with kw.checks("memory", "init", "race", "sync") as report:
        _core._norm_backward("layer", dy, x, x[0], 1e-5, True, None, added=added, columns=True)
        kw.synchronize()
    assert not report.findings


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_wider_weights_without_a_bias(dtype, rows):
    """A lone block writes the gradient of a bias that nobody wants, in the weight's type."""
    x, dy = random((rows, 384), dtype), random((rows, 384), dtype, 3)
    weight = random(384, "float64", 1)
    arrays = [kw.asarray(each) for each in (dy, x, weight)]
    dx, dweight, dbias = kw.nn.layer_norm_backward(*arrays, bias=False)
    expected = gradients("layer", dy, x, weight, 1e-5)
    close(dx, expected[0], DTYPES[dtype])
    close(dweight, expected[1], 1e-5)
    assert dbias is None and dweight.dtype == "float64"
