// Systems of equations: factors of square matrices and what is solved with them.
#pragma once

#include "array/array.h"
#include "core/stream.h"

namespace kernwright::kernels {

// Each takes float32, float64, complex64 or complex128 of shape (..., n, n), any strides, and is
// queued on `stream` (empty: the device's legacy stream). The result is the same each time. Throws
// ArgumentError for other types, InvalidArgument for shapes that do not fit; CompileError,
// OutOfMemory, DriverError. Nothing is read on the host: `info` (int32, one a matrix) says on the
// device what went wrong.

/// P A = L U.
struct Lu {
  Array factors;  ///< U, and below its diagonal L, whose diagonal is 1
  Array pivots;   ///< int32 (..., n): row k was exchanged with row pivots[k] >= k, k rising
  Array info;     ///< the first k + 1 where U[k, k] is 0, or 0
};
/// Gaussian elimination with partial pivoting (Golub and Van Loan, algorithm 3.4.1).
Lu lu_factor(const Array& x, const Stream& stream = {});

/// X of A X = sides, (..., n, columns) with the same dimensions in front. A singular A gives
/// infinities and NaN.
Array lu_solve(const Lu& lu, const Array& sides, const Stream& stream = {});

/// A = L L^H.
struct Cholesky {
  Array lower;  ///< 0 above the diagonal; NaN where A is not positive definite
  Array info;   ///< the first k + 1 where the leading part is not positive definite, or 0
};
/// Reads the lower triangle. (Golub and Van Loan, algorithm 4.2.2.)
Cholesky cholesky(const Array& x, const Stream& stream = {});

}  // namespace kernwright::kernels
