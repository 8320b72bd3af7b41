// The way of matrix products by gemm.cu and promoted_gemm.cu, on compute capability 9.0.
#pragma once

#include "kernels_src/gemm/gemm.h"

namespace kernwright::kernels {

/// Queues the product, with an epilogue whose operands are ready and a gate only if fuses_gate().
/// False where neither kernel can do it: on other devices and for other layouts.
bool run_wgmma(const Gemm& gemm, const WgmmaPlan& plan, const ProductEpilogue& ready,
               const Array& result, const Stream& on);

}  // namespace kernwright::kernels
