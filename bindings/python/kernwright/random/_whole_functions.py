"""The distributions of whole numbers as functions: of a seed, or of the default generator."""

from __future__ import annotations

from typing import Any

from kernwright._core import Array
from kernwright.random._functions import source

__all__ = ["bernoulli", "binomial", "geometric", "integers", "negative_binomial", "poisson", "zipf"]


def bernoulli(
    p: Any = 0.5, shape: Any = (), dtype: Any = "bool", *,
    seed: int | None = None, out: Any = None, device: Any = None,
) -> Array:  # fmt: skip
    """True with probability `p`: see Generator.bernoulli().

    >>> kw.random.bernoulli(0.25, 6, seed=7).numpy()
    array([False, False,  True,  True, False, False])
    """
    return source(seed).bernoulli(p, shape, dtype, out=out, device=device)


def integers(
    low: Any, high: Any = None, shape: Any = (), dtype: Any = "int64", *,
    endpoint: bool = False, seed: int | None = None, out: Any = None, device: Any = None,
) -> Array:  # fmt: skip
    """Whole numbers, each with exactly the same chance: see Generator.integers().

    >>> int(kw.random.integers(6, shape=100, seed=3).numpy().max())
    5
    """
    return source(seed).integers(low, high, shape, dtype, endpoint=endpoint, out=out, device=device)


def binomial(
    n: Any, p: Any, shape: Any = (), dtype: Any = "int64", *, seed: int | None = None,
    out: Any = None, device: Any = None,
) -> Array:  # fmt: skip
    """How many of `n` trials succeed: see Generator.binomial().

    >>> round(kw.random.binomial(50, 0.2, 100_000, seed=7).mean().item())
    10
    """
    return source(seed).binomial(n, p, shape, dtype, out=out, device=device)


def geometric(
    p: Any, shape: Any = (), dtype: Any = "int64", *, seed: int | None = None,
    out: Any = None, device: Any = None,
) -> Array:  # fmt: skip
    """Trials up to and with the first success: see Generator.geometric().

    >>> kw.random.geometric(0.5, 1000, seed=7).min().item()
    1
    """
    return source(seed).geometric(p, shape, dtype, out=out, device=device)


def negative_binomial(
    n: Any, p: Any, shape: Any = (), dtype: Any = "int64", *, seed: int | None = None,
    out: Any = None, device: Any = None,
) -> Array:  # fmt: skip
    """Failures before `n` successes: see Generator.negative_binomial().

    >>> round(kw.random.negative_binomial(4, 0.5, 100_000, seed=7).mean().item())
    4
    """
    return source(seed).negative_binomial(n, p, shape, dtype, out=out, device=device)


def poisson(
    lam: Any = 1.0, shape: Any = (), dtype: Any = "int64", *, seed: int | None = None,
    out: Any = None, device: Any = None,
) -> Array:  # fmt: skip
    """Poisson numbers of mean `lam`: see Generator.poisson().

    >>> round(kw.random.poisson(kw.asarray([3.0, 40.0]), (50_000, 2), seed=7).mean().item(), 1)
    21.5
    """
    return source(seed).poisson(lam, shape, dtype, out=out, device=device)


def zipf(
    a: Any, shape: Any = (), dtype: Any = "int64", *, seed: int | None = None,
    out: Any = None, device: Any = None,
) -> Array:  # fmt: skip
    """Numbers of Zipf's law: see Generator.zipf().

    >>> kw.random.zipf(2.0, 1000, seed=7).min().item()
    1
    """
    return source(seed).zipf(a, shape, dtype, out=out, device=device)
