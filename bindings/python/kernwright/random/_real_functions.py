"""The distributions of real numbers as functions: of a seed, or of the default generator."""

from __future__ import annotations

from typing import Any

from kernwright._core import Array
from kernwright.random._functions import source

__all__ = [
    "beta",
    "cauchy",
    "chisquare",
    "exponential",
    "gamma",
    "gumbel",
    "laplace",
    "logistic",
    "lognormal",
    "normal",
    "pareto",
    "rayleigh",
    "standard_t",
    "triangular",
    "truncated_normal",
    "uniform",
    "weibull",
]


def uniform(
    shape: Any = (), dtype: Any = None, *, low: Any = 0.0, high: Any = 1.0,
    seed: int | None = None, out: Any = None, device: Any = None,
) -> Array:  # fmt: skip
    """Numbers from `low` up to and without `high`: see Generator.uniform().

    >>> kw.random.uniform((2, 2), seed=0).shape
    (2, 2)
    """
    return source(seed).uniform(shape, dtype, low=low, high=high, out=out, device=device)


def normal(
    shape: Any = (), dtype: Any = None, *, mean: Any = 0.0, std: Any = 1.0,
    seed: int | None = None, out: Any = None, device: Any = None,
) -> Array:  # fmt: skip
    """Normal numbers: see Generator.normal().

    >>> x = kw.random.normal(10_000, mean=5, std=2, seed=7)
    >>> round(x.mean().item(), 1), round(x.std().item(), 1)
    (5.0, 2.0)
    """
    return source(seed).normal(shape, dtype, mean=mean, std=std, out=out, device=device)


def exponential(
    shape: Any = (), dtype: Any = None, *, scale: Any = 1.0,
    seed: int | None = None, out: Any = None, device: Any = None,
) -> Array:  # fmt: skip
    """Exponential numbers of mean `scale`: see Generator.exponential().

    >>> x = kw.random.exponential(100_000, scale=5, seed=7)
    >>> round(x.mean().item(), 1)
    5.0
    """
    return source(seed).exponential(shape, dtype, scale=scale, out=out, device=device)


def gamma(
    alpha: Any, shape: Any = (), dtype: Any = None, *, scale: Any = 1.0,
    seed: int | None = None, out: Any = None, device: Any = None,
) -> Array:  # fmt: skip
    """Numbers of the gamma distribution: see Generator.gamma().

    >>> x = kw.random.gamma(2.0, 100_000, scale=5, seed=7)
    >>> round(x.mean().item(), 1)
    10.0
    """
    return source(seed).gamma(alpha, shape, dtype, scale=scale, out=out, device=device)


def beta(
    a: Any, b: Any, shape: Any = (), dtype: Any = None, *, seed: int | None = None,
    out: Any = None, device: Any = None,
) -> Array:  # fmt: skip
    """Numbers of the beta distribution, between 0 and 1: see Generator.beta().

    >>> round(kw.random.beta(2.0, 6.0, 100_000, seed=7).mean().item(), 2)
    0.25
    """
    return source(seed).beta(a, b, shape, dtype, out=out, device=device)


def cauchy(
    shape: Any = (), dtype: Any = None, *, loc: Any = 0.0, scale: Any = 1.0,
    seed: int | None = None, out: Any = None, device: Any = None,
) -> Array:  # fmt: skip
    """Numbers of the Cauchy distribution: see Generator.cauchy().

    >>> abs(kw.random.cauchy(1000, seed=7)).max().item() > 100
    True
    """
    return source(seed).cauchy(shape, dtype, loc=loc, scale=scale, out=out, device=device)


def chisquare(
    df: Any, shape: Any = (), dtype: Any = None, *, seed: int | None = None,
    out: Any = None, device: Any = None,
) -> Array:  # fmt: skip
    """Sums of the squares of `df` normal numbers: see Generator.chisquare().

    >>> round(kw.random.chisquare(3, 100_000, seed=7).mean().item(), 1)
    3.0
    """
    return source(seed).chisquare(df, shape, dtype, out=out, device=device)


def gumbel(
    shape: Any = (), dtype: Any = None, *, loc: Any = 0.0, scale: Any = 1.0,
    seed: int | None = None, out: Any = None, device: Any = None,
) -> Array:  # fmt: skip
    """Numbers of the Gumbel distribution of largest values: see Generator.gumbel().

    >>> round(kw.random.gumbel(100_000, seed=7).mean().item(), 2)
    0.58
    """
    return source(seed).gumbel(shape, dtype, loc=loc, scale=scale, out=out, device=device)


