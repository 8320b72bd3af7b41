// The host's side of packed_wgmma.cu, and what it shares with packed_linear.cpp.
#pragma once

#include "kernels_src/family.h"
#include "kernels_src/packed/packed.h"

namespace kernwright::kernels {

constexpr std::int64_t kPairTableBytes = 32768;  ///< as PairTable in packed_weights.cuh

/// `rows` of a plan: some warps bring x into the order of lanes, or lanes read codes in x's order.
constexpr int kPackedArranged = 1, kPackedSpread = 2;

/// The device's name of the activation.
const char* packed_activation(const PackedLinearCall& call);
/// A number for the plan, the activation and x's type.
InstanceKey packed_product_key(const PackedLinearCall& call, const SkinnyPlan& plan);

/// Of a block: those of all teams, one that copies and others that arrange x.
int packed_wgmma_warps(const SkinnyPlan& plan);
/// Dynamic shared memory of a block.
std::int64_t packed_wgmma_shared(const PackedWeights& weights, const SkinnyPlan& plan);
/// x, or a copy where a tensor map cannot describe its rows, which begin at multiples of 16 bytes.
Array packed_wgmma_columns(const Array& x, const Stream& on);
/// TMA tiles of 128 bytes of the rows of x that a block has.
CUtensorMap packed_wgmma_map(const Array& x, const SkinnyPlan& plan);
const LazyKernel& packed_wgmma_kernel(const PackedLinearCall& call, const SkinnyPlan& plan);

}  // namespace kernwright::kernels
