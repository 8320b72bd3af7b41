"""The distributions of kw.random against SciPy's, and with arrays of parameters."""

import warnings

import numpy as np
import pytest
from scipy import stats

import kernwright as kw
from kernwright.errors import ArgumentError, InvalidArgument

N = 12_007
DEVICE_NAN = float("nan")


def wide(x):
    return x.numpy().astype(np.float64)


@pytest.mark.parametrize(
    ("name", "args", "options", "dtype", "expected"),
    [
        ("laplace", (), {"loc": 1.0, "scale": 2.0}, "float32", stats.laplace(1, 2)),
        ("logistic", (), {"loc": -3.0, "scale": 0.5}, "float64", stats.logistic(-3, 0.5)),
        ("gumbel", (), {"loc": 2.0, "scale": 3.0}, "float32", stats.gumbel_r(2, 3)),
        ("cauchy", (), {"loc": 1.0, "scale": 2.0}, "float32", stats.cauchy(1, 2)),
        ("lognormal", (), {"mean": 0.5, "std": 0.7}, "float64", stats.lognorm(0.7, 0, np.exp(0.5))),
        ("weibull", (1.7,), {"scale": 2.0}, "float32", stats.weibull_min(1.7, 0, 2)),
        ("pareto", (3.0,), {}, "float32", stats.lomax(3)),
        ("rayleigh", (), {"scale": 2.0}, "float32", stats.rayleigh(0, 2)),
        ("triangular", (-1.0, 0.0, 3.0), {}, "float32", stats.triang(0.25, -1, 4)),
        ("triangular", (2.0, 2.0, 5.0), {}, "float32", stats.triang(0, 2, 3)),
        ("standard_t", (2.5,), {}, "float32", stats.t(2.5)),
        ("chisquare", (0.6,), {}, "float64", stats.chi2(0.6)),
        ("beta", (0.3, 0.2), {}, "float64", stats.beta(0.3, 0.2)),
        ("beta", (40.0, 7.0), {}, "float32", stats.beta(40, 7)),
        ("truncated_normal", (), {"mean": 1.0, "std": 2.0, "low": 0.0, "high": 1.5}, "float32",
         stats.truncnorm(-0.5, 0.25, 1, 2)),
        ("truncated_normal", (), {"low": 8.0, "high": 9.0}, "float64", stats.truncnorm(8, 9)),
        ("truncated_normal", (), {"low": 40.0, "high": 40.05}, "float64",
         stats.truncnorm(40, 40.05)),
        ("truncated_normal", (), {"low": -np.inf, "high": -1e4}, "float64",
         stats.truncnorm(-np.inf, -1e4)),
    ],
)  # fmt: skip
def test_real_numbers(name, args, options, dtype, expected):
    x = getattr(kw.random, name)(*args, N, dtype, **options, seed=11)
    assert x.shape == (N,) and str(x.dtype) == dtype
    assert stats.kstest(wide(x), expected.cdf).pvalue > 1e-3


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("poisson", (0.3,), stats.poisson(0.3)),
        ("poisson", (9.9,), stats.poisson(9.9)),
        ("poisson", (10.0,), stats.poisson(10)),
        ("poisson", (250.0,), stats.poisson(250)),
        ("binomial", (7, 0.3), stats.binom(7, 0.3)),
        ("binomial", (60, 0.97), stats.binom(60, 0.97)),
        ("binomial", (500, 0.4), stats.binom(500, 0.4)),
        ("geometric", (0.2,), stats.geom(0.2)),
        ("negative_binomial", (2.5, 0.3), stats.nbinom(2.5, 0.3)),
        ("zipf", (2.2,), stats.zipf(2.2)),
    ],
)
def test_whole_numbers(name, args, expected):
    x = getattr(kw.random, name)(*args, N, seed=5)
    assert x.dtype == np.int64
    edges = np.unique(expected.ppf(np.linspace(0, 1, 25)[1:-1]))
    edges = edges[expected.sf(edges) > 0]
    got = np.histogram(x.numpy(), [-np.inf, *(edges + 0.5), np.inf])[0]
    chances = np.diff([0.0, *expected.cdf(edges), 1.0])
    assert stats.chisquare(got, chances * N).pvalue > 1e-3


