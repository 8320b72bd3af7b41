// The host's side of packed_wgmma.cu, and what it shares with packed_linear.cpp.
#pragma once

#include "kernels_src/family.h"
#include "kernels_src/packed/packed.h"

namespace kernwright::kernels {

/// As SkinnyProblem in skinny.cuh.
struct PackedProblem {
  CUdeviceptr x = 0, out = 0, partial = 0, scale = 0, bias = 0, residual = 0;
  std::int64_t x_row = 0, x_batch = 0, residual_row = 0, residual_batch = 0;
  std::uint64_t batches = 1;
  std::uint32_t m = 0, n = 0, k = 0, splits = 1, scale_step = 0, ahead = 0;
  float factor = 1;
};

constexpr std::int64_t kPairTableBytes = 32768;  ///< as PairTable in packed_weights.cuh

/// The device's name of the activation.
const char* packed_activation(const PackedLinearCall& call);
/// A number for the plan, the activation and x's type.
InstanceKey packed_product_key(const PackedLinearCall& call, const SkinnyPlan& plan);

bool has_packed_minima(const PackedWeights& weights);
/// Dynamic shared memory of a block.
std::int64_t packed_wgmma_shared(const PackedWeights& weights, const SkinnyPlan& plan);
/// x of `problem` in the order in which the kernel reads it.
Array arrange_packed_columns(const PackedLinearCall& call, const PackedProblem& problem,
                             const SkinnyPlan& plan, const Stream& on);
const LazyKernel& packed_wgmma_kernel(const PackedLinearCall& call, const SkinnyPlan& plan);

}  // namespace kernwright::kernels
