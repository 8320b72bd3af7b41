// Matrix products of every element type by one kernel.
#pragma once

#include "array/array.h"
#include "core/stream.h"

namespace kernwright::kernels {

/// a @ b as matmul() (products/matmul.h) describes it, for all types by matmul.cu.
Array plain_matmul(const Array& a, const Array& b, const Stream& stream = {});

}  // namespace kernwright::kernels
