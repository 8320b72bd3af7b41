// The kernel of a product with few rows, and its grid.
#include "kernels_src/plans/skinny_plan.h"

#include <doctest/doctest.h>

#include <utility>

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

TEST_CASE("skinny plan: boxes have 64 rows of the weights, of many 128") {
  CHECK(plan_skinny(hopper_rows(64, 1024, 4096), {}).warps == 4);
  CHECK(plan_skinny(hopper_rows(64, 6144, 4096), {}).warps == 4);
  CHECK(plan_skinny(hopper_rows(64, 11008, 4096), {}).warps == 4);
  CHECK(plan_skinny(hopper_rows(64, 14336, 4096), {}).warps == 8);
  CHECK(plan_skinny(hopper_rows(64, 128256, 4096), {}).warps == 8);
}

TEST_CASE("skinny plan: one row of x, and two of large weights, are summed without tiles") {
  const auto kernel_of = [](std::int64_t m, std::int64_t n, std::int64_t k) {
    return plan_skinny(hopper_rows(m, n, k), {}).kernel;
  };
  CHECK(kernel_of(1, 4096, 4096) == SkinnyKernel::dot);
  CHECK(kernel_of(1, 1024, 1024) == SkinnyKernel::dot);
  CHECK(kernel_of(1, 4096, 768) == SkinnyKernel::tiles);  // short rows
  CHECK(kernel_of(2, 4096, 4096) == SkinnyKernel::dot);
  CHECK(kernel_of(2, 2048, 4096) == SkinnyKernel::tiles);
  CHECK(kernel_of(3, 14336, 4096) == SkinnyKernel::tiles);
  SkinnyShape older = hopper_rows(1, 14336, 4096);
  older.clusters = older.overlapping = older.boxes = false;
  CHECK(plan_skinny(older, {}).kernel == SkinnyKernel::tiles);
  CHECK(plan_skinny(older, {}).hint == 0);
  CHECK(plan_skinny(hopper_rows(4, 14336, 4096), {}).hint == 1);
}

TEST_CASE("skinny plan: a load of each of several rows is in flight") {
  struct Case {
    std::int64_t m, n, k;
    int warps, rows, unroll;
  };
  for (const Case& each :
       {Case{1, 4096, 4096, 8, 4, 1}, Case{1, 128256, 4096, 8, 4, 1}, Case{1, 4096, 14336, 8, 4, 1},
        Case{1, 2048, 2048, 4, 2, 1}, Case{1, 256, 4096, 8, 1, 1}, Case{1, 300, 4096, 8, 2, 1},
        Case{1, 64, 16384, 8, 1, 1}, Case{2, 14336, 4096, 4, 8, 1}}) {
    const SkinnyPlan plan = plan_skinny(hopper_rows(each.m, each.n, each.k), {});
    CAPTURE(each.n);
    CAPTURE(each.k);
    CHECK(plan.kernel == SkinnyKernel::dot);
    CHECK(plan.warps == each.warps);
    CHECK(plan.rows == each.rows);
    CHECK(plan.unroll == each.unroll);
    CHECK(plan.splits == 1);
  }
  SkinnyShape floats = hopper_rows(1, 4096, 4096);
  floats.x_type = floats.weight_type = ScalarType::float32;
  floats.width = 4;
  const std::pair<int, int> warps_and_rows[] = {{8, 4}, {8, 4}, {4, 4}, {4, 4},
                                                {4, 8}, {4, 8}, {4, 8}, {4, 8}};
  for (floats.m = 1; floats.m <= 8; ++floats.m) {
    const SkinnyPlan plan = plan_skinny(floats, {});
    CAPTURE(floats.m);
    CHECK(std::pair{plan.warps, plan.rows} == warps_and_rows[floats.m - 1]);
    CHECK(plan.unroll == 2);
  }
  // Whoever measures may ask for others.
  const SkinnyPlan wanted = {.kernel = SkinnyKernel::dot, .warps = 16, .rows = 2, .unroll = 4};
  const SkinnyPlan plan = plan_skinny(hopper_rows(1, 4096, 4096), wanted);
  CHECK(plan.warps == 16);
  CHECK(plan.rows == 2);
  CHECK(plan.unroll == 4);
}

