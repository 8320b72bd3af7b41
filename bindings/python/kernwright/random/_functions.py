"""The default generator, and orders and choices as functions: of a seed, or of that generator."""

from __future__ import annotations

import threading
from typing import Any

from kernwright._core import Array
from kernwright.random._generator import Generator

__all__ = [
    "choice",
    "default_generator",
    "permutation",
    "seed",
    "shuffle",
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
    """Lets the default generator begin anew with this seed: the object that default_generator()
    returned before, so that functions of kw.captured() follow.

    >>> kw.random.seed(7)
    >>> x = kw.random.uniform(3)
    >>> kw.random.seed(7)
    >>> kw.all(kw.random.uniform(3) == x).item()
    True
    """
    default_generator()._begin(n)


def source(n: int | None) -> Generator:
    """The generator of a seed, or the default one."""
    return default_generator() if n is None else Generator(n)


def permutation(
    x: Any, dtype: Any = "int64", *, seed: int | None = None, device: Any = None
) -> Array:
    """The numbers below `x`, or the rows of the array `x`, in random order: see
    Generator.permutation().

    >>> kw.random.permutation(4, seed=7).numpy()
    array([1, 3, 2, 0])
    """
    return source(seed).permutation(x, dtype, device=device)


def shuffle(x: Array, *, seed: int | None = None) -> None:
    """Puts the rows of `x` into random order, in place.

    >>> x = kw.arange(4)
    >>> kw.random.shuffle(x, seed=7)
    >>> x.numpy()
    array([1, 3, 2, 0])
    """
    source(seed).shuffle(x)


def choice(
    a: Any, shape: Any = (), replace: bool = True, p: Any = None, *,
    seed: int | None = None, device: Any = None,
) -> Array:  # fmt: skip
    """Picks of the numbers below `a`, or of its rows: see Generator.choice().

    >>> sorted(kw.random.choice(3, 3, replace=False, seed=1).numpy().tolist())
    [0, 1, 2]
    """
    return source(seed).choice(a, shape, replace, p, device=device)
