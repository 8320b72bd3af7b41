// The kernels of products with few rows.
#pragma once

#include "kernels_src/activations/activations.h"
#include "kernels_src/family.h"
#include "kernels_src/plans/skinny_plan.h"

#include <optional>

namespace kernwright::kernels {

/// The facts that tell instances of the kernels apart.
struct SkinnyInstance {
  SkinnyShape shape;
  SkinnyPlan plan;  ///< with nothing left to be chosen; SkinnyKernel::chosen adds splits
  std::optional<Activation> activation;
  bool normed = false;  ///< an RMS norm of x comes first; of dot and row
  bool gated = false;   ///< `activation` is a gate; of those with a norm
};

const LazyKernel& skinny_kernel(const SkinnyInstance& instance);
/// Adds the accumulators of blocks that share k. The plan does not matter.
const LazyKernel& skinny_splits_kernel(const SkinnyInstance& instance);

}  // namespace kernwright::kernels
