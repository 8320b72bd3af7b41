// The host's side of packed_wgmma.cu, and what it shares with packed_linear.cpp.
#pragma once

#include "kernels_src/family.h"
#include "kernels_src/gemv/skinny_problem.h"
#include "kernels_src/packed/packed.h"

namespace kernwright::kernels {

constexpr std::int64_t kPairTableBytes = 32768;  ///< as PairTable in packed_weights.cuh

/// The device's name of the activation.
const char* packed_activation(const PackedLinearCall& call);
/// A number for the plan, the activation and x's type.
InstanceKey packed_product_key(const PackedLinearCall& call, const SkinnyPlan& plan);

/// Of a block: those of all teams, and one that copies.
inline int packed_wgmma_warps(const SkinnyPlan& plan) { return plan.warps * plan.unroll + 1; }
bool has_packed_minima(const PackedWeights& weights);
/// Dynamic shared memory of a block.
std::int64_t packed_wgmma_shared(const PackedWeights& weights, const SkinnyPlan& plan);
/// x of `problem` in the order in which the kernel reads it.
Array arrange_packed_columns(const PackedLinearCall& call, const SkinnyProblem& problem,
                             const SkinnyPlan& plan, const Stream& on);
const LazyKernel& packed_wgmma_kernel(const PackedLinearCall& call, const SkinnyPlan& plan);

}  // namespace kernwright::kernels