TEST_CASE("skinny plan: tiles of large weights come in blocks of 16 warps in whole waves") {
  const auto plan_of = [](std::int64_t n, std::int64_t k) {
    return plan_skinny(hopper_rows(8, n, k), {});
  };
  CHECK(plan_of(4096, 4096).warps == 16);
  CHECK(plan_of(14336, 4096).warps == 8);
  CHECK(plan_of(128256, 4096).warps == 16);
  CHECK(plan_of(14336, 4096).unroll == 2);
  CHECK(plan_of(1024, 4096).warps == 8);
  CHECK(plan_of(1024, 4096).unroll == 4);
}

TEST_CASE("skinny plan: blocks with boxes fit the multiprocessors, and splits a cluster") {
  for (const std::int64_t m : {17, 32, 33, 64}) {
    for (const std::int64_t n : {8, 4096, 14336, 128256}) {
      for (const std::int64_t k : {8, 4096, 28672}) {
        const SkinnyShape shape = hopper_rows(m, n, k);
        const SkinnyPlan plan = plan_skinny(shape, {.kernel = SkinnyKernel::wgmma});
        CAPTURE(m);
        CAPTURE(n);
        CAPTURE(k);
        CHECK(plan.columns * 8 >= m);
        const std::int64_t blocks = (n + 16 * plan.warps - 1) / (16 * plan.warps) * plan.splits;
        const bool alone = plan.ahead > 0 && blocks < 132 && k > 4096;
        const std::int64_t beside =
            alone ? 1 : std::min<std::int64_t>(plan.stages > 3 ? 3 : 1, (blocks + 131) / 132 + 1);
        CHECK(beside * (skinny_shared_bytes(shape, plan) + 1024) <= 233472);
        CHECK(plan.splits >= 1);
        CHECK(plan.splits <= std::min<std::int64_t>(8, (k + 255) / 256));
        CHECK(plan.clustered == (plan.splits > 1));
      }
    }
  }
  CHECK(plan_skinny(hopper_rows(16, 4096, 4096), {}).splits == 2);
  CHECK(plan_skinny(hopper_rows(32, 4096, 4096), {}).splits == 2);
  CHECK(plan_skinny(hopper_rows(32, 4096, 4096), {}).ahead == 4);
  CHECK(plan_skinny(hopper_rows(32, 6144, 4096), {}).splits == 3);
  CHECK(plan_skinny(hopper_rows(32, 2048, 4096), {}).splits == 3);
  CHECK(plan_skinny(hopper_rows(32, 2048, 2048), {}).splits == 8);
  CHECK(plan_skinny(hopper_rows(64, 2048, 4096), {}).splits == 8);
  CHECK(plan_skinny(hopper_rows(16, 1536, 4096), {}).splits == 6);
  CHECK(plan_skinny(hopper_rows(16, 6144, 4096), {}).splits == 2);
  CHECK(plan_skinny(hopper_rows(16, 6400, 4096), {}).splits == 1);
  CHECK(plan_skinny(hopper_rows(32, 1024, 4096), {}).splits == 8);
  CHECK(plan_skinny(hopper_rows(16, 14336, 4096), {}).splits == 1);
  // Whoever measures may ask for more.
  const SkinnyPlan many =
      plan_skinny(hopper_rows(64, 64, 64), {.kernel = SkinnyKernel::wgmma, .splits = 16});
  CHECK(many.splits == 8);
}

