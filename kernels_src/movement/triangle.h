// Triangles of matrices, and matrices of one diagonal.
#pragma once

#include "array/array.h"
#include "core/stream.h"

#include <cstdint>

namespace kernwright::kernels {

/// The matrices in the last two axes of `x` with zeros above diagonal `k` (`upper`: below it);
/// diagonal k holds the elements [i, i + k]. Any strides. Queued on `stream` (empty: the device's
/// legacy stream). Throws InvalidArgument below two axes.
Array triangle(const Array& x, std::int64_t k, bool upper, const Stream& stream = {});

/// A matrix of zeros except for diagonal `k`, which takes the elements of `values` in order: one
/// axis, as long as the diagonal, or of stride 0. Throws InvalidArgument where `values` does not
/// fit.
Array diagonal_matrix(const Array& values, std::int64_t rows, std::int64_t columns, std::int64_t k,
                      const Stream& stream = {});

/// A copy of diagonal `k` of a matrix.
Array diagonal(const Array& x, std::int64_t k, const Stream& stream = {});

}  // namespace kernwright::kernels
