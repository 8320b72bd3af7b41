// Products on the multiply-add cores: every number is rounded once for each product.
#pragma once

#include "kernels_src/gemm/gemm.h"
#include "kernels_src/gemm/gemm_kernels.h"

namespace kernwright::kernels {

/// Whether fma_gemm.cu takes the type on the device: float32 and float64 from 8.0 on.
bool has_fma(const Device& device, ScalarType type);

/// How lines of so many bytes apart are copied; `batch`: strides of the dimensions in front.
FmaWay fma_way(const FmaSide& side, std::int64_t lines, std::int64_t element,
               const std::int64_t* batch, int ndim);

/// Queues the product `of`, with its epilogue's operands ready, into `result`. False where
/// fma_gemm.cu does not take it, by type, device or size. Operands may have any strides: runs of 16
/// bytes of their lines are copied at once, others element by element.
bool run_fma(const Gemm& gemm, const FmaPlan& plan, const ProductEpilogue& ready,
             const Array& result, const Stream& on);

}  // namespace kernwright::kernels
