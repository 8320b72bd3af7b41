// The rule for tiles: which edges come last, and what they cost.
#include "kernels_src/gemm/gemm_choice.h"

#include "unit/random_engines.h"

#include <doctest/doctest.h>

#include <random>
#include <utility>

using namespace kernwright::kernels;

namespace {

constexpr GemmTile kWide{128, 256, 4, 2, false, 1}, kShared{128, 256, 4, 2, false, 2};
constexpr GemmTile kInTurn{64, 256, 4, 2, true, 1}, kSmaller{128, 192, 4, 2, false, 1};

GemmSize size_of(std::int64_t rows, std::int64_t columns) {
  return {.rows = rows, .columns = columns, .inner = 4096, .a_pitch = 8192, .b_pitch = 8192};
}
GemmEdges edges_of(std::int64_t rows, std::int64_t columns, const GemmTile& tile) {
  return gemm_edges(size_of(rows, columns), {tile});
}
double cost_of(std::int64_t rows, std::int64_t columns, const GemmTile& tile) {
  const GemmSize size = size_of(rows, columns);
  return gemm_cost(size, choose_gemm(size, tile, 1));
}

}  // namespace

TEST_CASE("few rows and few columns of a last tile are edges") {
  for (const std::int64_t rows : {1, 8, 64}) CHECK(edges_of(4096 + rows, 4096, kWide).short_rows);
  for (const std::int64_t rows : {0, 65, 127}) {
    CHECK_FALSE(edges_of(4096 + rows, 4096, kWide).short_rows);
  }
  for (const std::int64_t columns : {1, 8, 64}) {
    CHECK(edges_of(4096, 4096 + columns, kWide).narrow_columns);
  }
  for (const std::int64_t columns : {0, 65, 255}) {
    CHECK_FALSE(edges_of(4096, 4096 + columns, kWide).narrow_columns);
  }
  CHECK(edges_of(8, 8, kShared).short_rows);
  CHECK_FALSE(edges_of(4096 + 128 + 8, 4096, kShared).short_rows);
  // Groups that take turns have all rows of a tile.
  CHECK_FALSE(edges_of(4104, 4104, kInTurn).short_rows);
  CHECK(edges_of(4104, 4104, kInTurn).narrow_columns);
  CHECK_FALSE(edges_of(4104, 4104, kSmaller).short_rows);
  CHECK_FALSE(edges_of(4104, 4104, kSmaller).narrow_columns);
}

TEST_CASE("pairs of blocks share b where others would not begin early") {
  const auto cluster_of = [](std::int64_t rows, std::int64_t columns, std::int64_t inner) {
    GemmSize size = size_of(rows, columns);
    size.inner = inner;
    size.bandwidth = 4814;
    size.b_turned = true;
    size.a_pitch = size.b_pitch = 2 * inner;
    return choose_gemm(size).tile.cluster;
  };
  CHECK(cluster_of(256, 8960, 1024) == 2);
  CHECK(cluster_of(203, 8192, 4096) == 2);
  CHECK(cluster_of(128, 8192, 1024) == 1);  // one row of tiles
  CHECK(cluster_of(256, 8192, 512) == 1);   // begins early
}

TEST_CASE("more bandwidth makes products with few rows cheaper, others hardly") {
  const auto cycles = [](std::int64_t rows, int bandwidth) {
    GemmSize size = size_of(rows, 28672);
    size.bandwidth = bandwidth;
    return gemm_cost(size, choose_gemm(size, {128, 128, 6, 2, true, 1}, 1));
  };
  const double gain = cycles(128, 3352) / cycles(128, 4814);
  CHECK(gain > 1.2);
  CHECK(gain < 4814.0 / 3352);
  CHECK(cycles(4096, 3352) == doctest::Approx(cycles(4096, 4814)).epsilon(0.01));
  GemmSize fast = size_of(128, 4096), slow = fast;
  fast.bandwidth = 4814;
  CHECK_FALSE(choose_gemm(slow).tile.split_k);  // kept apart from the choice of the other bandwidth
  CHECK(choose_gemm(fast).tile.split_k);
  CHECK_FALSE(choose_gemm(slow).tile.split_k);
}

TEST_CASE("two groups with 128x64 are preferred where all tiles begin at once") {
  constexpr GemmTile kTwoGroups{128, 64, 8, 2, false, 1}, kLow{64, 128, 8, 2, true, 1};
  CHECK(cost_of(192, 4096, kTwoGroups) < cost_of(192, 4096, kLow));
  CHECK(cost_of(2048, 512, kTwoGroups) > cost_of(2048, 512, kLow));
  CHECK(cost_of(136, 5120, kTwoGroups) > cost_of(136, 5120, kLow));  // 160 tiles, not 120
}

