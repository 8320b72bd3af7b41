// The plans of products with packed weights: each covers the product and fits the device.
#include "kernels_src/packed/packed_plan.h"

#include "base/errors.h"
#include "base/math.h"
#include "kernels_src/packed/packed_wgmma.h"

#include <doctest/doctest.h>

#include <cstddef>
#include <tuple>
#include <utility>
#include <vector>

using namespace kernwright;
using namespace kernwright::kernels;

namespace {

constexpr PackedDevice kHopper = {
    .multiprocessors = 132, .shared_bytes = 232448, .overlapping = true, .wgmma = true};
constexpr PackedDevice kAmpere = {.multiprocessors = 108, .shared_bytes = 166912};

PackedWeights weights_of(PackedFormat format, std::int64_t n, std::int64_t k) {
  PackedWeights w;
  w.format = format;
  w.n = n;
  w.k = k;
  w.group = w.traits().has_group_sizes() ? 64 : 0;
  return w;
}

/// Weights of every format, large, small and long; NF4 with nested scales as well.
std::vector<PackedWeights> all_weights() {
  std::vector<PackedWeights> all;
  for (std::size_t i = 0; i < kPackedTraits.size(); ++i) {
    for (const std::int64_t n : {1, 40, 2048, 4090, 4096, 4240, 14336, 128256}) {
      for (const std::int64_t k : {256, 3840, 4096, 8192, 14336, 16640, 65536})
        all.push_back(weights_of(static_cast<PackedFormat>(i), n, k));
    }
  }
  for (const std::int64_t k : {4096, 8192, 8448}) {
    all.push_back(weights_of(PackedFormat::nf4, 8192, k));
    all.back().parts[4].emplace();
  }
  return all;
}

constexpr std::int64_t kRows[] = {1, 2, 8, 9, 16, 17, 32, 33, 64, 65, 128, 300, 512};

/// Whether the blocks of the grid have all rows of the weights and of x.
bool covers(const PackedWeights& w, std::int64_t m, const SkinnyPlan& plan,
            const PackedDevice& device) {
  const std::int64_t blocks = packed_blocks(w, m, plan, device), tiles = ceil_div(w.n, 16);
  const std::int64_t across = m == 1 ? 1 : ceil_div(m, std::int64_t{8} * plan.columns);
  switch (plan.kernel) {
    case SkinnyKernel::ring:  // blocks stay, and take tile after tile
      return m == 1 ? blocks >= 1 && blocks <= tiles
                    : m <= 8 * plan.columns && blocks * plan.rows >= tiles;
    case SkinnyKernel::wgmma:
      return blocks == ceil_div(w.n, std::int64_t{16} * plan.warps) * across;
    default:
      break;
  }
  if (m <= kSkinnyRows) return across == 1 && blocks * plan.rows >= tiles;
  return blocks == ceil_div(w.n, std::int64_t{16} * plan.rows * plan.warps) * across;
}

}  // namespace

TEST_CASE("packed plan: each plan covers the product and fits the device") {
  for (const PackedDevice& device : {kHopper, kAmpere}) {
    for (const PackedWeights& w : all_weights()) {
      for (const std::int64_t m : kRows) {
        CAPTURE(w.traits().name);
        CAPTURE(w.n);
        CAPTURE(w.k);
        CAPTURE(m);
        const SkinnyPlan plan = plan_packed(w, m, {}, device);
        const bool clusters =
            plan.kernel == SkinnyKernel::wgmma || plan.kernel == SkinnyKernel::ring;
        const bool sound = plan.warps >= 1 && plan.splits >= 1 && (!clusters || plan.splits <= 8);
        CHECK((sound && covers(w, m, plan, device)));
        CHECK(packed_shared_bytes(w, m, plan) <= device.shared_bytes);
      }
    }
  }
}

TEST_CASE("packed plan: kernels of Hopper are for Hopper, and for formats that they decode") {
  for (const PackedWeights& w : all_weights()) {
    for (const std::int64_t m : kRows) {
      CAPTURE(w.traits().name);
      CHECK(plan_packed(w, m, {}, kAmpere).kernel == SkinnyKernel::chosen);
      PackedDevice newer = kHopper;  // with clusters, without wgmma
      newer.wgmma = false;
      CHECK(plan_packed(w, m, {}, newer).kernel != SkinnyKernel::wgmma);
      const SkinnyPlan plan = plan_packed(w, m, {}, kHopper);
      if (plan.kernel == SkinnyKernel::wgmma) CHECK(w.traits().has_warpgroups);
      if (plan.kernel == SkinnyKernel::ring && m == 1) CHECK_FALSE(w.traits().has_byte_codes());
    }
  }
}

TEST_CASE("packed plan: one row of models' layers stays with blocks that stay") {
  for (const PackedFormat format : {PackedFormat::q4_k, PackedFormat::q6_k, PackedFormat::nvfp4,
                                    PackedFormat::mxfp4, PackedFormat::nf4}) {
    for (const auto& [n, k] : {std::pair{4096, 4096}, {4096, 14336}, {8192, 28672}}) {
      CAPTURE(k);
      const PackedWeights w = weights_of(format, n, k);
      CHECK(plan_packed(w, 1, {}, kHopper).kernel == SkinnyKernel::ring);
    }
  }
}

