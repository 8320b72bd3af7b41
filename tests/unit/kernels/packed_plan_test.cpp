// The kernel of a product with packed weights, and its grid.
#include "kernels_src/packed/packed_plan.h"

#include "base/errors.h"
#include "kernels_src/packed/packed_wgmma.h"

#include <doctest/doctest.h>

#include <tuple>
#include <utility>

using namespace kernwright;
using namespace kernwright::kernels;

namespace {

constexpr PackedDevice kHopper = {
    .multiprocessors = 132, .shared_bytes = 232448, .overlapping = true, .wgmma = true};

PackedWeights weights_of(PackedFormat format, std::int64_t n, std::int64_t k) {
  PackedWeights w;
  w.format = format;
  w.n = n;
  w.k = k;
  w.group = w.traits().has_own_groups() ? 64 : 0;
  return w;
}

}  // namespace

TEST_CASE("packed plan: large weights of NF4 and Q4_K take rings") {
  for (const PackedFormat format : {PackedFormat::nf4, PackedFormat::q4_k}) {
    const PackedWeights w = weights_of(format, 8192, 8192);
    CHECK(plan_packed(weights_of(format, 8192, 8448), 1, {}, kHopper).kernel == SkinnyKernel::ring);
    for (const int m : {2, 8, 9, 16}) {
      const bool ring = m <= 8 || format == PackedFormat::nf4;  // warpgroups have K-quants beyond
      CHECK((plan_packed(w, m, {}, kHopper).kernel == SkinnyKernel::ring) == ring);
    }
    CHECK(plan_packed(w, 17, {}, kHopper).kernel != SkinnyKernel::ring);
    const PackedWeights few = weights_of(format, 2048, 8192),
                        flat = weights_of(format, 14336, 3840);
    for (const int m : {1, 8, 16}) {
      CHECK(plan_packed(few, m, {}, kHopper).kernel != SkinnyKernel::ring);
      CHECK(plan_packed(flat, m, {}, kHopper).kernel != SkinnyKernel::ring);
    }
  }
}

TEST_CASE("packed plan: rings for some rows where they were measured to be faster") {
  const auto takes = [](PackedFormat format, std::int64_t n, std::int64_t k, std::int64_t m) {
    return plan_packed(weights_of(format, n, k), m, {}, kHopper).kernel == SkinnyKernel::ring;
  };
  for (const PackedFormat format :
       {PackedFormat::int4, PackedFormat::q4_0, PackedFormat::q4_1, PackedFormat::q5_0,
        PackedFormat::q5_1, PackedFormat::q2_k, PackedFormat::q3_k, PackedFormat::mxfp4,
        PackedFormat::nvfp4, PackedFormat::q5_k, PackedFormat::q6_k, PackedFormat::fp8_block,
        PackedFormat::q8_0}) {
    const bool bytes = format == PackedFormat::fp8_block || format == PackedFormat::q8_0;
    const bool slow = format == PackedFormat::fp8_block || format == PackedFormat::nvfp4;
    const bool units = format == PackedFormat::q5_k || format == PackedFormat::q6_k;
    CHECK(takes(format, 14336, 4096, 16) == (format != PackedFormat::q6_k));
    CHECK(takes(format, 14336, 4096, 8) == (format != PackedFormat::q8_0));
    CHECK(takes(format, 8192, 8192, 8) == (!slow && format != PackedFormat::q8_0));
    CHECK_FALSE(takes(format, 4096, 4096, 8));
    CHECK_FALSE(takes(format, 8192, 14336, 8));
    CHECK(takes(format, 4096, 4096, 9) == !bytes);
    CHECK(takes(format, 4096, 14336, 16) == (!bytes && !units));
    // More units than a cluster's warps.
    for (const std::int64_t k : {32768 + 256, 65536, 1 << 20})
      CHECK_FALSE(takes(format, 14336, k, 16));
  }
  for (const PackedFormat format :
       {PackedFormat::nf4, PackedFormat::fp4, PackedFormat::iq4_nl, PackedFormat::iq4_xs})
    CHECK(takes(format, 4096, 14336, 8));
}

