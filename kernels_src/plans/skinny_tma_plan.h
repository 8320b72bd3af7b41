// Plans of the kernels for few rows whose operands come in TMA tiles, and their helpers.
#pragma once

#include "kernels_src/plans/skinny_plan.h"

#include <cstdint>

namespace kernwright::kernels {

/// Numbers of weights that were measured with other choices than fewer have.
constexpr std::int64_t kLargeSkinny = std::int64_t{1} << 24;
constexpr int kMostSkinnyCluster = 8;  ///< blocks, on each device with clusters

/// Chooses what is still open.
inline void choose_skinny(int& parameter, std::int64_t value) {
  if (parameter <= 0) parameter = static_cast<int>(value);
}

/// Whether blocks of skinny_wgmma.cu send accumulators to the block with the epilogue.
constexpr bool sends_skinny_accumulators(const SkinnyPlan& plan) { return plan.columns <= 4; }

/// Whether skinny_bytes.cu can multiply the operands; and whether it was measured to be faster.
bool fits_skinny_bytes(const SkinnyShape& shape);
bool takes_skinny_bytes(const SkinnyShape& shape);

/// The open points of a plan for skinny_wgmma.cu and skinny_bytes.cu.
void plan_skinny_wgmma(const SkinnyShape& shape, SkinnyPlan& plan);
void plan_skinny_bytes(const SkinnyShape& shape, SkinnyPlan& plan);

}  // namespace kernwright::kernels
