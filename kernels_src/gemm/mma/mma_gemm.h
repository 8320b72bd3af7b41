// The launch of mma_gemm.cu.
#pragma once

#include "array/array.h"
#include "core/stream.h"
#include "kernels_src/gemm/gemm.h"

namespace kernwright::kernels {

/// Whether the device has mma.sync for operands of this type: float16, bfloat16, float32 (as tf32),
/// int8, float8_e4m3fn, float8_e5m2.
bool has_mma(const Device& device, ScalarType type);

/// Queues `of` with the epilogue `ready` into `result`; false where mma_gemm.cu cannot do it.
bool run_mma(const Gemm& gemm, const MmaPlan& plan, const ProductEpilogue& ready,
             const Array& result, const Stream& on);

}  // namespace kernwright::kernels