def test_ends_of_whole_distributions():
    assert (kw.random.poisson(0.0, 9, seed=1).numpy() == 0).all()
    assert kw.random.binomial(9, kw.asarray([0.0, 1.0]), 2, seed=1).numpy().tolist() == [0, 9]
    assert (kw.random.binomial(0, 0.5, 9, seed=1).numpy() == 0).all()
    assert (kw.random.geometric(1.0, 9, seed=1).numpy() == 1).all()
    big = kw.random.poisson(1e15, 99, seed=1).numpy()
    assert abs(big / 1e15 - 1).max() < 1e-6
    assert kw.random.zipf(1.0001, 99, "int32", seed=1).numpy().max() == 2**31 - 1  # saturates


@pytest.mark.parametrize("name", ["uniform", "normal", "exponential", "gamma", "bernoulli"])
def test_arrays_of_parameters_draw_the_numbers_of_one_parameter(name):
    given = {
        "uniform": ({"low": -2.0, "high": 3.0}, "float16"),
        "normal": ({"mean": 1.0, "std": 2.0}, "float32"),
        "exponential": ({"scale": 3.0}, "float64"), "gamma": ({"alpha": 0.7}, "float32"),
        "bernoulli": ({"p": 0.3}, "bool"),
    }  # fmt: skip
    options, dtype = given[name]
    draw = getattr(kw.random, name)
    expected = draw(shape=301, dtype=dtype, **options, seed=3).numpy()
    spread = {key: np.full(301, value) for key, value in options.items()}
    assert np.array_equal(draw(shape=301, dtype=dtype, **spread, seed=3).numpy(), expected)
    onto = {key: kw.full((301, 1), value, dtype="float32") for key, value in options.items()}
    if name in ("gamma", "bernoulli", "exponential"):  # their float32 parameters are not exact
        onto = {key: value.astype("float64") * 0 + options[key] for key, value in onto.items()}
    got = draw(shape=(301, 1), dtype=dtype, **onto, seed=3).numpy()
    assert np.array_equal(got[:, 0], expected)


def test_integers_between_arrays():
    low, high = np.array([-5, 0, 2**62]), np.array([[-4, 7, 2**62 + 3]] * 400)
    x = kw.random.integers(low, high, seed=4).numpy()
    assert x.shape == (400, 3) and (x >= low).all() and (x < high).all()
    assert (x[:, 0] == -5).all() and len(np.unique(x[:, 1])) == 7
    same = kw.random.integers(-3, 9, 50, "int16", seed=4).numpy()
    arrays = kw.random.integers(kw.full(50, -3), 8, dtype="int16", endpoint=True, seed=4)
    assert np.array_equal(arrays.numpy(), same)


def test_parameters_that_broadcast():
    lam = np.array([1.0, 50.0, 900.0])
    x = kw.random.poisson(lam, (4000, 3), seed=2).numpy()
    assert np.allclose(x.mean(0), lam, rtol=0.1)
    assert kw.random.poisson(lam, seed=2).shape == (3,)
    assert kw.random.normal(mean=np.zeros((2, 1)), std=kw.ones(5), seed=1).shape == (2, 5)
    assert kw.random.laplace(loc=np.zeros((0, 3)), seed=1).shape == (0, 3)
    out = kw.zeros((3, 8))[:, ::2]
    assert kw.random.laplace(loc=kw.asarray([0.0, 1, 2, 3]), scale=0.0, out=out, seed=1) is out
    assert out.numpy().tolist() == [[0, 1, 2, 3]] * 3


def test_device_parameters_outside_their_range():
    bad = kw.asarray([-1.0, DEVICE_NAN])
    for name in ("exponential", "normal", "gumbel", "rayleigh"):
        option = "std" if name == "normal" else "scale"
        assert np.isnan(getattr(kw.random, name)(**{option: bad}, seed=1).numpy()).all()
    for name in ("gamma", "weibull", "pareto", "standard_t", "chisquare"):
        assert np.isnan(getattr(kw.random, name)(bad, seed=1).numpy()).all(), name
    for name in ("poisson", "geometric", "zipf"):
        assert getattr(kw.random, name)(bad, seed=1).numpy().tolist() == [-1, -1], name
    assert not kw.random.bernoulli(bad, seed=1).numpy().any()