TEST_CASE("packed plan: each warp of a ring has a unit, or two of eight rows and a long k") {
  struct Case {
    std::int64_t n, k;
    int m, columns, splits, units, tiles, blocks;
  };
  for (const Case& each :
       {Case{14336, 4096, 2, 1, 1, 1, 7, 128}, Case{14336, 4096, 16, 2, 1, 1, 7, 128},
        Case{8192, 8192, 8, 1, 2, 1, 8, 64}, Case{8192, 8192, 9, 2, 2, 1, 8, 64},
        Case{4096, 14336, 8, 1, 2, 2, 4, 64}, Case{4096, 14336, 16, 2, 4, 1, 11, 24}}) {
    const PackedWeights w = weights_of(PackedFormat::nf4, each.n, each.k);
    const SkinnyPlan plan = plan_packed(w, each.m, {}, kHopper);
    CHECK(plan.kernel == SkinnyKernel::ring);
    CHECK(plan.warps == 16);
    CHECK(plan.stages == 2);
    CHECK(plan.columns == each.columns);
    CHECK(plan.splits == each.splits);
    CHECK(plan.unroll == each.units);
    CHECK(plan.rows == each.tiles);
    CHECK(packed_blocks(w, each.m, plan, kHopper) == each.blocks);
    CHECK(packed_shared_bytes(w, each.m, plan) <= kHopper.shared_bytes);
  }
  // Warps that would have three units of eight rows, or two of 16, and a cluster of nine.
  const PackedWeights w = weights_of(PackedFormat::nf4, 4096, 4096);
  for (const auto& [m, warps, splits] : {std::tuple{8, 4, 1}, {16, 8, 1}, {16, 2, 9}}) {
    const SkinnyPlan asked = {.warps = warps, .splits = splits, .stages = 2};
    CHECK_THROWS_AS(plan_packed(w, m, asked, kHopper), InvalidArgument);
  }
}

TEST_CASE("packed plan: 9 to 16 rows of large K-quants take warpgroups") {
  struct Case {
    PackedFormat format;
    std::int64_t n, k;
    int warps, splits;
  };
  for (const Case& each :
       {Case{PackedFormat::q4_k, 4096, 14336, 4, 2}, Case{PackedFormat::q5_k, 8192, 8192, 8, 2},
        Case{PackedFormat::q6_k, 14336, 4096, 8, 1}}) {
    const PackedWeights w = weights_of(each.format, each.n, each.k);
    const SkinnyPlan plan = plan_packed(w, 16, {}, kHopper);
    CHECK(plan.kernel == SkinnyKernel::wgmma);
    CHECK(plan.warps == each.warps);
    CHECK(plan.unroll == (each.warps == 4 ? 2 : 1));  // teams
    CHECK(plan.splits == each.splits);
    CHECK(plan.stages % plan.unroll == 0);
    CHECK(plan_packed(w, 8, {}, kHopper).kernel != SkinnyKernel::wgmma);
  }
  CHECK(plan_packed(weights_of(PackedFormat::q5_k, 14336, 4096), 16, {}, kHopper).kernel ==
        SkinnyKernel::ring);
  const PackedWeights flat = weights_of(PackedFormat::q4_k, 64, 1 << 20);
  CHECK(plan_packed(flat, 16, {}, kHopper).kernel != SkinnyKernel::wgmma);
}

TEST_CASE("packed plan: one row of whole codes and of four-bit floats takes whole numbers") {
  for (const PackedFormat format :
       {PackedFormat::int4, PackedFormat::q4_0, PackedFormat::q4_1, PackedFormat::q5_0,
        PackedFormat::q5_1, PackedFormat::q2_k, PackedFormat::q3_k, PackedFormat::q4_k,
        PackedFormat::q5_k, PackedFormat::q6_k, PackedFormat::mxfp4, PackedFormat::nvfp4}) {
    for (const auto& [n, k] : {std::pair{14336, 4096}, {4240, 4096}, {8192, 8192}, {2112, 8192}}) {
      const PackedWeights w = weights_of(format, n, k);
      const SkinnyPlan plan = plan_packed(w, 1, {}, kHopper);
      CHECK(plan.kernel == SkinnyKernel::ring);
      CHECK(plan.warps == 16);
      CHECK(plan.stages == (k > 4096 ? 2 : 1));
      CHECK(packed_blocks(w, 1, plan, kHopper) == 132);
      CHECK(packed_shared_bytes(w, 1, plan) + 2048 <= kHopper.shared_bytes);
    }
    const bool slow = packed_traits(format).has_short_groups();
    const auto kernel = [&](std::int64_t n, std::int64_t k) {
      return plan_packed(weights_of(format, n, k), 1, {}, kHopper).kernel;
    };
    const bool in_row = format == PackedFormat::q4_k || format == PackedFormat::nvfp4;
    CHECK(kernel(4224, 4096) == (in_row ? SkinnyKernel::row : SkinnyKernel::ring));
    CHECK(kernel(4096, 16384) == (slow ? SkinnyKernel::row : SkinnyKernel::ring));
    CHECK(kernel(4096, 16640) == SkinnyKernel::row);
  }
}