TEST_CASE("parts, groups and promoted accumulators have no edges, gated tiles no narrow ones") {
  GemmSize size = size_of(4104, 4104);
  CHECK(gemm_edges(size, {kWide}).narrow_columns);
  CHECK_FALSE(gemm_edges(size, {kWide, 2}).narrow_columns);
  size.gated = true;
  CHECK(gemm_edges(size, {kWide}).short_rows);
  CHECK_FALSE(gemm_edges(size, {kWide}).narrow_columns);
  for (const auto change :
       {+[](GemmSize& of) { of.batches = 2; }, +[](GemmSize& of) { of.promotes = true; },
        +[](GemmSize& of) { of.groups = 2; }}) {
    GemmSize other = size_of(4104, 4104);
    change(other);
    CHECK_FALSE(gemm_edges(other, {kWide}).short_rows);
    CHECK_FALSE(gemm_edges(other, {kWide}).narrow_columns);
  }
}

TEST_CASE("an edge costs less than a round of whole tiles, and more than nothing") {
  const double whole = cost_of(4096, 4096, kWide), more = cost_of(4096, 4352, kWide);
  for (const auto& [rows, columns] : {std::pair{4104, 4096}, {4096, 4104}, {4104, 4104}}) {
    CHECK(cost_of(rows, columns, kWide) < more);
    CHECK(cost_of(rows, columns, kShared) < cost_of(4352, 4352, kShared));
  }
  CHECK(cost_of(4104, 4104, kWide) > whole);
  // Of 480 whole tiles 48 of 132 multiprocessors have three; they take the 48 of the edges.
  CHECK(cost_of(4104, 3840 + 64, kWide) <= whole);
}

TEST_CASE("clusters that gather run in as few rounds as fit the device") {
  GemmSize size = size_of(128, 2112);
  size.inner = 7168;
  const auto cost = [&](int blocks) {
    return gemm_cost(size, choose_gemm(size, {128, 64, 7, 2, false, blocks, true}, 1));
  };
  CHECK(cost(3) < cost(2));
  CHECK(cost(3) < cost(4));  // 33 of four take two rounds
}

TEST_CASE("the rule's choice is a tile that the kernel has, and as cheap as any for the operands") {
  std::mt19937 engine(20261130);
  const auto draw = [&](unsigned bits) {
    return 1 + static_cast<std::int64_t>(engine() % (1U << engine() % bits));
  };
  for (int i = 0; i < 1500; ++i) {
    GemmSize size{.rows = draw(15), .columns = draw(15), .inner = 16 * draw(11)};
    size.batches = i % 5 == 0 ? draw(8) : 1;
    size.in_bytes = std::size_t{1} << engine() % 3;
    size.b_turned = size.in_bytes != 2 || engine() % 2 == 0;
    size.promotes = size.in_bytes == 1 && engine() % 2 == 0;
    size.block_scales = size.promotes && engine() % 2 == 0;
    size.whole = size.in_bytes == 1 && !size.promotes;
    size.gated = !size.whole && engine() % 4 == 0;
    if (engine() % 6 == 0) size.groups = draw(8);
    size.a_pitch = size.b_pitch = size.inner * static_cast<std::int64_t>(size.in_bytes);
    const GemmChoice choice = choose_gemm(size);
    const GemmTile& tile = choice.tile;
    CAPTURE(describe(choice));
    CAPTURE(size.rows);
    CAPTURE(size.columns);
    CAPTURE(size.inner);
    CHECK_NOTHROW(require_gemm_tile(tile, size.promotes, size.block_scales));
    CHECK(tile.shared_bytes(true, size.block_scales) <= 232448);
    CHECK(tile.threads() <= 1024);
    CHECK(tile.cluster <= 8);
    CHECK((choice.splits >= 1 && choice.splits <= 64 && choice.group >= 1));
    if (size.whole || size.gated || size.groups > 0) CHECK(choice.splits == 1);
    if (size.gated) CHECK(tile.columns % 128 == 0);
    if (size.groups > 0) CHECK_FALSE(tile.split_k);
    // Registers hold the operands of three groups where an element has two bytes.
    if (size.in_bytes != 2) CHECK(tile.groups < 3);
    CHECK(choose_gemm(size) == choice);
    const double cost = gemm_cost(size, choice);
    CHECK(cost > 0);
    const GemmTile plain{128, 128, size.promotes ? 5 : 6, 2, false, 1};
    CHECK(cost <= gemm_cost(size, choose_gemm(size, plain, 1)));
  }
}