TEST_CASE("skinny plan: one row of x with weights of one byte") {
  const auto shape_of = [](std::int64_t n, std::int64_t k) {
    SkinnyShape shape = hopper_rows(1, n, k);
    shape.weight_type = ScalarType::int8;
    shape.width = 16;
    shape.boxes = false;
    return shape;
  };
  struct Case {
    std::int64_t n, k;
    int warps, parts;
  };
  for (const Case& each :
       {Case{14336, 4096, 8, 1}, Case{8192, 8192, 16, 1}, Case{4096, 5120, 5, 2}}) {
    const SkinnyPlan plan = plan_skinny(shape_of(each.n, each.k), {});
    CAPTURE(each.k);
    CHECK(plan.kernel == SkinnyKernel::row);
    CHECK(plan.warps == each.warps);
    CHECK(plan.unroll == each.parts);
    CHECK(plan.ahead == 1);
    CHECK(plan.splits == 1);
  }
  const auto takes = [](const SkinnyShape& shape) {
    return plan_skinny(shape, {}).kernel == SkinnyKernel::row;
  };
  CHECK_FALSE(takes(shape_of(1024, 4096)));   // small
  CHECK_FALSE(takes(shape_of(1024, 16384)));  // fewer tiles than multiprocessors
  CHECK_FALSE(takes(shape_of(14336, 3072)));  // short
  CHECK_FALSE(takes(shape_of(4096, 11264)));  // leaves warps idle
  CHECK_FALSE(takes(shape_of(4096, 14336)));  // two parts of k for each of many warps
  for (const auto change : {0, 1, 2, 3, 4}) {
    SkinnyShape other = shape_of(4096, 4096);
    if (change == 0) other.m = 2;
    if (change == 1) other.clusters = other.overlapping = false;
    if (change == 2) other.width = 8;
    if (change == 3) other.batches = 2;
    if (change == 4) other.x_type = ScalarType::float32;
    CAPTURE(change);
    CHECK_FALSE(takes(other));
  }
  // Whoever asks for it gets it where it fits, and tiles elsewhere.
  const SkinnyPlan row = {.kernel = SkinnyKernel::row};
  for (const std::int64_t k : {0, 16, 512, 4112, 11264, 16384}) {
    const SkinnyPlan plan = plan_skinny(shape_of(9, k), row);
    CAPTURE(k);
    CHECK(plan.kernel == SkinnyKernel::row);
    CHECK(plan.warps >= 1);
    CHECK(plan.warps <= 16);
    CHECK((plan.unroll == 1 || plan.unroll == 2));
    CHECK(std::int64_t{plan.warps} * plan.unroll * 512 >= k);
  }
  CHECK(plan_skinny(shape_of(9, 16400), row).kernel == SkinnyKernel::tiles);
  for (const auto& [wanted, warps] : {std::pair{9, 9}, {4, 4}, {3, 8}, {17, 8}}) {
    const SkinnyPlan plan =
        plan_skinny(shape_of(9, 4096), {.kernel = SkinnyKernel::row, .warps = wanted});
    CHECK(plan.warps == warps);
  }
}

TEST_CASE("skinny plan: weights of one byte and up to 8 rows of x") {
  struct Case {
    ScalarType type;
    std::int64_t m, n, k;
    int warps, rows, unroll;
  };
  constexpr ScalarType whole = ScalarType::int8, real = ScalarType::float8_e4m3fn;
  for (const Case& each :
       {Case{real, 8, 4096, 4096, 8, 1, 4}, Case{whole, 2, 4096, 4096, 8, 1, 4},
        Case{real, 1, 4096, 14336, 8, 1, 4}, Case{real, 8, 14336, 4096, 4, 1, 2},
        Case{whole, 8, 14336, 4096, 4, 2, 2}, Case{real, 2, 14336, 512, 4, 1, 2},
        Case{whole, 8, 1024, 4096, 8, 1, 4}, Case{real, 2, 2048, 2048, 8, 1, 4},
        Case{whole, 8, 6144, 2048, 8, 1, 2}, Case{real, 8, 6144, 2048, 8, 1, 2}}) {
    SkinnyShape shape = hopper_rows(each.m, each.n, each.k);
    shape.weight_type = each.type;
    shape.width = 16;
    const SkinnyPlan plan = plan_skinny(shape, {});
    CAPTURE(each.n);
    CAPTURE(each.k);
    CHECK(plan.kernel == SkinnyKernel::tiles);
    CHECK(plan.warps == each.warps);
    CHECK(plan.rows == each.rows);
    CHECK(plan.unroll == each.unroll);
    CHECK(plan.splits == 1);
    CHECK(plan.ahead == 1);
    shape.overlapping = false;
    CHECK(plan_skinny(shape, {}).ahead == 0);
  }
}

TEST_CASE("skinny plan: launches that run at once as a whole begin early") {
  const auto ahead = [](std::int64_t m, std::int64_t n, std::int64_t k) {
    return plan_skinny(hopper_rows(m, n, k), {}).ahead;
  };
  CHECK(ahead(2, 4096, 4096) == 1);
  CHECK(ahead(2, 14336, 4096) == 0);
  CHECK(ahead(8, 14336, 4096) == 1);
  CHECK(ahead(8, 128256, 4096) == 0);
  CHECK(ahead(16, 4096, 4096) == 4);
  CHECK(ahead(16, 14336, 4096) == 0);  // 20 multiprocessors are idle
  CHECK(ahead(16, 128256, 4096) == 0);
  CHECK(ahead(16, 2112, 8192) == 0);  // clusters of four blocks do not all run at once
  CHECK(ahead(16, 2048, 8192) == 4);  // those of three do
}