TEST_CASE("packed plan: one row with k of about 4096 goes straight into registers") {
  struct Case {
    PackedFormat format;
    int warps, unroll;
  };
  for (const Case& each : {Case{PackedFormat::q4_k, 16, 1}, Case{PackedFormat::nvfp4, 8, 2}}) {
    const PackedWeights w = weights_of(each.format, 4090, 4096);
    const SkinnyPlan plan = plan_packed(w, 1, {}, kHopper);
    CHECK(plan.kernel == SkinnyKernel::row);
    CHECK(plan.warps == each.warps);
    CHECK(plan.unroll == each.unroll);
    CHECK(packed_fetches(w, plan));
    CHECK(packed_blocks(w, 1, plan, kHopper) == 256);
    CHECK(packed_shared_bytes(w, 1, plan) == 0);
    const auto takes = [&](std::int64_t n, std::int64_t k, std::int64_t m) {
      const PackedWeights other = weights_of(each.format, n, k);
      return plan_packed(other, m, {}, kHopper).kernel == SkinnyKernel::row;
    };
    CHECK_FALSE(takes(4096, 4096, 2));
    CHECK_FALSE(takes(4240, 4096, 1));
    CHECK_FALSE(takes(2048, 4096, 1));
    CHECK_FALSE(takes(4096, 3840, 1));
  }
  const PackedWeights longer = weights_of(PackedFormat::nvfp4, 4096, 14336);
  const SkinnyPlan plan = plan_packed(longer, 1, {}, kHopper);
  CHECK(plan.warps == 8);
  CHECK(plan.unroll == 2);
  CHECK_FALSE(packed_fetches(longer, plan));
  for (const PackedFormat format : {PackedFormat::q8_0, PackedFormat::fp8_block}) {
    const PackedWeights w = weights_of(format, 4096, 4096);
    CHECK(plan_packed(w, 1, {}, kHopper).kernel != SkinnyKernel::row);
    const SkinnyPlan asked = {.kernel = SkinnyKernel::row, .warps = 4, .unroll = 4};
    CHECK(plan_packed(w, 1, asked, kHopper).kernel == SkinnyKernel::row);
  }
}

TEST_CASE("packed plan: one row of codes of a table has a block on each multiprocessor") {
  for (const auto& [k, held, format] : {std::tuple{4096, 1, PackedFormat::nf4},
                                        {8192, 2, PackedFormat::iq4_nl},
                                        {16384, 4, PackedFormat::iq4_xs},
                                        {16640, 0, PackedFormat::fp4}}) {
    const PackedWeights w = weights_of(format, 8192, k);
    const SkinnyPlan one = plan_packed(w, 1, {}, kHopper);
    CHECK(one.kernel == SkinnyKernel::ring);
    CHECK(one.warps == 16);
    CHECK(one.stages == 1);
    CHECK(one.columns == held);  // units of k; their x stays in registers
    CHECK(packed_blocks(w, 1, one, kHopper) == 132);
    CHECK(packed_blocks(weights_of(format, 40, k), 1, one, kHopper) == 3);
    CHECK(packed_shared_bytes(w, 1, one) + 2048 <= kHopper.shared_bytes);
  }
}

TEST_CASE("packed plan: one row of NF4 with nested scales goes into registers") {
  for (const auto& [n, k, goes] : {std::tuple{4096, 4096, true},
                                   {8192, 8192, true},
                                   {4096, 8192, false},
                                   {8192, 8448, false}}) {
    PackedWeights w = weights_of(PackedFormat::nf4, n, k);
    w.parts[4].emplace();
    const SkinnyPlan row = plan_packed(w, 1, {}, kHopper);
    CHECK((row.kernel == SkinnyKernel::row) == goes);
    if (!goes) continue;
    CHECK(row.warps == 8);
    CHECK(row.unroll == 1);
    CHECK(packed_shared_bytes(w, 1, row) == 32768);
    CHECK(packed_fetches(w, row) == (k == 4096));
  }
}

