"""The distributions of vectors as functions: of a seed, or of the default generator."""

from __future__ import annotations

from typing import Any

from kernwright._core import Array
from kernwright.random._functions import source

__all__ = ["categorical", "dirichlet", "multinomial", "multivariate_normal"]


def categorical(
    logits: Any, shape: Any = (), *, axis: int = -1, seed: int | None = None, device: Any = None
) -> Array:
    """Numbers of categories, chosen by the logarithms of their chances: see
    Generator.categorical().

    >>> kw.random.categorical(kw.asarray([[0.0, -99.0], [-99.0, 0.0]]), seed=7).numpy()
    array([0, 1])
    """
    return source(seed).categorical(logits, shape, axis=axis, device=device)


def dirichlet(
    alpha: Any, shape: Any = (), dtype: Any = None, *, seed: int | None = None, device: Any = None
) -> Array:
    """Vectors of the Dirichlet distribution, which sum to 1: see Generator.dirichlet().

    >>> round(kw.random.dirichlet([0.5, 2.0, 3.0], seed=7).sum().item(), 5)
    1.0
    """
    return source(seed).dirichlet(alpha, shape, dtype, device=device)


def multinomial(
    n: Any, pvals: Any, shape: Any = (), *, seed: int | None = None, device: Any = None
) -> Array:
    """How often each outcome came in `n` trials: see Generator.multinomial().

    >>> kw.random.multinomial(20, [0.2, 0.3, 0.5], 4, seed=7).sum(axis=-1).numpy()
    array([20, 20, 20, 20])
    """
    return source(seed).multinomial(n, pvals, shape, device=device)


def multivariate_normal(
    mean: Any, cov: Any, shape: Any = (), dtype: Any = None, *, method: str = "eigh",
    check_valid: str = "warn", tol: float = 1e-8, seed: int | None = None, device: Any = None,
) -> Array:  # fmt: skip
    """Normal vectors of this mean and covariance: see Generator.multivariate_normal().

    >>> kw.random.multivariate_normal([0.0, 1.0], [[1.0, 0.5], [0.5, 1.0]], 5, seed=7).shape
    (5, 2)
    """
    return source(seed).multivariate_normal(
        mean, cov, shape, dtype, method=method, check_valid=check_valid, tol=tol, device=device
    )
