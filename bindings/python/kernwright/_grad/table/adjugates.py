"""Adjugates of matrices: the gradient of a determinant, also where there is no inverse.

adj(A) = det(A) inv(A) for an invertible A, and a polynomial in the elements of any. Here it comes
from the factors of Gaussian elimination; pivots of 0 are replaced by numbers as small as rounding.
Its derivative comes from products of singular values, without a quotient: with A = U S V^H and
F = U^H dA V, the change of adj(S) has -F_ij P_ij at [i, j], and at [i, i] the sum of F_jj P_ij over
all j but i. P_ij is the product of all singular values but two.
"""

from __future__ import annotations

from typing import Any

import kernwright as kw
from kernwright._core import Array, _lu_factor, _lu_solve
from kernwright._grad.recording import is_traced, note, unrecorded
from kernwright.errors import ArgumentError

__all__ = ["adjugate"]


def adjugate(x: Array) -> Array:
    """The adjugates of matrices (..., n, n), as an operation of the open recordings."""
    with unrecorded():
        made = _from_factors(x)
    note("the gradient of linalg.det()", ((x, lambda g: _second(x, g)),), made)
    return made


def _from_factors(x: Array) -> Array:
    factors, pivots, _ = _lu_factor(x)
    size, kind = x.shape[-1], kw.finfo(x.dtype)
    largest = kw.max(kw.abs(x), axis=(-2, -1), initial=0)[..., None]
    least = kw.where(largest == 0, float(kind.smallest_normal) ** 0.5, largest * float(kind.eps))
    diagonal = kw.linalg.diagonal(factors)
    diagonal = kw.where(diagonal == 0, least.astype(x.dtype), diagonal)
    eye = kw.eye(size, dtype="bool", device=x.device)
    factors = kw.where(eye, diagonal[..., None], factors)
    moved = kw.count_nonzero(pivots != kw.arange(size, device=x.device), axis=-1)
    det = kw.prod(diagonal, axis=-1, dtype=x.dtype) * (1 - 2 * (moved % 2)).astype(x.dtype)
    one = kw.broadcast_to(eye.astype(x.dtype), x.shape)
    return det[..., None, None] * _lu_solve(factors, pivots, one)


def _second(x: Array, g: Array) -> Array:
    """The gradient of x, from the gradient of its adjugate."""
    if is_traced(x) or is_traced(g):
        raise ArgumentError("the second derivative of linalg.det() has no gradient")
    u, s, vh = kw.linalg.svd(x)
    others = _products_but_two(s).astype(x.dtype)
    left, right = _conj(u), _conj(vh)  # F = left^T dA right^T
    inner = kw.matmul(kw.matmul(right, g), left)
    sums = kw.matmul(others, kw.linalg.diagonal(inner)[..., None])[..., 0]
    eye = kw.eye(x.shape[-1], dtype=x.dtype, device=x.device)
    change = eye * sums[..., None] - inner * others
    turn = kw.linalg.det(u) * kw.linalg.det(vh)
    made: Array = turn[..., None, None] * kw.matmul(kw.matmul(left, change), right)
    return made


def _conj(x: Array) -> Array:
    return kw.conj(x) if x.dtype.kind == "c" else x


def _products_but_two(s: Array) -> Array:
    """At [i, j] the product of all numbers but s_i and s_j; 0 on the diagonal."""
    size = s.shape[-1]
    at = kw.arange(size, device=s.device)
    upper = at[:, None] < at
    before = _products_before(s)
    after = kw.flip(_products_before(kw.flip(s, axis=-1)), axis=-1)
    between = _products_before(kw.where(upper, s[..., None, :], 1))
    half = kw.where(upper, before[..., None] * between * after[..., None, :], 0)
    made: Array = half + half.mT
    return made


def _products_before(x: Any) -> Array:
    """Along the last axis, at each place the product of the numbers before it."""
    ones = kw.ones((*x.shape[:-1], 1), dtype=x.dtype, device=x.device)
    made: Array = kw.concat([ones, kw.cumulative_prod(x, axis=-1)[..., :-1]], axis=-1)
    return made
