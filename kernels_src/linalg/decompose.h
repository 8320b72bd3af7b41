// Orthogonal decompositions and eigenvalues of matrices.
#pragma once

#include "array/array.h"
#include "core/stream.h"

#include <optional>

namespace kernwright::kernels {

// Each takes float32, float64, complex64 or complex128 of shape (..., m, n), any strides, any
// extents, none too, and is queued on `stream` (empty: the device's legacy stream). One block works
// on a matrix; the result is the same each time. Throws ArgumentError for other types,
// InvalidArgument for shapes that do not fit; CompileError, OutOfMemory, DriverError.

/// A = Q R, k = min(m, n).
struct Qr {
  Array q;  ///< (..., m, k), or (..., m, m) when complete
  Array r;  ///< (..., k, n), or (..., m, n) when complete: 0 below the diagonal, which is real
};
/// Householder's reflections (Golub and Van Loan, algorithm 5.2.1).
Qr qr(const Array& x, bool complete, const Stream& stream = {});

/// A = U diag(S) Vh; without vectors S alone.
struct Svd {
  std::optional<Array> u;   ///< (..., m, k), or (..., m, m) when full
  Array s;                  ///< (..., k), real, falling
  std::optional<Array> vh;  ///< (..., k, n), or (..., n, n) when full
};
/// One-sided Jacobi rotations (Golub and Van Loan, section 8.6.3); left vectors are made orthogonal
/// by reflections at last. NaN for matrices with NaN or infinities.
Svd svd(const Array& x, bool vectors, bool full, const Stream& stream = {});

/// A V = V diag(values); without vectors the values alone.
struct Eigen {
  Array values;
  std::optional<Array> vectors;  ///< (..., n, n), in columns
};
/// For Hermitian matrices; only the lower triangle is read: rising real values, orthonormal
/// vectors. Reflections to a tridiagonal matrix, then implicit QL steps (Bowdler et al. 1968). NaN
/// for matrices with NaN or infinities.
Eigen eigh(const Array& x, bool vectors, const Stream& stream = {});
/// For any square matrices: complex values in the order of their discovery, vectors of length 1.
/// Reflections to a Hessenberg matrix, then shifted QR steps (Francis). Real matrices take two
/// shifts; their complex values are exact conjugates, the one with positive imaginary part first.
/// NaN for matrices with NaN or infinities.
Eigen eig(const Array& x, bool vectors, const Stream& stream = {});

}  // namespace kernwright::kernels