TEST_CASE("skinny plan: one row begins early, and fetches a load of each row") {
  for (const auto& [n, k] : {std::pair{3072, 2048}, {16384, 2048}, {4096, 14336}, {64, 16384}}) {
    const SkinnyPlan plan = plan_skinny(hopper_rows(1, n, k), {});
    CHECK(plan.kernel == SkinnyKernel::dot);
    CHECK(plan.ahead == 1);
  }
  SkinnyShape shape = hopper_rows(1, 4096, 4096);
  CHECK(plan_skinny(shape, {.ahead = 0}).ahead == 0);  // as who measures asks for
  shape.overlapping = false;
  CHECK(plan_skinny(shape, {}).ahead == 0);
}

TEST_CASE("skinny plan: two blocks of a launch that begins early do not share a multiprocessor") {
  const auto never_two = [](const SkinnyShape& shape) {
    const SkinnyPlan plan = plan_skinny(shape, {.kernel = SkinnyKernel::wgmma});
    CAPTURE(shape.m);
    CHECK(plan.ahead > 0);
    CHECK(2 * (skinny_shared_bytes(shape, plan) + 1024) > 233472);
    // Whoever measures may ask for fewer stages, or for a launch that begins late.
    CHECK(plan_skinny(shape, {.kernel = SkinnyKernel::wgmma, .stages = 6}).stages == 6);
    const SkinnyPlan late = plan_skinny(shape, {.kernel = SkinnyKernel::wgmma, .ahead = 0});
    CHECK(2 * (skinny_shared_bytes(shape, late) + 1024) <= 233472);
  };
  for (const std::int64_t m : {9, 16, 17, 32, 64}) never_two(hopper_rows(m, 4096, 14336));
  for (const std::int64_t m : {9, 32}) never_two(hopper_rows(m, 2048, 4096));
  CHECK(plan_skinny(hopper_rows(16, 4096, 4096), {}).stages == 8);  // short parts of k
}

TEST_CASE("skinny plan: weights of one byte and more than 8 rows of x") {
  const auto plan = [](std::int64_t m, std::int64_t n, std::int64_t k) {
    SkinnyShape shape = hopper_rows(m, n, k);
    shape.weight_type = ScalarType::float8_e4m3fn;
    shape.width = 16;
    shape.boxes = false;
    return plan_skinny(shape, {});
  };
  // The kernel of tiles, where x is short or the weights are not too large.
  SkinnyPlan made = plan(16, 4096, 4096);
  CHECK(made.kernel == SkinnyKernel::tiles);
  CHECK(made.rows == 1);
  CHECK(made.unroll == 2);
  CHECK(made.warps == 8);
  CHECK(made.hint == 1);
  CHECK(made.ahead == 1);
  made = plan(16, 6144, 4096);
  CHECK(made.rows == 2);
  CHECK(made.unroll == 1);
  made = plan(16, 14336, 4096);
  CHECK(made.kernel == SkinnyKernel::tiles);
  CHECK(made.warps == 4);
  CHECK(made.unroll == 2);
  CHECK(plan(32, 6144, 4096).kernel == SkinnyKernel::tiles);
  CHECK(plan(32, 14336, 4096).kernel == SkinnyKernel::staged);
  CHECK(plan(33, 6144, 4096).kernel == SkinnyKernel::staged);
  CHECK(plan(16, 1024, 4096).kernel == SkinnyKernel::staged);
  // Blocks of 64 rows of the weights, and at most two of them share k.
  made = plan(64, 4096, 4096);
  CHECK(made.rows * made.warps * 16 == 64);
  CHECK(made.unroll == 4);
  CHECK(made.splits == 2);
  CHECK(plan(64, 14336, 4096).splits == 1);
  CHECK(plan(64, 128256, 4096).rows == 2);
  CHECK(plan(64, 1024, 4096).splits == 8);
}

