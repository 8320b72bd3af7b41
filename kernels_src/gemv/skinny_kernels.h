// The kernels of products with few rows.
#pragma once

#include "kernels_src/activations/activations.h"
#include "kernels_src/family.h"
#include "kernels_src/plans/skinny_plan.h"

#include <optional>

namespace kernwright::kernels {

/// What tells instances of the kernels apart.
struct SkinnyInstance {
  SkinnyShape shape;
  SkinnyPlan plan;  ///< with nothing left to be chosen
  std::optional<Activation> activation;
};

const LazyKernel& skinny_kernel(const SkinnyInstance& of);
/// Adds the sums of blocks that share k. The plan does not matter.
const LazyKernel& skinny_splits_kernel(const SkinnyInstance& of);

}  // namespace kernwright::kernels