TEST_CASE("packed plan: blocks and clusters of warpgroups run at once") {
  struct Case {
    std::int64_t n, k;
    int warps, splits, blocks;
  };
  for (const PackedFormat format : {PackedFormat::q4_k, PackedFormat::q6_k, PackedFormat::q8_0}) {
    for (const Case& each :
         {Case{14336, 4096, 8, 1, 112}, Case{8192, 8192, 8, 2, 64}, Case{4096, 14336, 4, 2, 64},
          Case{4096, 4096, 4, 2, 64}, Case{28672, 8192, 16, 1, 112}}) {
      const PackedWeights w = weights_of(format, each.n, each.k);
      const SkinnyPlan plan = plan_packed(w, 40, {}, kHopper);
      CHECK(plan.kernel == SkinnyKernel::wgmma);
      CHECK(plan.warps == each.warps);
      CHECK(plan.unroll == (plan.warps == 4 ? 2 : 1));  // teams
      CHECK(plan.columns == 8);
      CHECK(plan.splits == each.splits);
      CHECK(packed_blocks(w, 40, plan, kHopper) == each.blocks);
      CHECK(plan.stages >= 2);
      CHECK(packed_shared_bytes(w, 40, plan) <= kHopper.shared_bytes);
    }
  }
}

TEST_CASE("packed plan: teams of warps share k where they were measured to be faster") {
  const auto teams = [](PackedFormat format, std::int64_t n, std::int64_t m) {
    return plan_packed(weights_of(format, n, 4096), m, {}, kHopper).unroll;
  };
  CHECK(teams(PackedFormat::q8_0, 4096, 64) == 2);
  CHECK(teams(PackedFormat::q8_0, 4096, 32) == 2);
  CHECK(teams(PackedFormat::q8_0, 14336, 64) == 1);
  CHECK(teams(PackedFormat::nf4, 14336, 64) == 2);
  CHECK(teams(PackedFormat::nf4, 14336, 32) == 1);
  const SkinnyPlan asked = {.kernel = SkinnyKernel::wgmma, .warps = 4, .unroll = 4};
  const PackedWeights w = weights_of(PackedFormat::q8_0, 4096, 4096);
  CHECK_THROWS_AS(plan_packed(w, 64, asked, kHopper), InvalidArgument);
}

TEST_CASE("packed plan: lanes read codes in the order of x where threads have the registers") {
  const auto order = [](PackedFormat format, std::int64_t n, std::int64_t m) {
    return plan_packed(weights_of(format, n, 4096), m, {}, kHopper).rows;
  };
  CHECK(order(PackedFormat::q4_0, 4096, 64) == kPackedSpread);
  CHECK(order(PackedFormat::q4_0, 14336, 64) == kPackedArranged);
  CHECK(order(PackedFormat::q4_0, 4096, 32) == kPackedArranged);
  CHECK(order(PackedFormat::mxfp4, 14336, 64) == kPackedSpread);
  CHECK(order(PackedFormat::mxfp4, 4096, 32) == kPackedSpread);
  CHECK(order(PackedFormat::mxfp4, 14336, 32) == kPackedArranged);
  CHECK(order(PackedFormat::q8_0, 4096, 64) == kPackedArranged);
  const SkinnyPlan asked = {.kernel = SkinnyKernel::wgmma, .rows = kPackedSpread};
  const PackedWeights bytes = weights_of(PackedFormat::q8_0, 4096, 4096);
  CHECK_THROWS_AS(plan_packed(bytes, 64, asked, kHopper), InvalidArgument);
}