TEST_CASE("skinny plan: many rows and weights of one byte are products by warpgroups") {
  const auto shape_of = [](std::int64_t m, std::int64_t n, std::int64_t k) {
    SkinnyShape shape = hopper_rows(m, n, k);
    shape.weight_type = ScalarType::int8;
    shape.width = 16;
    return shape;
  };
  const auto kernel = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
    return plan_skinny(shape_of(m, n, k), {}).kernel;
  };
  const SkinnyPlan plan = plan_skinny(shape_of(64, 4096, 4096), {});
  CHECK(plan.kernel == SkinnyKernel::bytes);
  CHECK(plan.rows == 4);
  CHECK(plan.splits == 2);
  CHECK(plan.clustered);
  CHECK(plan.stages % plan.unroll == 0);
  CHECK(skinny_shared_bytes(shape_of(64, 4096, 4096), plan) <= 227 * 1024);
  CHECK(kernel(33, 4096, 4096) == SkinnyKernel::bytes);
  CHECK(kernel(8, 4096, 4096) != SkinnyKernel::bytes);
  CHECK(kernel(64, 1024, 1024) == SkinnyKernel::bytes);
  CHECK(kernel(64, 1024, 1008) == SkinnyKernel::staged);
  CHECK(kernel(17, 14336, 4096) == SkinnyKernel::bytes);
  CHECK(kernel(16, 14336, 4096) == SkinnyKernel::tiles);
  CHECK(kernel(16, 4096, 8192) == SkinnyKernel::bytes);
  CHECK(kernel(16, 4096, 4096) == SkinnyKernel::tiles);
  CHECK(kernel(16, 128256, 4096) == SkinnyKernel::bytes);
  CHECK(kernel(8, 128256, 4096) == SkinnyKernel::tiles);
  CHECK(kernel(64, 511, 8192) == SkinnyKernel::staged);
  CHECK(kernel(32, 512, 3584) == SkinnyKernel::bytes);
  CHECK(kernel(16, 3584, 3584) == SkinnyKernel::bytes);
  CHECK(kernel(9, 1024, 4096) == SkinnyKernel::bytes);
  CHECK(kernel(8, 1024, 4096) == SkinnyKernel::tiles);
  struct Case {
    std::int64_t n, k;
    int warps, teams, splits;
  };
  for (const Case& each : {Case{1024, 4096, 8, 2, 6}, Case{2048, 8192, 8, 2, 3},
                           Case{6144, 4096, 16, 4, 1}, Case{14336, 4096, 16, 2, 1}}) {
    const SkinnyPlan made = plan_skinny(shape_of(64, each.n, each.k), {});
    CHECK(made.warps == each.warps);
    CHECK(made.unroll == each.teams);
    CHECK(made.splits == each.splits);
  }
  // Very many rows of the weights: few stages for few rows of x, large blocks for many.
  SkinnyPlan very = plan_skinny(shape_of(16, 128256, 4096), {});
  CHECK(very.rows == 8);
  CHECK(very.stages == 4);
  SkinnyShape real = shape_of(64, 128256, 4096);
  CHECK(plan_skinny(real, {}).unroll == 2);  // int8 was slower in large blocks
  real.weight_type = ScalarType::float8_e4m3fn;
  very = plan_skinny(real, {});
  CHECK(very.rows == 16);
  CHECK(very.unroll == 1);
  CHECK(skinny_shared_bytes(shape_of(64, 128256, 4096), very) <= 227 * 1024);
  SkinnyShape shape = shape_of(64, 4096, 4096);
  shape.batches = 2;
  CHECK(plan_skinny(shape, {.kernel = SkinnyKernel::bytes}).kernel != SkinnyKernel::bytes);
  // No stage is shared by teams, which may be two rounds of the ring apart.
  for (const int teams : {2, 3, 4}) {
    SkinnyPlan asked = {.kernel = SkinnyKernel::bytes, .unroll = teams, .stages = teams + 1};
    asked = plan_skinny(shape_of(64, 4096, 4096), asked);
    CHECK(asked.stages == teams);
    asked = {.kernel = SkinnyKernel::bytes, .unroll = teams};
    CHECK(plan_skinny(shape_of(64, 4096, 4096), asked).stages % teams == 0);
  }
}

TEST_CASE("skinny plan: clusters of two share k of weights with 4096 rows") {
  for (const std::int64_t m : {16, 33, 64}) {
    for (const std::int64_t k : {4096, 14336}) {
      const SkinnyPlan plan = plan_skinny(hopper_rows(m, 4096, k), {});
      CHECK(plan.kernel == SkinnyKernel::wgmma);
      CHECK(plan.splits >= 2);
      CHECK(plan.clustered);
    }
  }
}
