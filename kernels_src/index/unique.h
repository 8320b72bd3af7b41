// The different elements of an array.
#pragma once

#include "kernels_src/sort/rows.h"

namespace kernwright::kernels {

/// The parts of Unique to make.
struct UniqueParts {
  bool indices = false;
  bool inverse = false;
  bool counts = false;
};

struct Unique {
  Array values;   ///< of the array's type, rising; of equal elements (-0 and 0) the first one
  Array indices;  ///< int64: where, counted row-major, each value is first
  Array inverse;  ///< int64, of the array's shape: which value each element is
  Array counts;   ///< int64: how often each value is there
};

/// The different elements of `array` (any strides, any type; complex numbers by their real part,
/// then by their imaginary part). Each NaN differs from every other, as the array API has it. A
/// stable sort, then the groups of equal neighbours. It waits for the work of its stream, as the
/// number of values has to come to the host. Throws CaptureError while the stream is being
/// captured, CompileError, OutOfMemory, DriverError.
Unique unique(const Array& array, const UniqueParts& parts, const Stream& stream = {});

}  // namespace kernwright::kernels
