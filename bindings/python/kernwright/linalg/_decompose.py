"""Orthogonal decompositions, singular values and eigenvalues."""

from __future__ import annotations

from typing import Any, NamedTuple

from kernwright._core import Array, _eigen, _qr, _svd
from kernwright.errors import ArgumentError
from kernwright.linalg._solve import _matrices, _square

__all__ = ["eig", "eigh", "eigvals", "eigvalsh", "qr", "svd", "svdvals"]


class QRResult(NamedTuple):
    """What qr() returns."""

    Q: Array
    R: Array


class SVDResult(NamedTuple):
    """What svd() returns."""

    U: Array
    S: Array
    Vh: Array


class EigResult(NamedTuple):
    """What eig() and eigh() return."""

    eigenvalues: Array
    eigenvectors: Array


def qr(x: Any, /, mode: str = "reduced") -> QRResult:
    """x = Q @ R for matrices (..., m, n), by Householder's reflections: Q has orthonormal columns,
    R is 0 below its diagonal, which is real and may be negative.

    "reduced": Q (..., m, k), R (..., k, n) with k = min(m, n). "complete": Q (..., m, m), R
    (..., m, n). float32, float64, complex64, complex128; integers as float64.

    >>> kw.linalg.qr(kw.asarray([[0.0], [2.0]])).R.item()
    2.0
    """
    if mode not in ("reduced", "complete"):
        raise ArgumentError(f'mode is {mode!r}, and must be "reduced" or "complete"')
    return QRResult(*_qr(_matrices(x, "qr"), mode == "complete"))


def svd(
    x: Any, /, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    """x = U @ diag(S) @ Vh for matrices (..., m, n), by one-sided Jacobi rotations: U and Vh are
    unitary, S (..., k) with k = min(m, n) is real and falls.

    U is (..., m, m) and Vh (..., n, n); without `full_matrices` (..., m, k) and (..., k, n). Types
    as qr(). With compute_uv=False S alone; `hermitian` is NumPy's, and changes nothing. NaN for
    matrices that hold NaN or infinities.

    >>> kw.linalg.svd(kw.asarray([[3.0, 0.0], [0.0, 4.0]])).S.numpy().tolist()
    [4.0, 3.0]
    """
    if not compute_uv:
        return svdvals(x)
    return SVDResult(*_svd(_matrices(x, "svd"), True, bool(full_matrices)))


def svdvals(x: Any, /) -> Array:
    """The singular values of svd() alone: real, falling, (..., min(m, n)).

    >>> kw.linalg.svdvals(kw.asarray([[3.0, 0.0], [0.0, 4.0]])).numpy()
    array([4., 3.], dtype=float32)
    """
    return _svd(_matrices(x, "svdvals"), False, False)[1]


def eigh(x: Any, /, UPLO: str = "L") -> EigResult:
    """x @ v = v * w for Hermitian matrices (..., n, n); only the lower triangle is read, with
    UPLO="U" the upper one. Real eigenvalues (..., n), ascending, and orthonormal eigenvectors in
    the columns of (..., n, n).

    By reflections to a tridiagonal matrix and implicit QL steps. Types as qr(). NaN for matrices
    that hold NaN or infinities.

    >>> kw.linalg.eigh(kw.asarray([[2.0, 0.0], [0.0, 1.0]])).eigenvalues.numpy().tolist()
    [1.0, 2.0]
    """
    return EigResult(*_eigen(_triangle(_square(x, "eigh"), UPLO), True, True))


def eigvalsh(x: Any, /, UPLO: str = "L") -> Array:
    """The eigenvalues of eigh() alone.

    >>> kw.linalg.eigvalsh(kw.asarray([[2.0, 0.0], [0.0, 1.0]])).numpy()
    array([1., 2.], dtype=float32)
    """
    return _eigen(_triangle(_square(x, "eigvalsh"), UPLO), True, False)[0]


def _triangle(x: Array, side: str) -> Array:
    """The matrices of which the lower triangles are read."""
    if side not in ("L", "U"):
        raise ArgumentError(f'UPLO is "L" or "U", got {side!r:.60}')
    if side == "L":
        return x
    import kernwright as kw

    return kw.matrix_transpose(kw.conj(x) if x.dtype.kind == "c" else x)


def eig(x: Any, /) -> EigResult:
    """x @ v = v * w for any square matrices (..., n, n): complex eigenvalues (..., n), in no
    particular order, and eigenvectors of length 1 in the columns of (..., n, n), complex too.

    By reflections to a Hessenberg matrix, shifted QR steps and substitution. The complex
    eigenvalues of a real matrix come as exact conjugates, that with the positive imaginary part
    first. A matrix without n independent eigenvectors has nearly the same one twice. Types as
    qr(). NaN for matrices that hold NaN or infinities.

    >>> kw.linalg.eig(kw.asarray([[0.0, -1.0], [1.0, 0.0]])).eigenvalues.numpy().tolist()
    [1j, -1j]
    """
    return EigResult(*_eigen(_square(x, "eig"), False, True))


def eigvals(x: Any, /) -> Array:
    """The eigenvalues of eig() alone.

    >>> kw.linalg.eigvals(kw.asarray([[0.0, -1.0], [1.0, 0.0]])).numpy().tolist()
    [1j, -1j]
    """
    return _eigen(_square(x, "eigvals"), False, False)[0]
