// Which kernel a product with few rows takes, and how it is cut.
#include "kernels_src/gemv/skinny_plan.h"

#include <doctest/doctest.h>

using namespace kernwright;
using namespace kernwright::kernels;

namespace {

SkinnyShape hopper_rows(std::int64_t m, std::int64_t n, std::int64_t k) {
  return {.m = m,
          .n = n,
          .k = k,
          .x_type = ScalarType::bfloat16,
          .weight_type = ScalarType::bfloat16,
          .width = 8,
          .pairs = true,
          .multiprocessors = 132,
          .overlapping = true,
          .clusters = true,
          .boxes = true};
}

}  // namespace

TEST_CASE("skinny plan: more than 8 rows take boxes where there are any") {
  CHECK(plan_skinny(hopper_rows(9, 4096, 4096), {}).kernel == SkinnyKernel::wgmma);
  CHECK(plan_skinny(hopper_rows(8, 4096, 4096), {}).kernel == SkinnyKernel::tiles);
  SkinnyShape shape = hopper_rows(64, 4096, 4096);
  shape.by_columns = true;
  shape.m = 16;
  CHECK(plan_skinny(shape, {}).kernel == SkinnyKernel::column_tiles);
  shape.m = 17;
  CHECK(plan_skinny(shape, {}).kernel == SkinnyKernel::wgmma);
  shape.boxes = false;
  CHECK(plan_skinny(shape, {.kernel = SkinnyKernel::wgmma}).kernel == SkinnyKernel::column_tiles);
  shape.by_columns = false;
  CHECK(plan_skinny(shape, {.kernel = SkinnyKernel::wgmma}).kernel == SkinnyKernel::staged);
}

TEST_CASE("skinny plan: two blocks with boxes fit a multiprocessor, and splits a cluster") {
  for (const std::int64_t m : {17, 32, 33, 64}) {
    for (const std::int64_t n : {8, 4096, 14336, 128256}) {
      for (const std::int64_t k : {8, 4096, 28672}) {
        const SkinnyShape shape = hopper_rows(m, n, k);
        const SkinnyPlan plan = plan_skinny(shape, {});
        CAPTURE(m);
        CAPTURE(n);
        CAPTURE(k);
        CHECK(plan.columns * 8 >= m);
        CHECK(2 * (skinny_shared_bytes(shape, plan) + 1024) <= 233472);
        CHECK(plan.splits >= 1);
        CHECK(plan.splits <= 4);
        CHECK(plan.clustered == (plan.splits > 1));
      }
    }
  }
  CHECK(plan_skinny(hopper_rows(32, 4096, 4096), {}).splits == 4);
  CHECK(plan_skinny(hopper_rows(32, 14336, 4096), {}).splits == 1);
  // Whoever measures may ask for more.
  const SkinnyPlan many =
      plan_skinny(hopper_rows(64, 64, 64), {.kernel = SkinnyKernel::wgmma, .splits = 16});
  CHECK(many.splits == 8);
}