def test_multinomial():
    p = np.array([0.1, 0.0, 0.6, 0.3, 0.0])
    x = kw.random.multinomial(200, p, 3000, seed=3).numpy()
    assert x.shape == (3000, 5) and x.dtype == np.int64 and (x.sum(-1) == 200).all()
    assert (x[:, [1, 4]] == 0).all() and np.allclose(x.mean(0), 200 * p, rtol=0.03)
    assert stats.kstest(x[:, 2] + np.random.default_rng(1).random(3000) - 0.5,
                        stats.norm(120, np.sqrt(48)).cdf).pvalue > 1e-4  # fmt: skip
    each = kw.random.multinomial(np.array([0, 5, 9]), [[0.5, 0.5]], seed=3).numpy()
    assert each.sum(-1).tolist() == [0, 5, 9]
    weights = kw.asarray([[2.0, 6.0], [0.0, 0.0], [-1.0, 2.0]])  # of the device: not checked
    got = kw.random.multinomial(8, weights, seed=3).numpy()
    assert got[0].sum() == 8 and (got[1:] == -1).all()
    assert kw.random.multinomial(4, [0.25], (0,), seed=1).shape == (0, 1)


def test_dirichlet():
    alpha = np.array([0.5, 2.0, 7.5])
    x = wide(kw.random.dirichlet(alpha, 5000, "float64", seed=9))
    assert np.allclose(x.sum(-1), 1) and np.allclose(x.mean(0), alpha / 10, atol=0.01)
    assert stats.kstest(x[:, 1], stats.beta(2, 8).cdf).pvalue > 1e-3
    tiny = wide(kw.random.dirichlet([1e-3] * 4, 200, seed=9))
    assert np.isfinite(tiny).all() and np.allclose(tiny.sum(-1), 1, atol=1e-5)


@pytest.mark.parametrize("method", ["eigh", "cholesky"])
def test_multivariate_normal(method):
    mean, root = np.array([1.0, -2.0, 0.0]), np.array([[2.0, 0, 0], [0.5, 1, 0], [-1, 0.3, 0.1]])
    cov = root @ root.T
    x = wide(kw.random.multivariate_normal(mean, cov, 6000, method=method, seed=2))
    assert np.allclose(x.mean(0), mean, atol=0.1) and np.allclose(np.cov(x.T), cov, atol=0.25)
    whitened = np.linalg.solve(root, (x - mean).T)[0]
    assert stats.kstest(whitened, "norm").pvalue > 1e-3
    if method == "eigh":
        flat = wide(kw.random.multivariate_normal([0, 0], [[1, 1], [1, 1]], 9, seed=2))
        assert np.allclose(flat[:, 0], flat[:, 1], atol=1e-5)


@pytest.mark.parametrize("method", ["eigh", "cholesky"])
def test_a_covariance_that_is_none(method):
    indefinite, skewed = [[1.0, 2.0], [2.0, 1.0]], [[1.0, 0.5], [0.0, 1.0]]
    several = np.stack([np.eye(2), indefinite])
    drawn = {}
    for cov in (indefinite, skewed, several, kw.asarray(indefinite)):
        args = ([0.0, 0.0], cov, (5, 2))
        if not isinstance(cov, kw.Array) and np.ndim(cov) == 2:
            with pytest.raises(ValueError):
                np.random.default_rng(1).multivariate_normal(*args[:2], check_valid="raise")
        with pytest.raises(kw.InvalidArgument, match="semi-definite"):
            kw.random.multivariate_normal(*args, method=method, check_valid="raise")
        with pytest.warns(RuntimeWarning, match="semi-definite"):
            drawn["warn"] = kw.random.multivariate_normal(*args, method=method, seed=4)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            drawn["ignore"] = kw.random.multivariate_normal(
                *args, method=method, seed=4, check_valid="ignore"
            )
        assert np.array_equal(wide(drawn["warn"]), wide(drawn["ignore"]), equal_nan=True)