TEST_CASE("packed plan: large weights have work for most multiprocessors") {
  for (std::size_t i = 0; i < kPackedTraits.size(); ++i) {
    for (const auto& [n, k] : {std::pair{14336, 4096}, {8192, 8192}, {4096, 14336}}) {
      const PackedWeights w = weights_of(static_cast<PackedFormat>(i), n, k);
      for (const std::int64_t m : {1, 8, 16, 33, 64}) {
        const SkinnyPlan plan = plan_packed(w, m, {}, kHopper);
        CAPTURE(w.traits().name);
        CAPTURE(n);
        CAPTURE(m);
        CHECK(2 * packed_blocks(w, m, plan, kHopper) * plan.splits >= kHopper.multiprocessors);
      }
    }
  }
}

TEST_CASE("packed plan: the points that are asked for stay") {
  const PackedWeights w = weights_of(PackedFormat::q4_k, 4096, 4096);
  const SkinnyPlan one = plan_packed(w, 1, {.warps = 4, .stages = 3}, kHopper);
  CHECK(one.kernel == SkinnyKernel::ring);
  CHECK(one.warps == 4);
  CHECK(one.stages == 3);
  const SkinnyPlan ring = plan_packed(w, 8, {.warps = 8, .splits = 4, .stages = 3}, kHopper);
  CHECK(ring.kernel == SkinnyKernel::ring);
  CHECK(ring.warps == 8);
  CHECK(ring.splits == 4);
  CHECK(ring.stages == 3);
  const SkinnyPlan groups =
      plan_packed(w, 64, {.kernel = SkinnyKernel::wgmma, .warps = 8, .splits = 3}, kHopper);
  CHECK(groups.warps == 8);
  CHECK(groups.splits == 3);
  const SkinnyPlan tiles = plan_packed(w, 3, {.warps = 8, .splits = 2}, kHopper);
  CHECK(tiles.kernel == SkinnyKernel::chosen);
  CHECK(tiles.splits == 2);
}

TEST_CASE("packed plan: plans of warpgroups that no kernel has are refused") {
  PackedDevice newer = kHopper;
  newer.wgmma = false;
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
  for (const PackedTraits& row : kPackedTraits) {
    if (row.has_warpgroups) continue;
    const PackedWeights none = weights_of(packed_format(row.name), 4096, 4096);
    const SkinnyPlan named = {.kernel = SkinnyKernel::wgmma};
    CHECK_THROWS_AS(plan_packed(none, 17, named, kHopper), InvalidArgument);
  }
  const SkinnyPlan spread = {.kernel = SkinnyKernel::wgmma, .rows = kPackedSpread};
  const PackedWeights bytes = weights_of(PackedFormat::q8_0, 4096, 4096);
  CHECK_THROWS_AS(plan_packed(bytes, 64, spread, kHopper), InvalidArgument);
  // Warps of a ring that would have three units of eight rows, or two of 16; a cluster of nine.
  const PackedWeights table = weights_of(PackedFormat::nf4, 4096, 4096);
  for (const auto& [m, warps, splits] : {std::tuple{8, 4, 1}, {16, 8, 1}, {16, 2, 9}}) {
    const SkinnyPlan ring = {.warps = warps, .splits = splits, .stages = 2};
    CHECK_THROWS_AS(plan_packed(table, m, ring, kHopper), InvalidArgument);
  }
}

TEST_CASE("packed plan: what no kernel takes is refused") {
  const PackedWeights w = weights_of(PackedFormat::q8_0, 4096, 4096);
  CHECK_THROWS_AS(plan_packed(w, 1, {.stages = 1}, kHopper), InvalidArgument);  // codes of bytes
  CHECK_THROWS_AS(plan_packed(w, 17, {.stages = 2}, kHopper), InvalidArgument);
  CHECK_THROWS_AS(plan_packed(w, 9, {.warps = 32, .stages = 2}, kHopper), InvalidArgument);
  CHECK_THROWS_AS(plan_packed(w, 9, {.splits = 14, .stages = 2}, kHopper), InvalidArgument);
  CHECK_THROWS_AS(plan_packed(w, 9, {.columns = 1}, kHopper), InvalidArgument);
  CHECK_THROWS_AS(plan_packed(w, 65, {.warps = 2}, kHopper), InvalidArgument);
  const PackedWeights long_weights = weights_of(PackedFormat::q6_k, 4096, 65536);
  CHECK_THROWS_AS(plan_packed(long_weights, 1, {.stages = 1}, kHopper), InvalidArgument);
  CHECK_THROWS_AS(plan_packed(w, 1, {.kernel = SkinnyKernel::row}, kHopper), InvalidArgument);
  CHECK_THROWS_AS(plan_packed(w, 1, {.kernel = SkinnyKernel::dot}, kHopper), InvalidArgument);
  PackedDevice older = kHopper;
  older.overlapping = false;
  CHECK_THROWS_AS(plan_packed(w, 1, {.stages = 2}, older), InvalidArgument);
  CHECK(plan_packed(weights_of(PackedFormat::nf4, 4096, 4096), 1, {}, older).kernel !=
        SkinnyKernel::ring);
}
