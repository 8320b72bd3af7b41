// Products on the multiply-add cores: every number is rounded once for each product.
#pragma once

#include "kernels_src/gemm/gemm.h"

namespace kernwright::kernels {

/// Whether fma_gemm.cu takes the type on the device: float32 and float64 from 8.0 on.
bool has_fma(const Array& array);

/// Queues the product `of`, with its epilogue's operands ready, into `result`. False where
/// fma_gemm.cu does not take it, by type, device or size. Operands may have any strides: runs of 16
/// bytes of their lines are copied at once, others element by element.
bool run_fma(const Gemm& of, const GemmEpilogue& ready, const Array& result, const Stream& on);

}  // namespace kernwright::kernels
