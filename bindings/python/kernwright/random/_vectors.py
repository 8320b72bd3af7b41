"""Distributions whose numbers come in vectors, and categories."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import kernwright
from kernwright import _core
from kernwright._array.operands import extents_of, holds_somewhere
from kernwright._support.typed import typed
from kernwright._support.warn import warn_caller
from kernwright.errors import InvalidArgument
from kernwright.random._parameters import (
    COUNT,
    FINITE_POSITIVE,
    NOT_NEGATIVE,
    Parameter,
    checked,
    on_device,
    spread,
)
from kernwright.random._sequence import RandomSequence


@typed
class VectorDraws(RandomSequence):
    """Distributions over vectors. `shape` is that of the result without its last axis, to which
    the leading axes of the parameters broadcast; left out, it is theirs."""

    def multinomial(
        self, n: Any, pvals: Any, shape: Any = (), *, device: Any = None
    ) -> _core.Array:
        """How often each of the K outcomes came in `n` trials: int64 of shape (*shape, K).

        `pvals` (..., K) are chances: of the host they are not negative and sum to at most 1, where
        the last outcome takes what is missing, as in NumPy. An array of the device is taken as
        weights without a check; a row with a negative weight or zeros alone gives -1.

        >>> kw.random.Generator(7).multinomial(100, [0.5, 0.5]).sum().item()
        100
        """
        weights = checked(Parameter("pvals", pvals, NOT_NEGATIVE))
        weights = _completed(weights) if isinstance(weights, np.ndarray) else weights
        rows = _rows_of(weights, "pvals")
        given = Parameter("n", checked(Parameter("n", n, COUNT)), COUNT)
        leading = _leading(rows, shape, getattr(given.value, "shape", ()))
        extents, (trials,) = spread([given], leading, device)
        chances = on_device(weights, _place(trials, weights, device))
        if rows != ():
            chances = kernwright.broadcast_to(chances, (*extents, chances.shape[-1]))
        chances = chances if chances.is_contiguous else chances.copy()
        result = _core.empty((*extents, chances.shape[-1]), "int64", device=chances.device)
        if isinstance(trials, _core.Array) and trials.device != result.device:
            raise InvalidArgument("n and pvals lie on different devices: copy one with to()")
        self._draw(
            result.size, lambda *state: _core._random_multinomial(result, chances, trials, *state)
        )
        return result

    def dirichlet(
        self, alpha: Any, shape: Any = (), dtype: Any = None, *, device: Any = None
    ) -> _core.Array:
        """Vectors of the Dirichlet distribution, which sum to 1: shape (*shape, K) for parameters
        `alpha` (..., K) above 0. Gamma numbers are kept as logarithms, so that small parameters
        give no 0 / 0.

        >>> kw.random.Generator(7).dirichlet([1.0, 2.0, 3.0], 4).shape
        (4, 3)
        """
        values = checked(Parameter("alpha", alpha, FINITE_POSITIVE))
        extents = _leading(_rows_of(values, "alpha"), shape)
        given = (Parameter("alpha", values, FINITE_POSITIVE),)
        logs = self._parametric(
            "log_gamma", given, (*extents, values.shape[-1]), dtype, None, device
        )
        return kernwright.nn.softmax(logs, axis=-1)

    def multivariate_normal(
        self, mean: Any, cov: Any, shape: Any = (), dtype: Any = None, *,
        method: str = "eigh", check_valid: str = "warn", tol: float = 1e-8, device: Any = None,
    ) -> _core.Array:  # fmt: skip
        """Normal vectors of this mean (..., K) and covariance (..., K, K): shape (*shape, K).

        `method`: "eigh" takes every positive semi-definite matrix, "cholesky" is faster and needs
        a definite one (else the result is NaN). In float32 or float64.

        A covariance that is not symmetric and positive semi-definite within `tol` (elements that
        differ from their mirror images, eigenvalues below -tol; with "cholesky" a matrix without a
        factor) gives a RuntimeWarning with check_valid="warn", InvalidArgument with "raise". Both
        wait for the device. "ignore" does not look, nor does a capture, which cannot wait.

        >>> mean, cov = [0.0, 5.0], [[1.0, 0.5], [0.5, 1.0]]
        >>> kw.random.Generator(7).multivariate_normal(mean, cov, 3).shape
        (3, 2)
        """
        if method not in ("eigh", "cholesky"):
            raise InvalidArgument(f'method is "eigh" or "cholesky", got {method!r}')
        if check_valid not in ("warn", "raise", "ignore"):
            raise InvalidArgument(
                f'check_valid is "warn", "raise" or "ignore", got {check_valid!r}'
            )
        centre, spread_by = checked(Parameter("mean", mean)), checked(Parameter("cov", cov))
        rows = _rows_of(centre, "mean")
        k = centre.shape[-1]
        square = getattr(spread_by, "shape", ())
        if square[-2:] != (k, k):
            raise InvalidArgument(f"cov is (..., {k}, {k}) for a mean of {k}, got shape {square}")
        extents = _leading(rows, shape, square[:-2])
        place = _place(centre, spread_by, device)
        square_root, wrong = _square_root(on_device(spread_by, place), method, float(tol))
        if check_valid != "ignore" and holds_somewhere(square_root, wrong):
            _refuse(check_valid, tol)
        unit = self.normal((*extents, k), dtype, device=place)  # type: ignore[attr-defined]
        factor = square_root.to(unit.device).astype(unit.dtype)
        turned = kernwright.matmul(factor, unit.reshape((*extents, k, 1))).reshape(unit.shape)
        return turned + on_device(centre, unit.device).astype(unit.dtype)

    def categorical(
        self, logits: Any, shape: Any = (), *, axis: int = -1, device: Any = None
    ) -> _core.Array:
        """Numbers of categories with chances in proportion to exp(logits) along `axis`, as int64,
        by adding Gumbel numbers and taking the largest. `shape` is that of the result, to which
        the other axes broadcast; left out, it is theirs. For chances p give ``kw.log(p)``.

        >>> kw.random.Generator(7).categorical(kw.asarray([0.0, -float("inf")]), 3).numpy()
        array([0, 0, 0])
        """
        values = checked(Parameter("logits", logits))
        if isinstance(values, float) or values.ndim == 0:
            raise InvalidArgument("logits have an axis of categories, got one number")
        if isinstance(values, np.ndarray):
            values = kernwright.asarray(values.astype(np.float32), device=device)
        values = kernwright.moveaxis(values, axis, -1)
        if values.shape[-1] == 0:
            raise InvalidArgument("logits hold no category")
        if values.dtype != np.float64:
            values = values.astype("float32", copy=False)
        extents = _leading(values.shape[:-1], shape)
        noise = self.gumbel(  # type: ignore[attr-defined]
            (*extents, values.shape[-1]), values.dtype, device=values.device
        )
        return kernwright.argmax(values + noise, axis=-1)


def _rows_of(value: Any, name: str) -> tuple[int, ...]:
    """The leading axes of vectors along the last axis."""
    if isinstance(value, float) or value.ndim == 0 or value.shape[-1] == 0:
        raise InvalidArgument(f"{name} has at least one element along its last axis")
    return tuple(value.shape[:-1])


def _leading(rows: tuple[int, ...], shape: Any, *others: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of the result without its vectors."""
    try:
        joined = np.broadcast_shapes(rows, *others)
        if shape == ():
            return joined
        extents = extents_of(shape)
        if np.broadcast_shapes(joined, extents) == extents:
            return extents
    except ValueError:
        pass
    raise InvalidArgument(
        f"parameters of shapes {', '.join(map(str, (rows, *others)))} do not broadcast to {shape}"
    )


