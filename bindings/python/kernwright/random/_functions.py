"""The distributions as functions: of a seed, or of the default generator."""

from __future__ import annotations

import threading
from typing import Any

from kernwright._core import Array
from kernwright.random._generator import Generator

__all__ = [
    "bernoulli",
    "choice",
    "default_generator",
    "exponential",
    "gamma",
    "integers",
    "normal",
    "permutation",
    "seed",
    "shuffle",
    "uniform",
]

_lock = threading.Lock()
_default: Generator | None = None


def default_generator() -> Generator:
    """What the functions draw from without a seed; it begins with a seed of the system's.

    >>> kw.random.seed(7)
    >>> kw.random.default_generator()
    <kw.random.Generator of seed 7, offset 0>
    """
    global _default
    with _lock:
        if _default is None:
            _default = Generator()
        return _default


def seed(n: int) -> None:
    """Lets the default generator begin anew with this seed.

    >>> kw.random.seed(7)
    >>> x = kw.random.uniform(3)
    >>> kw.random.seed(7)
    >>> kw.all(kw.random.uniform(3) == x).item()
    True
    """
    global _default
    made = Generator(n)
    with _lock:
        _default = made


def _source(n: int | None) -> Generator:
    return default_generator() if n is None else Generator(n)


def uniform(
    shape: Any = (), dtype: Any = None, *, low: float = 0.0, high: float = 1.0,
    seed: int | None = None, out: Any = None, device: Any = None,
) -> Array:  # fmt: skip
    """Numbers from `low` up to and without `high`: see Generator.uniform().

    >>> kw.random.uniform((2, 2), seed=0).shape
    (2, 2)
    """
    return _source(seed).uniform(shape, dtype, low=low, high=high, out=out, device=device)


def normal(
    shape: Any = (), dtype: Any = None, *, mean: float = 0.0, std: float = 1.0,
    seed: int | None = None, out: Any = None, device: Any = None,
) -> Array:  # fmt: skip
    """Normal numbers: see Generator.normal().

    >>> x = kw.random.normal(10_000, mean=5, std=2, seed=7)
    >>> round(x.mean().item(), 1), round(x.std().item(), 1)
    (5.0, 2.0)
    """
    return _source(seed).normal(shape, dtype, mean=mean, std=std, out=out, device=device)


def exponential(
    shape: Any = (), dtype: Any = None, *, scale: float = 1.0,
    seed: int | None = None, out: Any = None, device: Any = None,
) -> Array:  # fmt: skip
    """Exponential numbers of mean `scale`: see Generator.exponential().

    >>> x = kw.random.exponential(100_000, scale=5, seed=7)
    >>> round(x.mean().item(), 1)
    5.0
    """
    return _source(seed).exponential(shape, dtype, scale=scale, out=out, device=device)


def gamma(
    alpha: float, shape: Any = (), dtype: Any = None, *, scale: float = 1.0,
    seed: int | None = None, out: Any = None, device: Any = None,
) -> Array:  # fmt: skip
    """Numbers of the gamma distribution: see Generator.gamma().

    >>> x = kw.random.gamma(2.0, 100_000, scale=5, seed=7)
    >>> round(x.mean().item(), 1)
    10.0
    """
    return _source(seed).gamma(alpha, shape, dtype, scale=scale, out=out, device=device)


def bernoulli(
    p: float = 0.5, shape: Any = (), dtype: Any = "bool", *,
    seed: int | None = None, out: Any = None, device: Any = None,
) -> Array:  # fmt: skip
    """True with probability `p`: see Generator.bernoulli().

    >>> kw.random.bernoulli(0.25, 6, seed=7).numpy()
    array([False, False,  True,  True, False, False])
    """
    return _source(seed).bernoulli(p, shape, dtype, out=out, device=device)


def integers(
    low: int, high: int | None = None, shape: Any = (), dtype: Any = "int64", *,
    endpoint: bool = False, seed: int | None = None, out: Any = None, device: Any = None,
) -> Array:  # fmt: skip
    """Whole numbers, each with exactly the same chance: see Generator.integers().

    >>> int(kw.random.integers(6, shape=100, seed=3).numpy().max())
    5
    """
    return _source(seed).integers(
        low, high, shape, dtype, endpoint=endpoint, out=out, device=device
    )


def permutation(
    x: Any, dtype: Any = "int64", *, seed: int | None = None, device: Any = None
) -> Array:
    """The numbers below `x`, or the rows of the array `x`, in random order: see
    Generator.permutation().

    >>> kw.random.permutation(4, seed=7).numpy()
    array([1, 3, 2, 0])
    """
    return _source(seed).permutation(x, dtype, device=device)


def shuffle(x: Array, *, seed: int | None = None) -> None:
    """Puts the rows of `x` into random order, in place.

    >>> x = kw.arange(4)
    >>> kw.random.shuffle(x, seed=7)
    >>> x.numpy()
    array([1, 3, 2, 0])
    """
    _source(seed).shuffle(x)


def choice(
    a: Any, shape: Any = (), replace: bool = True, p: Any = None, *,
    seed: int | None = None, device: Any = None,
) -> Array:  # fmt: skip
    """Picks of the numbers below `a`, or of its rows: see Generator.choice().

    >>> sorted(kw.random.choice(3, 3, replace=False, seed=1).numpy().tolist())
    [0, 1, 2]
    """
    return _source(seed).choice(a, shape, replace, p, device=device)
