// Matrix products of every element type.
#pragma once

#include "array/array.h"
#include "core/stream.h"
#include "kernels_src/products/few_rows.h"
#include "kernels_src/products/product_plan.h"

namespace kernwright::kernels {

/// a @ b for arrays of one type on one device, of two dimensions or more: [..., m, k] times
/// [..., k, n] is [..., m, n], where the dimensions in front are broadcast. Any strides. Float
/// types below 32 bits are summed in float32; integers wrap around; bool is "or" of "and".
/// Additions run along k in order, so every run has equal bits. With k = 0 it is zero. Queued on
/// `stream` (empty: the device's legacy stream). Throws InvalidArgument ("Incompatible dimensions")
/// with both shapes, for other types or devices and for more than 6 dimensions in front that cannot
/// be walked as fewer; CompileError, OutOfMemory, DriverError. From compute capability 8.0 on,
/// products of float32 and float64, and large ones of float16, bfloat16 or int8, are a Gemm
/// (gemm/gemm.h), where the order of additions depends on the shapes alone.
///
/// With `tf32` elements of float32 may be rounded to tf32 for the tensor cores. Few rows are not
/// rounded. Throws ArgumentError for other types.
Array matmul(const Array& a, const Array& b, const Stream& stream = {}, bool tf32 = false);

/// a @ b of operands that fit, by the kernel of the plan; a skinny one takes them in the `form`.
Array run_plan(const Array& a, const Array& b, FewRows form, const ProductPlan& plan, bool tf32,
               const Stream& stream);

}  // namespace kernwright::kernels
