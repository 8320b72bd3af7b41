// The way of matrix products by gemm.cu and promoted_gemm.cu, on compute capability 9.0.
#pragma once

#include "kernels_src/gemm/gemm.h"

namespace kernwright::kernels {

/// Whether the sums of every 128 elements of float8 are added in float32, by promoted_gemm.cu.
bool is_promoted(const Gemm& of);

/// Queues the product, with an epilogue whose operands are ready. False where neither kernel can
/// do it: on other devices, for other layouts or kernels that were asked for.
bool run_wgmma(const Gemm& of, const GemmEpilogue& ready, const Array& result, const Stream& on);

}  // namespace kernwright::kernels
