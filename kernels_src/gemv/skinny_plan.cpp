// The choice among the kernels for few rows and their parameters.
#include "kernels_src/gemv/skinny_plan.h"

#include <algorithm>
#include <bit>

namespace kernwright::kernels {
namespace {

std::int64_t skinny_parts(std::int64_t count, std::int64_t each) {
  return (count + each - 1) / each;
}

void choose(int& parameter, std::int64_t value) {
  if (parameter <= 0) parameter = static_cast<int>(value);
}

/// Blocks share k only where there are too few rows to keep the device busy.
void choose_splits(SkinnyPlan& plan, const SkinnyShape& shape, std::int64_t blocks,
                   std::int64_t most) {
  const std::int64_t busy = shape.multiprocessors / 2;
  choose(plan.splits, std::clamp<std::int64_t>(busy / std::max<std::int64_t>(1, blocks), 1,
                                               std::max<std::int64_t>(1, most)));
}

void plan_tiles(const SkinnyShape& shape, SkinnyPlan& plan) {
  const int values = 16 / static_cast<int>(scalar_size(shape.weight_type));
  const auto tiles = static_cast<unsigned>(skinny_parts(shape.m, 8));
  choose(plan.columns, std::bit_ceil(tiles));
  choose(plan.warps, 8);
  choose(plan.rows, 1);
  const int loads = plan.columns <= 2 ? 4 : plan.columns == 4 ? 2 : 1;
  choose(plan.unroll, std::max(1, values == 16 ? loads / 2 : loads));
  const std::int64_t groups = skinny_parts(shape.k, std::int64_t{4} * values * plan.unroll);
  const std::int64_t blocks = skinny_parts(shape.n, std::int64_t{16} * plan.rows) * shape.batches;
  choose_splits(plan, shape, blocks, groups / plan.warps);
}

void plan_dot(const SkinnyShape& shape, SkinnyPlan& plan) {
  choose(plan.width, shape.width);
  choose(plan.columns, std::min(8u, std::bit_ceil(static_cast<unsigned>(shape.m))));
  const std::int64_t lanes = skinny_parts(shape.k, std::int64_t{32} * plan.width);
  choose(plan.warps, lanes >= 16 ? 8 : lanes >= 4 ? 4 : 1);
  choose(plan.rows, plan.columns * plan.width > 32 ? 1 : 2);
  choose(plan.unroll, plan.columns * plan.width > 16 ? 2 : 4);
  const std::int64_t blocks =
      skinny_parts(shape.n, plan.rows) * skinny_parts(shape.m, plan.columns) * shape.batches;
  choose_splits(plan, shape, blocks, lanes / (std::int64_t{2} * plan.warps * plan.unroll));
}

}  // namespace

SkinnyPlan plan_skinny(const SkinnyShape& shape, SkinnyPlan wanted) {
  const auto size = static_cast<int>(scalar_size(shape.weight_type));
  const bool fits = shape.x_type != ScalarType::float32 && shape.width * size == 16;
  if (wanted.kernel == SkinnyKernel::chosen || !fits) {
    wanted.kernel = fits ? SkinnyKernel::tiles : SkinnyKernel::dot;
  }
  if (wanted.kernel == SkinnyKernel::tiles) {
    plan_tiles(shape, wanted);
  } else {
    plan_dot(shape, wanted);
  }
  if (wanted.hint < 0) wanted.hint = 0;
  if (!shape.overlapping) wanted.ahead = 0;
  if (wanted.ahead < 0) wanted.ahead = wanted.unroll;
  return wanted;
}

}  // namespace kernwright::kernels