def test_a_covariance_within_its_tolerance():
    nearly = [[1.0, 1.0 + 1e-6], [1.0 + 1e-6, 1.0]]
    r = kw.random.Generator(1)
    with pytest.raises(kw.InvalidArgument, match="within 1e-08"):
        r.multivariate_normal([0, 0], nearly, check_valid="raise")
    assert r.offset == 0  # nothing was drawn
    assert r.multivariate_normal([0, 0], nearly, check_valid="raise", tol=1e-5).shape == (2,)
    for definite in ([[2.0, 1.0], [1.0, 2.0]], [[1.0, 1.0], [1.0, 1.0]], [[0.0, 0], [0, 0]]):
        assert r.multivariate_normal([0, 0], definite, check_valid="raise").shape == (2,)
    with pytest.raises(kw.InvalidArgument, match="check_valid"):
        r.multivariate_normal([0, 0], nearly, check_valid="no")


def test_categorical():
    p = np.array([0.2, 0.5, 0.3])
    logits = kw.asarray(np.log(p)[:, None] + np.array([0.0, 30.0]), dtype="float32")
    x = kw.random.categorical(logits, (8000, 2), axis=0, seed=6).numpy()
    for column in x.T:
        assert stats.chisquare(np.bincount(column, minlength=3), p * 8000).pvalue > 1e-3
    assert kw.random.categorical(logits, axis=0, seed=6).shape == (2,)


def test_a_generator_goes_on_and_a_replay_draws_anew():
    generator = kw.random.Generator(5)
    first, second = generator.poisson(9.0, 100).numpy(), generator.poisson(9.0, 100).numpy()
    assert generator.offset == 200 and not np.array_equal(first, second)
    again = kw.random.Generator(5, offset=100).poisson(9.0, 100).numpy()
    assert np.array_equal(again, second)
    counted = kw.random.Generator(5, on_device=True)
    assert np.array_equal(counted.poisson(9.0, 100).numpy(), first)
    assert np.array_equal(counted.poisson(9.0, 100).numpy(), second)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda r: r.poisson(-1.0, 3), InvalidArgument, "lam lies between 0"),
        (lambda r: r.poisson([1.0, DEVICE_NAN]), InvalidArgument, "got nan"),
        (lambda r: r.poisson(1.0, 3, "float32"), InvalidArgument, "int32 or int64"),
        (lambda r: r.laplace(3, "int32"), InvalidArgument, "not int32"),
        (lambda r: r.binomial(2.5, 0.5), InvalidArgument, "n is a whole number"),
        (lambda r: r.binomial(3, 1.5), InvalidArgument, "p lies between 0 and 1"),
        (lambda r: r.geometric(0.0), InvalidArgument, "p is above 0"),
        (lambda r: r.zipf(1.0), InvalidArgument, "a is above 1"),
        (lambda r: r.laplace(3, scale="a"), ArgumentError, "scale is a number"),
        (lambda r: r.laplace(3, scale=1j), ArgumentError, "scale is a number"),
        (lambda r: r.laplace(3, loc=np.zeros(4)), InvalidArgument, "do not broadcast"),
        (lambda r: r.triangular(1, 0, 2), InvalidArgument, "left is at most mode"),
        (lambda r: r.uniform(low=[0.0, 2.0], high=1.0), InvalidArgument, "low is at most high"),
        (lambda r: r.integers([3], [3]), InvalidArgument, "low is below high"),
        (lambda r: r.multinomial(3, [0.9, 0.9, 0.1]), InvalidArgument, "more than 1"),
        (lambda r: r.multinomial(-3, [0.5, 0.5]), InvalidArgument, "n is a whole number"),
        (lambda r: r.dirichlet([1.0, 0.0]), InvalidArgument, "alpha is above 0"),
        (lambda r: r.multivariate_normal([0, 0], [[1.0]]), InvalidArgument, "cov is (..., 2, 2)"),
        (lambda r: r.categorical(2.0), InvalidArgument, "axis of categories"),
    ],
)  # fmt: skip
def test_wrong_calls(call, error, words):
    with pytest.raises(error) as caught:
        call(kw.random.Generator(1))
    assert words in str(caught.value)