def _place(first: Any, second: Any, device: Any) -> Any:
    return next((v.device for v in (first, second) if isinstance(v, _core.Array)), device)


def _completed(pvals: np.ndarray) -> np.ndarray:
    """Chances whose last one takes what is missing to 1."""
    if pvals.ndim == 0 or pvals.shape[-1] == 0:
        return pvals
    before = pvals[..., :-1].sum(-1)
    if (before > 1 + 1e-12).any():
        raise InvalidArgument(f"pvals without the last sum to {before.max():g}, more than 1")
    return np.concatenate([pvals[..., :-1], np.maximum(1 - before, 0)[..., None]], -1)


def _square_root(
    cov: _core.Array, method: str, tol: float
) -> tuple[_core.Array, Callable[[], _core.Array]]:
    """A with A A^T = cov, in float64; and what tells whether cov has no such root within `tol`."""

    def differs() -> _core.Array:
        mirrored = kernwright.matrix_transpose(cov)
        return ~kernwright.all(kernwright.isclose(cov, mirrored, rtol=tol, atol=tol))

    if method == "cholesky":
        root = kernwright.linalg.cholesky(cov)
        return root, lambda: differs() | kernwright.any(kernwright.isnan(root))
    values, vectors = kernwright.linalg.eigh(cov)
    roots = kernwright.sqrt(kernwright.maximum(values, 0.0))
    made = vectors * kernwright.expand_dims(roots, -2)
    return made, lambda: differs() | ~kernwright.all(values >= -tol)


def _refuse(check_valid: str, tol: float) -> None:
    text = f"cov is not symmetric and positive semi-definite within {tol:g}"
    if check_valid == "raise":
        raise InvalidArgument(text)
    warn_caller(text + ': the numbers have another covariance (check_valid="ignore" says nothing)')