TEST_CASE("packed plan: warpgroups take large weights alone, and only where they are") {
  const auto kernel = [](std::int64_t n, std::int64_t m, const PackedDevice& device) {
    return plan_packed(weights_of(PackedFormat::q4_k, n, 4096), m, {}, device).kernel;
  };
  CHECK(kernel(14336, 64, kHopper) == SkinnyKernel::wgmma);
  CHECK(kernel(14336, 8, kHopper) != SkinnyKernel::wgmma);
  CHECK(kernel(14336, 65, kHopper) != SkinnyKernel::wgmma);
  CHECK(kernel(1024, 64, kHopper) != SkinnyKernel::wgmma);
  CHECK(kernel(4096, 33, kHopper) == SkinnyKernel::wgmma);
  CHECK(kernel(4096, 17, kHopper) == SkinnyKernel::wgmma);
  CHECK(kernel(4096, 16, kHopper) != SkinnyKernel::wgmma);
  CHECK(kernel(2048, 32, kHopper) != SkinnyKernel::wgmma);
  const auto takes = [](PackedFormat format, std::int64_t n, std::int64_t k, std::int64_t m) {
    return plan_packed(weights_of(format, n, k), m, {}, kHopper).kernel == SkinnyKernel::wgmma;
  };
  CHECK_FALSE(takes(PackedFormat::int4, 14336, 3840, 16));
  CHECK(takes(PackedFormat::int4, 14336, 4096, 17));
  for (const PackedFormat format :
       {PackedFormat::q5_0, PackedFormat::iq4_nl, PackedFormat::iq4_xs, PackedFormat::fp4})
    CHECK(takes(format, 14336, 4096, 17));
  for (const PackedFormat format :
       {PackedFormat::q4_1, PackedFormat::q5_1, PackedFormat::q2_k, PackedFormat::q3_k}) {
    CHECK_FALSE(takes(format, 14336, 4096, 17));
    const SkinnyPlan named = {.kernel = SkinnyKernel::wgmma};
    CHECK_THROWS_AS(plan_packed(weights_of(format, 4096, 4096), 17, named, kHopper),
                    InvalidArgument);
  }
  CHECK(takes(PackedFormat::q4_k, 14336, 3840, 9));
  CHECK_FALSE(takes(PackedFormat::q4_k, 14336, 4096, 9));
  CHECK_FALSE(takes(PackedFormat::q4_k, 256, 131072, 64));  // few blocks
  PackedDevice newer = kHopper;
  newer.wgmma = false;
  CHECK(kernel(14336, 64, newer) != SkinnyKernel::wgmma);
  const PackedWeights w = weights_of(PackedFormat::q4_k, 14336, 4096);
  SkinnyPlan asked = {.kernel = SkinnyKernel::wgmma};
  CHECK_THROWS_AS(plan_packed(w, 64, asked, newer), InvalidArgument);
  for (const auto& [warps, columns, splits] :
       {std::tuple{2, 8, 1}, {16, 3, 1}, {16, 8, 9}, {32, 8, 1}}) {
    asked.warps = warps;
    asked.columns = columns;
    asked.splits = splits;
    CHECK_THROWS_AS(plan_packed(w, 64, asked, kHopper), InvalidArgument);
  }
  for (const auto& [warps, teams] : {std::pair{4, 3}, {4, 8}, {16, 2}}) {
    asked = {.kernel = SkinnyKernel::wgmma, .warps = warps, .unroll = teams};
    CHECK_THROWS_AS(plan_packed(w, 64, asked, kHopper), InvalidArgument);
  }
  asked = {.kernel = SkinnyKernel::wgmma, .stages = 8};
  CHECK_THROWS_AS(plan_packed(w, 64, asked, kHopper), InvalidArgument);
}

TEST_CASE("packed plan: what no kernel takes is refused") {
  const PackedWeights w = weights_of(PackedFormat::q8_0, 4096, 4096);
  CHECK_THROWS_AS(plan_packed(w, 1, {.stages = 7}, kHopper), InvalidArgument);
  CHECK_THROWS_AS(plan_packed(w, 17, {.stages = 2}, kHopper), InvalidArgument);
  CHECK_THROWS_AS(plan_packed(w, 9, {.warps = 32, .stages = 2}, kHopper), InvalidArgument);
  CHECK_THROWS_AS(plan_packed(w, 9, {.splits = 14, .stages = 2}, kHopper), InvalidArgument);
  CHECK_THROWS_AS(plan_packed(w, 9, {.columns = 1}, kHopper), InvalidArgument);
  CHECK_THROWS_AS(plan_packed(w, 65, {.warps = 2}, kHopper), InvalidArgument);
  SkinnyPlan row = {.kernel = SkinnyKernel::row};
  CHECK_THROWS_AS(plan_packed(w, 2, row, kHopper), InvalidArgument);
  for (const auto& [warps, unroll] : {std::pair{32, 1}, {16, 4}, {3, 1}, {2, 8}}) {
    row.warps = warps;
    row.unroll = unroll;
    CHECK_THROWS_AS(plan_packed(w, 1, row, kHopper), InvalidArgument);
  }
  CHECK_THROWS_AS(plan_packed(w, 1, {.kernel = SkinnyKernel::dot}, kHopper), InvalidArgument);
  PackedDevice older = kHopper;
  older.overlapping = false;
  CHECK_THROWS_AS(plan_packed(w, 1, {.stages = 2}, older), InvalidArgument);
  CHECK(plan_packed(weights_of(PackedFormat::nf4, 4096, 4096), 1, {}, older).kernel !=
        SkinnyKernel::ring);
}
