"""Gradients of products and of the functions of kw.linalg.

Formulas of factorisations: I. Murray, "Differentiation of the Cholesky decomposition" (2016); S.
Walter, L. Lehmann, "Algorithmic differentiation of linear algebra functions" (2018) for QR; M.
Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
differentiation" (2008) for eigenvalues and singular values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import kernwright as kw
from kernwright import _core
from kernwright._core import Array
from kernwright._grad.recording import Pairs, is_traced, take_column_sums
from kernwright._grad.table import adjugates
from kernwright.errors import ArgumentError


def t(x: Array) -> Array:
    made: Array = x.mT
    return made


def h(x: Array) -> Array:
    """The conjugate transpose."""
    return t(kw.conj(x) if x.dtype.kind == "c" else x)


def matmul(y: Array, a: Array, b: Array, precision: Any = None) -> Pairs:
    return (
        (a, lambda g: _core._matmul(g, t(b), precision)),
        (b, lambda g: _core._matmul(t(a), g, precision)),
    )


def linear(
    y: Array, x: Array, weight: Array, bias: Any, scale: Any, residual: Any, activation: str,
    precision: Any = None,
) -> Pairs:  # fmt: skip
    """Of a layer without an activation; see nn.activated_layer()."""
    if scale is not None and (is_traced(weight) or is_traced(scale)):
        raise ArgumentError("linear() with weights in 8 bits has a gradient of x and bias alone")

    def of_x(g: Array) -> Any:
        if scale is None:
            return _product(g, weight, precision)
        wide = (weight.astype("float32") * scale.reshape(-1, 1)).astype(g.dtype)
        return _product(g, wide, precision)

    return (
        (x, of_x),
        (weight, lambda g: _core._matmul(t(_rows(g)), _rows(x), precision)),
        (bias, _of_bias),
        (residual, _itself),
    )


def _of_bias(g: Array) -> Any:
    known = take_column_sums(g)
    return kw.sum(_rows(g), axis=0, dtype=g.dtype) if known is None else known


_of_bias.wants_columns = True  # type: ignore[attr-defined]


def _itself(g: Array) -> Array:
    return g


def _rows(x: Array) -> Array:
    return x.reshape(-1, x.shape[-1]) if x.size else x.reshape(0, x.shape[-1])


def _product(g: Array, weight: Array, precision: Any) -> Array:
    """g @ weight for rows of any shape."""
    rows = _core._matmul(_rows(g), weight, precision)
    return rows.reshape(*g.shape[:-1], weight.shape[-1])


def inv(y: Array, x: Array, **options: Any) -> Pairs:
    return ((x, lambda g: -kw.matmul(t(y), kw.matmul(g, t(y)))),)


def solve(y: Array, a: Array, b: Array, **options: Any) -> Pairs:
    vector = b.ndim == 1

    def of_right(g: Array) -> Array:
        made: Array = kw.linalg.solve(t(a), g[..., None] if vector else g)
        return made[..., 0] if vector else made

    def of_matrix(g: Array) -> Array:
        s, x = of_right(g), y
        s, x = (s[..., None], x[..., None]) if vector else (s, x)
        made: Array = -kw.matmul(s, t(x))
        return made

    return (a, of_matrix), (b, of_right)


def det(y: Array, x: Array) -> Pairs:
    return ((x, lambda g: g[..., None, None] * t(adjugates.adjugate(x))),)


def slogdet(result: Any, x: Array) -> tuple[Sequence[Any], Sequence[Any], Any]:
    sign = result.sign

    def pull(of_sign: Any, of_size: Any) -> Sequence[Any]:
        if of_sign is not None and of_sign.dtype.kind == "c":  # the sign turns, and is no step
            turned: Any = kw.imag(sign * of_sign) * 1j
            turned = turned if of_size is None else turned + of_size
            return (turned.astype(x.dtype)[..., None, None] * t(kw.linalg.inv(x)),)
        if of_size is None:
            return (None,)
        return (of_size[..., None, None] * h(kw.linalg.inv(x)),)

    return (x,), tuple(result), pull


def cholesky(y: Array, x: Array, *, upper: bool = False, check: bool = False) -> Pairs:
    def pull(g: Array) -> Any:
        low = h(y) if upper else y
        g = kw.conj(g) if g.dtype.kind == "c" else g  # what follows is for plain gradients
        below = h(g) if upper else g
        middle = kw.tril(kw.matmul(h(low), kw.tril(below)))
        size = x.shape[-1]
        half = kw.eye(size, dtype=low.dtype, device=low.device) * 0.5
        middle = middle * (1 - half)
        s = kw.linalg.solve(h(low), middle)
        s = h(kw.linalg.solve(h(low), h(s)))
        made = (s + h(s)) * 0.5
        return kw.conj(made) if made.dtype.kind == "c" else made

    return ((x, pull),)


def qr(result: Any, x: Array, complete: bool) -> tuple[Sequence[Any], Sequence[Any], Any]:
    q, r = result

    def pull(of_q: Any, of_r: Any) -> Sequence[Any]:
        m, n = x.shape[-2:]
        if m < n or (complete and m != n):
            raise ArgumentError(
                f"qr() of matrices {m} x {n}{' in mode complete' if complete else ''} has no "
                "gradient: only the reduced form of matrices that are not wide has one"
            )
        gq = kw.zeros_like(q) if of_q is None else of_q
        gr = kw.zeros_like(r) if of_r is None else of_r
        if q.dtype.kind == "c":
            gq, gr = kw.conj(gq), kw.conj(gr)
        part = kw.matmul(r, h(gr)) - kw.matmul(h(gq), q)
        lower = kw.tril(part, k=-1)
        middle = lower + h(lower) + _diagonal_part(part)
        right = gq + kw.matmul(q, middle)
        made = h(kw.linalg.solve(r, h(right)))
        return (kw.conj(made) if made.dtype.kind == "c" else made,)

    return (x,), (q, r), pull


def _diagonal_part(x: Array) -> Array:
    made: Array = kw.tril(kw.triu(x))
    return made


def _gaps(values: Array) -> Array:
    """1 / (v_j - v_i), and 0 on the diagonal."""
    apart = values[..., None, :] - values[..., :, None]
    same = apart == 0
    made: Array = kw.where(same, 0, 1 / kw.where(same, 1, apart))
    return made


def eigen(
    result: Any, x: Array, hermitian: bool, vectors: bool
) -> tuple[Sequence[Any], Sequence[Any], Any]:
    w, v = result

    def pull(of_w: Any, of_v: Any = None) -> Sequence[Any]:
        if not hermitian:
            raise ArgumentError(
                "eig() and eigvals() have no gradient here: eigh() and eigvalsh() have"
            )
        if not vectors:
            raise AssertionError("eigvalsh() is recorded with its vectors")
        middle = kw.zeros_like(v)
        if of_v is not None:
            of_v = kw.conj(of_v) if of_v.dtype.kind == "c" else of_v
            middle = _gaps(w) * kw.matmul(h(v), of_v)
        if of_w is not None:
            eye = kw.eye(w.shape[-1], dtype=v.dtype, device=w.device)
            on = eye * of_w.astype(v.dtype)[..., None, :]
            middle = middle + on
        made = kw.matmul(v, kw.matmul(middle, h(v)))
        made = (made + h(made)) * 0.5
        return (kw.conj(made) if made.dtype.kind == "c" and of_v is not None else made,)

    return (x,), (w, v), pull


def svd(
    result: Any, x: Array, vectors: bool, full: bool
) -> tuple[Sequence[Any], Sequence[Any], Any]:
    u, s, vh = result

    def pull(of_u: Any, of_s: Any, of_vh: Any) -> Sequence[Any]:
        m, n = x.shape[-2:]
        if full and m != n and (of_u is not None or of_vh is not None):
            raise ArgumentError(
                "svd() with full_matrices has no gradient of U and Vh, which are not unique: call "
                "it with full_matrices=False"
            )
        if x.dtype.kind == "c" and (of_u is not None or of_vh is not None):
            raise ArgumentError("svd() of complex matrices has a gradient of S alone")
        k = min(m, n)
        left, right = u[..., :k], vh[..., :k, :]
        eye = kw.eye(k, dtype=left.dtype, device=x.device)
        middle = kw.zeros_like(kw.matmul(h(left), left))
        wide = s.astype(left.dtype)
        if of_s is not None:
            middle = middle + eye * of_s.astype(left.dtype)[..., None, :]
        gaps = _gaps(wide * wide)
        extra = None
        inverse = kw.where(wide == 0, 0, 1 / kw.where(wide == 0, 1, wide))
        if of_u is not None:
            part = kw.matmul(t(left), of_u)
            middle = middle + gaps * (part - t(part)) * wide[..., None, :]
            if m > k:
                rest = of_u - kw.matmul(left, part)
                extra = kw.matmul(rest * inverse[..., None, :], right)
        if of_vh is not None:
            of_v = t(of_vh)
            part = kw.matmul(right, of_v)
            middle = middle + wide[..., :, None] * (gaps * (part - t(part)))
            if n > k:
                rest = of_v - kw.matmul(t(right), part)
                more = kw.matmul(left * inverse[..., None, :], t(rest))
                extra = more if extra is None else extra + more
        made = kw.matmul(kw.matmul(left, middle), right)
        return (made if extra is None else made + extra,)

    return (x,), (u, s, vh), pull
