"""kw.nn.init: the moments and bounds of what is drawn, and its seeds."""

import math

import numpy as np
import pytest

import kernwright as kw

SHAPE = (64, 32, 3)  # fan_in 96, fan_out 192
DRAWS = {
    "normal": (lambda **k: kw.nn.init.normal(SHAPE, 1.0, 2.0, **k), 1.0, 2.0, None),
    "uniform": (lambda **k: kw.nn.init.uniform(SHAPE, -1, 3, **k), 1.0, 4 / math.sqrt(12), 3.0),
    "truncated": (lambda **k: kw.nn.init.truncated_normal(SHAPE, **k), 0.0, 0.8796, 2.0),
    "xavier_uniform": (
        lambda **k: kw.nn.init.xavier_uniform(SHAPE, 2.0, **k),
        *(0.0, 2 * math.sqrt(2 / 288), 2 * math.sqrt(6 / 288)),
    ),
    "xavier_normal": (
        lambda **k: kw.nn.init.xavier_normal(SHAPE, **k), 0.0, math.sqrt(2 / 288), None
    ),
    "kaiming_uniform": (
        lambda **k: kw.nn.init.kaiming_uniform(SHAPE, math.sqrt(5), **k),
        *(0.0, 1 / math.sqrt(3 * 96), 1 / math.sqrt(96)),
    ),
    "kaiming_normal": (
        lambda **k: kw.nn.init.kaiming_normal(SHAPE, mode="fan_out", nonlinearity="relu", **k),
        *(0.0, math.sqrt(2 / 192), None),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DRAWS)
def test_moments_bounds_and_seeds(name):
    draw, mean, std, bound = DRAWS[name]
    made = draw(seed=7).numpy().astype("float64")
    assert made.shape == SHAPE
    error = std / math.sqrt(made.size)
    assert abs(made.mean() - mean) < 5 * error and abs(made.std() - std) < 5 * error
    if bound is not None:
        assert np.abs(made).max() <= bound * (1 + 1e-6)
    np.testing.assert_array_equal(draw(seed=7).numpy(), draw(seed=7).numpy())
    assert (draw(seed=8).numpy() != draw(seed=7).numpy()).any()
    assert draw(seed=7, dtype="bfloat16").dtype == kw.bfloat16


@pytest.mark.parametrize("shape", [(5, 9), (9, 5), (6, 2, 3), (1, 1)])
def test_orthogonal(shape):
    made = kw.nn.init.orthogonal(shape, 2.0, dtype="float64", seed=3).numpy()
    matrix = made.reshape(shape[0], -1)
    rows, columns = matrix.shape
    product = matrix @ matrix.T if rows <= columns else matrix.T @ matrix
    np.testing.assert_allclose(product, 4 * np.eye(min(rows, columns)), atol=1e-12)
    assert made.shape == shape


def test_gains_are_those_of_torch():
    known = {"linear": 1.0, "sigmoid": 1.0, "tanh": 5 / 3, "relu": math.sqrt(2), "selu": 0.75}
    assert {name: kw.nn.init.gain(name) for name in known} == known
    assert kw.nn.init.gain("leaky_relu") == math.sqrt(2 / 1.0001)
    assert kw.nn.init.gain("leaky_relu", 1) == 1.0


def test_what_is_refused():
    with pytest.raises(kw.InvalidArgument, match="two axes at least"):
        kw.nn.init.xavier_uniform(5)
    with pytest.raises(kw.InvalidArgument, match="two axes at least"):
        kw.nn.init.orthogonal(5)
    with pytest.raises(kw.InvalidArgument, match="no weights"):
        kw.nn.init.kaiming_normal((3, 0))
    with pytest.raises(kw.ArgumentError, match='mode is "fan_in" or "fan_out"'):
        kw.nn.init.kaiming_normal((3, 3), mode="fan")
    with pytest.raises(kw.ArgumentError, match="nonlinearity is one of"):
        kw.nn.init.gain("swish")