def laplace(
    shape: Any = (), dtype: Any = None, *, loc: Any = 0.0, scale: Any = 1.0,
    seed: int | None = None, out: Any = None, device: Any = None,
) -> Array:  # fmt: skip
    """Numbers of the double exponential distribution: see Generator.laplace().

    >>> round(kw.random.laplace(100_000, loc=3, seed=7).mean().item(), 1)
    3.0
    """
    return source(seed).laplace(shape, dtype, loc=loc, scale=scale, out=out, device=device)


def logistic(
    shape: Any = (), dtype: Any = None, *, loc: Any = 0.0, scale: Any = 1.0,
    seed: int | None = None, out: Any = None, device: Any = None,
) -> Array:  # fmt: skip
    """Numbers of the logistic distribution: see Generator.logistic().

    >>> round(kw.random.logistic(100_000, loc=3, seed=7).mean().item(), 1)
    3.0
    """
    return source(seed).logistic(shape, dtype, loc=loc, scale=scale, out=out, device=device)


def lognormal(
    shape: Any = (), dtype: Any = None, *, mean: Any = 0.0, std: Any = 1.0, seed: int | None = None,
    out: Any = None, device: Any = None,
) -> Array:  # fmt: skip
    """The exponentials of normal numbers: see Generator.lognormal().

    >>> round(kw.random.lognormal(100_000, std=0.1, seed=7).mean().item(), 1)
    1.0
    """
    return source(seed).lognormal(shape, dtype, mean=mean, std=std, out=out, device=device)


def pareto(
    a: Any, shape: Any = (), dtype: Any = None, *, seed: int | None = None,
    out: Any = None, device: Any = None,
) -> Array:  # fmt: skip
    """Numbers of the Pareto distribution II, from 0 on: see Generator.pareto().

    >>> kw.random.pareto(3.0, 1000, seed=7).min().item() >= 0
    True
    """
    return source(seed).pareto(a, shape, dtype, out=out, device=device)


def rayleigh(
    shape: Any = (), dtype: Any = None, *, scale: Any = 1.0, seed: int | None = None,
    out: Any = None, device: Any = None,
) -> Array:  # fmt: skip
    """Lengths of vectors of two normal numbers: see Generator.rayleigh().

    >>> round(kw.random.rayleigh(100_000, seed=7).mean().item(), 2)
    1.25
    """
    return source(seed).rayleigh(shape, dtype, scale=scale, out=out, device=device)


def standard_t(
    df: Any, shape: Any = (), dtype: Any = None, *, seed: int | None = None,
    out: Any = None, device: Any = None,
) -> Array:  # fmt: skip
    """Numbers of Student's t distribution: see Generator.standard_t().

    >>> kw.random.standard_t(5, (2, 3), seed=7).shape
    (2, 3)
    """
    return source(seed).standard_t(df, shape, dtype, out=out, device=device)


def triangular(
    left: Any, mode: Any, right: Any, shape: Any = (), dtype: Any = None, *,
    seed: int | None = None, out: Any = None, device: Any = None,
) -> Array:  # fmt: skip
    """Numbers whose density is a triangle: see Generator.triangular().

    >>> round(kw.random.triangular(0, 1, 5, 100_000, seed=7).mean().item(), 1)
    2.0
    """
    return source(seed).triangular(left, mode, right, shape, dtype, out=out, device=device)


def truncated_normal(
    shape: Any = (), dtype: Any = None, *, mean: Any = 0.0, std: Any = 1.0,
    low: Any = -2.0, high: Any = 2.0,
    seed: int | None = None, out: Any = None, device: Any = None,
) -> Array:  # fmt: skip
    """Normal numbers between two bounds: see Generator.truncated_normal().

    >>> kw.random.truncated_normal(1000, low=0.5, seed=7).min().item() >= 0.5
    True
    """
    return source(seed).truncated_normal(
        shape, dtype, mean=mean, std=std, low=low, high=high, out=out, device=device
    )


def weibull(
    a: Any, shape: Any = (), dtype: Any = None, *, scale: Any = 1.0, seed: int | None = None,
    out: Any = None, device: Any = None,
) -> Array:  # fmt: skip
    """Numbers of the Weibull distribution: see Generator.weibull().

    >>> round(kw.random.weibull(1.0, 100_000, seed=7).mean().item(), 1)
    1.0
    """
    return source(seed).weibull(a, shape, dtype, scale=scale, out=out, device=device)
