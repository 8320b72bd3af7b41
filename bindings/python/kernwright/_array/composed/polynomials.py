"""Polynomials: their values, and the ones that fit points best."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from kernwright._array.creation import asarray
from kernwright._array.operands import device_array
from kernwright._core import Array
from kernwright.errors import ArgumentError, InvalidArgument

__all__ = ["polyfit", "polyval"]

_HORNER = """
SUM total = 0;
for (Int64 k = 0; k < count; ++k) total = total * SUM(x) + SUM(p[k]);
y = total;
"""


@functools.cache
def _horner(dtype: str) -> Any:
    from kernwright._fuse.elementwise import ElementwiseKernel

    sums = "double" if dtype == "float64" else "Int64" if "int" in dtype else "float"
    code = _HORNER.replace("SUM", "UInt64" if dtype == "uint64" else sums)
    return ElementwiseKernel("T x, raw T p, int64 count", "T y", code, "polyval")


def polyval(p: Any, x: Any) -> Array:
    """p[0] * x**(n - 1) + ... + p[n - 1] by Horner's scheme, in one kernel. `p`: a vector of the
    device, or coefficients of the host, which are copied there. `x` may be a number if `p` is on
    the device. Types are promoted as NumPy's.

    >>> kw.polyval([1, 2], kw.asarray([1.0, 3.0])).numpy()
    array([3., 5.], dtype=float32)
    """
    import kernwright as kw

    if isinstance(p, Array) and isinstance(x, (bool, int, float, complex)):
        x = kw.full((), x, kw.result_type(x, p), device=p.device)
    values: Array = device_array(x)
    dtype, coefficients = _coefficients(p, values)
    if coefficients.ndim != 1:
        raise InvalidArgument(f"coefficients are a vector, got shape {coefficients.shape}")
    values = values.astype(dtype, copy=False)
    if dtype.kind == "c":
        made = kw.zeros_like(values)
        for k in range(coefficients.size):
            made = made * values + coefficients[k]
        return made
    packed = coefficients if coefficients.is_contiguous else coefficients.copy()
    if packed.size == 0:
        return kw.zeros_like(values)
    result: Array = _horner(dtype.name)(values, packed, np.int64(packed.size))
    return result


def _coefficients(p: Any, x: Array) -> tuple[Any, Array]:
    import kernwright as kw

    if isinstance(p, Array):
        dtype = kw.result_type(p, x)
    else:
        host = np.asarray(p)
        if host.dtype.kind not in "biufc":
            raise ArgumentError(f"coefficients are numbers, got {p!r:.60}")
        strong = isinstance(p, (np.ndarray, np.generic))
        weak = {"b": True, "i": 0, "u": 0, "f": 0.0, "c": 0j}[host.dtype.kind]
        dtype = kw.result_type(host.dtype if strong else weak, x)
        p = asarray(host.astype(dtype), device=x.device)
    return dtype, p.astype(dtype, copy=False)


def polyfit(
    x: Any, y: Any, deg: int, rcond: float | None = None, full: bool = False, w: Any = None,
    cov: Any = False,
) -> Any:  # fmt: skip
    """The coefficients, that of the highest power first, of the polynomial of degree `deg` with the
    least sum of squared distances to the points (x, y); `y` may have several columns.

    Distances are weighted by `w`. Computed in float64, by the singular values of the powers of
    `x`; those below `rcond` times the largest (None: len(x) times the epsilon of float64) count as
    0. The dtype is that of `x` and `y` together, float64 of integers. `full`: a tuple of
    coefficients, residuals, rank (on the device), singular values and rcond. `cov`: a tuple of
    coefficients and their covariances, scaled by the residuals unless cov="unscaled".
    InvalidArgument for points that do not fit each other and a negative degree.

    >>> x = kw.asarray([0.0, 1.0, 2.0])
    >>> kw.round(kw.polyfit(x, 3 * x + 1, 1), 4).numpy()
    array([3., 1.], dtype=float32)
    """
    import kernwright as kw

    places, values, dtype = _points(x, y)
    degree = operator.index(deg)
    if degree < 0:
        raise InvalidArgument(f"the degree of a polynomial is not negative: {degree}")
    wide = places.astype(np.float64, copy=False)
    sides = values.astype(np.complex128 if values.dtype.kind == "c" else np.float64, copy=False)
    powers = kw.vander(wide, degree + 1)
    if w is not None:
        weights = device_array(w, "w").astype(np.float64, copy=False)
        if weights.shape != wide.shape:
            raise InvalidArgument(
                f"Incompatible dimensions: w of shape {weights.shape} for {wide.size} points"
            )
        powers = powers * weights[:, None]
        sides = sides * (weights[:, None] if sides.ndim == 2 else weights)
    scale = kw.sqrt(kw.sum(kw.square(powers), 0))
    limit = wide.size * float(np.finfo(np.float64).eps) if rcond is None else float(rcond)
    inverse, singular, solved = _solved(powers / scale, sides, limit)
    coefficients = (solved.T / scale).T.astype(dtype, copy=False)
    if full:
        rank = kw.sum(singular > limit * kw.max(singular))
        return coefficients, _residuals(powers, solved, scale, sides), rank, singular, limit
    if not cov:
        return coefficients
    covariances = kw.matmul(inverse, inverse.T) / kw.outer(scale, scale)
    if sides.ndim == 2:
        covariances = covariances[:, :, None]
    free = _degrees_of_freedom(cov, wide.size - degree - 1)
    if free is None:
        return coefficients, covariances
    variances = _residuals(powers, solved, scale, sides) / free
    return coefficients, covariances * variances


def _points(x: Any, y: Any) -> tuple[Array, Array, Any]:
    import kernwright as kw

    places, values = device_array(x), device_array(y, "y")
    if places.ndim != 1 or places.size == 0:
        raise InvalidArgument(f"x is a vector of one place or more, got shape {places.shape}")
    if values.ndim not in (1, 2) or values.shape[0] != places.size:
        raise InvalidArgument(
            f"Incompatible dimensions: y of shape {values.shape} for {places.size} places"
        )
    if places.dtype.kind == "c":
        raise ArgumentError("polyfit() takes real places")
    dtype = kw.result_type(places, values)
    return places, values, np.dtype(np.float64) if dtype.kind in "iub" else dtype


def _solved(matrix: Array, sides: Array, limit: float) -> tuple[Array, Array, Array]:
    """The pseudoinverse's factor of right vectors, the singular values, and the solution."""
    import kernwright as kw

    if matrix.shape[0] >= matrix.shape[1]:
        q, r = kw.linalg.qr(matrix)
        left, singular, right = kw.linalg.svd(r, full_matrices=False)
        turned = kw.matmul(left.T, q.T)
    else:
        left, singular, right = kw.linalg.svd(matrix, full_matrices=False)
        turned = left.T
    kept = kw.where(singular > limit * kw.max(singular), 1 / singular, 0.0)
    factor = right.T * kept
    projected = kw.matmul(turned.astype(sides.dtype, copy=False), sides)
    return factor, singular, kw.matmul(factor.astype(sides.dtype, copy=False), projected)


def _residuals(powers: Array, solved: Array, scale: Array, sides: Array) -> Array:
    """The sum of squared distances, of each column."""
    import kernwright as kw

    found = kw.matmul((powers / scale).astype(sides.dtype, copy=False), solved)
    sums = kw.sum(kw.square(kw.abs(found - sides)), 0)
    return sums.reshape(-1) if sides.ndim == 2 else kw.atleast_1d(sums)


def _degrees_of_freedom(cov: Any, free: int) -> float | None:
    """What residuals are divided by; None where they do not count."""
    if isinstance(cov, str):
        if cov != "unscaled":
            raise InvalidArgument(f'cov is True, False or "unscaled", got {cov!r}')
        return None
    if free <= 0:
        raise InvalidArgument(
            "the number of points must be larger than that of coefficients to scale covariances"
        )
    return float(free)
