// The one place for decisions about tiles, clusters and splits.
#include "kernels_src/gemm/gemm_choice.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/hash.h"
#include "base/math.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

namespace kernwright::kernels {
namespace {

constexpr std::int64_t kGemmLine = 128;  // bytes of a stage along the inner dimension

// Cycles and bytes of one multiprocessor of an H100; all but the memory's after measurements of
// these tiles at 24 shapes of products of bfloat16.
constexpr double kFlopsPerCycle = 4096;  // of 16-bit floats; further sizes in proportion
constexpr double kAddsPerCycle = 128;    // in float32
constexpr double kBytesPerCycle = 54;    // from L2, all multiprocessors at once
constexpr double kOneRoundBytes = 60;    // of tiles above 64x64 that all begin at once
constexpr double kManyBytes = 62;        // of 128 rows whose groups take turns, and of three groups
// Of one round with scales of blocks, or of blocks that gather, at 38 shapes of 64 to 512 rows on
// an H200.
constexpr double kScaledBytes = 42;
constexpr std::int64_t kScaledRows = 512;
constexpr double kSharedBySplitK = 0.92;     // of kScaledBytes, where several clusters read one b
constexpr double kRaggedLoads = 1.95;        // times as long, where lines begin inside of L2's
constexpr double kMemoryBytesPerCycle = 14;  // from device memory with this bandwidth in GB/s:
constexpr double kMemoryBandwidth = 3352;
// More bandwidth is not used wholly: 17.8 bytes in a cycle were measured on an H200 with 4814 GB/s.
constexpr double kUsedBandwidth = 0.67;
constexpr double kHiddenPart = 0.01;  // of the shorter one of two times that overlap
// Lines of a high, narrow tile are read by more blocks at once.
constexpr double kNarrowLoads = 1.02;
// In one round, tiles of 128x64 took 1 to 13 % less time (6.5 % in the mean) than tiles chosen
// without this factor at 54 shapes of bfloat16 on an H200, and up to 11 % more where a result is
// higher than wide.
constexpr double kTwoGroupLoads = 0.95;
constexpr double kStartCycles = 2000;    // of a launch until the first products, and at the end
constexpr double kClusterCycles = 1500;  // more, where blocks of a cluster wait for each other
constexpr double kClusterSplitCycles = 2000;  // of a cluster with split-K, until results are added
constexpr double kAccumulatorsPerCycle = 12;  // beside, of tiles with scales of blocks
constexpr double kSecondCycles = 6500;        // of the kernel that adds the parts
constexpr double kOutBytesPerCycle = 60;
constexpr std::int64_t kNarrowColumns = 64;  // of a last tile that multiplies no more of them
constexpr double kThreeGroupsRate = 0.97;    // of the tensor cores', by three warpgroups
// Of groups of rows with so many stages for a block: the device's power limits the rate, and a
// cluster's blocks save some by common loads. On an H200.
constexpr double kRateWithoutCluster = 0.97, kManySteps = 5000;
// Times as long as memory brings a matrix of a group to tiles below 128 columns, and to tiles of 64
// rows where large groups have several of them. On an H200.
constexpr double kNarrowGroupLoads = 1.25, kLowGroupLoads = 1.05;
// Groups with so many rows on average and products of so few steps gain by warpgroups that take
// turns with 192 columns. On an H200.
constexpr std::int64_t kRowsInTurn = 512, kStepsInTurn = 64;
constexpr std::int64_t kLeastSteps = 8;             // of a part of the inner dimension
constexpr std::int64_t kMostSteps = 128;            // of a product whose blocks wait for each other
constexpr double kEdgeInCache = 0.5, kEdge = 0.65;  // parts of a wide tile's time at an edge
constexpr std::int64_t kCacheBytes = 50'000'000;    // of L2

std::int64_t step_count(const GemmSize& size) {
  return ceil_div(size.inner * static_cast<std::int64_t>(size.in_bytes), kGemmLine);
}

/// The time of the loads of an operand as a multiple of loads of whole lines of L2, or of halves.
/// Products of few tiles wait for other things.
double load_factor(const GemmSize& size, std::int64_t pitch) {
  const std::int64_t tiles = ceil_div(size.rows, 128) * ceil_div(size.columns, 128);
  const bool few = tiles * size.batches <= size.multiprocessors;
  return pitch % (kGemmLine / 2) == 0 || few ? 1 : kRaggedLoads;
}

bool is_ragged(const GemmSize& size) {
  return std::max(load_factor(size, size.a_pitch), load_factor(size, size.b_pitch)) >= kRaggedLoads;
}

/// Whether results are written as they are, in TMA tiles: their lines are whole units of 16 bytes.
bool ends_plainly(const GemmSize& size) {
  const std::int64_t columns = size.gated ? size.columns / 2 : size.columns;
  return !size.finishes && columns * static_cast<std::int64_t>(size.out_bytes) % 16 == 0;
}

/// Whether groups of rows may take tiles of 128x192 whose warpgroups take turns.
bool suits_groups_in_turn(const GemmSize& size) {
  return size.groups > 0 && size.capacity == 0 && size.in_bytes == 2 && size.b_turned &&
         ends_plainly(size) && size.rows >= kRowsInTurn * size.groups &&
         step_count(size) <= kStepsInTurn;
}

bool is_192_in_turn(const GemmTile& tile) {
  return tile.ping_pong && tile.rows == 128 && tile.columns == 192;
}

bool is_128x64(const GemmTile& tile) {
  return tile.rows == 128 && tile.columns == 64 && !tile.split_k;
}

/// Whether the model treats warpgroups of 128 rows apart that take turns. Products of groups of
/// rows gain by 192 columns alone.
bool alternates(const GemmSize& size, const GemmTile& tile) {
  if (!tile.ping_pong || tile.rows < 128) return false;
  return size.groups == 0 || (is_192_in_turn(tile) && suits_groups_in_turn(size));
}

/// How much of the tensor cores' rate warpgroups reach that take turns: less with nobody to take
/// turns with, and where blocks of a cluster wait for each other. Accumulators of 160 and 192
/// columns leave few registers for ends other than plain ones; 160 do not fit the parts of a b that
/// is not turned.
double rate_in_turn(const GemmSize& size, const GemmChoice& choice, double waves) {
  double rate = 0.965;
  if (choice.tile.columns >= 160) {
    const bool suits =
        ends_plainly(size) && size.b_turned && size.rows > kFewGemmRows && choice.splits == 1;
    rate = !suits ? 0.75 : choice.tile.columns == 160 ? 0.96 : 1;
  }
  if (choice.tile.cluster > 1) rate *= 0.88;
  return waves > 1 ? rate : rate * 0.8;
}

/// How much of the tensor cores' rate a tile reaches: shared memory brings 64 rows again for each
/// product, and a warpgroup that is alone with 64 rows leaves gaps between its products, as one
/// does that adds the accumulators of each stage. Scales of blocks cost narrow tiles more.
double tensor_core_rate(const GemmSize& size, const GemmChoice& choice, double waves) {
  const GemmTile& tile = choice.tile;
  if (alternates(size, tile)) return rate_in_turn(size, choice, waves);
  if (tile.groups > 2) return kThreeGroupsRate;
  const int columns = tile.columns;
  const double rate_192 = size.promotes || size.groups > 0 ? 0.93 : 0.955;
  double rate = columns >= 256 ? 1 : columns >= 176 ? rate_192 : 0.94;
  if (columns == 176 && size.in_bytes > 1) rate = 0.92;
  if (tile.rows == 64 && columns >= 128) rate *= 0.77;
  if (size.groups > 0 && !size.promotes && tile.cluster == 1 &&
      waves * static_cast<double>(step_count(size)) > kManySteps) {
    rate *= kRateWithoutCluster;
  }
  if (!size.promotes) return rate;
  // A tile of 256x128 with block scales stages all TMA tiles of its result.
  if (tile.rows == 256) return !size.block_scales ? rate : tile.cluster > 1 ? 0.98 : 0.96;
  if (size.block_scales) return rate * (columns >= 256 ? 0.95 : columns >= 192 ? 1 : 0.95);
  return rate * (columns >= 192 ? 0.95 : 0.9);
}

/// Bytes that memory brings to each multiprocessor in a cycle while all of them read.
double memory_bytes(const GemmSize& size) {
  return kMemoryBytesPerCycle * std::pow(size.bandwidth / kMemoryBandwidth, kUsedBandwidth);
}

/// Cycles in which memory brings all of both operands.
double floor_cycles(const GemmSize& size) {
  const double lines = static_cast<double>(size.rows + size.columns) *
                       static_cast<double>(size.batches) * static_cast<double>(size.inner);
  return lines * static_cast<double>(size.in_bytes) /
         (memory_bytes(size) * std::max(1, size.multiprocessors));
}

/// Each group has a last tile, half full on average; groups that lie apart are whole.
std::int64_t row_tile_count(const GemmSize& size, std::int64_t height) {
  if (size.groups == 0) return ceil_div(size.rows, height);
  if (size.capacity > 0) return size.groups * ceil_div(size.capacity, height);
  const std::int64_t taken = std::min(size.groups, size.rows);
  return std::max(taken, (size.rows + taken * height / 2) / height);
}

/// Cycles in which memory brings a stage of b to a tile: of groups' matrices the tiles of few rows
/// share each, and all of them are read once.
double memory_cycles(const GemmSize& size, const GemmTile& tile) {
  if (size.groups == 0) return 0;
  const std::int64_t taken = std::max<std::int64_t>(1, std::min(size.groups, size.rows));
  const double sharing = static_cast<double>(row_tile_count(size, tile.rows)) / taken;
  double bytes = tile.columns * kGemmLine / sharing;
  if (!size.promotes && tile.columns < 128) bytes *= kNarrowGroupLoads;
  const bool several = size.rows * 2 > taken * tile.rows;
  if (!size.promotes && tile.rows < 128 && several) bytes *= kLowGroupLoads;
  return bytes / memory_bytes(size);
}

/// Where neighbours of b lie along its columns, these come in parts of 64.
int loaded_columns(const GemmSize& size, const GemmTile& tile) {
  return size.b_turned ? tile.columns : static_cast<int>(ceil_div(tile.columns, 64) * 64);
}

/// How many clusters run at once, their blocks alone on their multiprocessors. Clusters of three
/// and more blocks leave some of a group of multiprocessors idle: on an H200 with 132 there were 33
/// of three and 24 of four at once, but not 40 or 32.
std::int64_t clusters_at_once(const GemmSize& size, const GemmTile& tile) {
  std::int64_t count = size.multiprocessors / tile.cluster;
  if (tile.split_k && tile.cluster == 3) count = size.multiprocessors / 4;
  if (tile.split_k && tile.cluster > 3) count = size.multiprocessors / 16 * (12 / tile.cluster);
  return std::max<std::int64_t>(1, count);
}

int best_group(const GemmSize& size, const GemmTile& tile) {
  const std::int64_t at_once = clusters_at_once(size, tile);
  int best = 1;
  std::int64_t least = 0;
  for (int group = 1; group <= 16; group *= 2) {
    const std::int64_t loads =
        group * tile.cluster_rows() + ceil_div(at_once, group) * tile.cluster_columns();
    if (group == 1 || loads < least) {
      least = loads;
      best = group;
    }
  }
  return best;
}

/// The part of a whole tile's time that one at an edge takes. Where L2 does not hold both operands,
/// the edge's come from memory once more.
double edge_time(const GemmSize& size) {
  const std::int64_t lines = size.rows + size.columns;
  const bool fits = lines * size.inner * static_cast<std::int64_t>(size.in_bytes) <= kCacheBytes;
  return fits ? kEdgeInCache : kEdge;
}

/// The longest time of the blocks that work at once, in whole tiles' time: as EdgesLast of
/// include/product/product_tiles.cuh deals the tiles out, one after the other.
double wave_count(const GemmSize& size, const GemmChoice& choice, std::int64_t at_once) {
  const GemmTile& tile = choice.tile;
  const std::int64_t high = row_tile_count(size, tile.cluster_rows());
  const std::int64_t across = ceil_div(size.columns, tile.cluster_columns());
  const std::int64_t all = high * across * size.batches * choice.splits;
  const GemmEdges edges = gemm_edges(size, choice);
  const std::int64_t whole =
      (high - edges.short_rows) * (across - edges.narrow_columns) * size.batches * choice.splits;
  const std::int64_t rounds = whole / at_once, rest = whole % at_once, idle = at_once - rest;
  const double time = edge_time(size);
  // Blocks with a whole tile less begin with the edges.
  double longest =
      static_cast<double>(rounds) + time * static_cast<double>(ceil_div(all - whole, at_once));
  if (rest > 0) {
    const std::int64_t more = ceil_div(std::max<std::int64_t>(0, all - whole - idle), at_once);
    longest = std::max(longest, static_cast<double>(rounds + 1) + time * static_cast<double>(more));
  }
  return longest;
}

/// Cycles in which L2 brings a stage of a tile. Promoted accumulators gain nothing in one round.
double load_cycles(const GemmSize& size, const GemmTile& tile, double waves) {
  const bool one_round = waves <= 1 && !size.promotes;
  const bool in_turn = alternates(size, tile) && waves > 1 && ends_plainly(size);
  const bool fast = (in_turn && !is_ragged(size)) || (tile.groups > 2 && tile.cluster == 1);
  const bool few_scaled = size.block_scales && size.groups == 0 && size.rows <= kScaledRows &&
                          (waves <= 1 || tile.split_k);
  double rows = tile.rows * load_factor(size, size.a_pitch);
  const bool shared = one_round || (few_scaled && tile.columns >= 128);
  if (one_round && size.in_bytes == 2 && size.rows <= size.columns && is_128x64(tile)) {
    rows *= kTwoGroupLoads;
  } else if (shared && tile.rows > tile.columns) {
    rows *= kNarrowLoads;
  }
  const double columns = loaded_columns(size, tile) * load_factor(size, size.b_pitch);
  const double loaded = rows / tile.a_sharers() + columns / tile.b_sharers();
  double bytes = one_round && tile.groups > 1 ? kOneRoundBytes : kBytesPerCycle;
  if (few_scaled) bytes = kScaledBytes;
  if (tile.split_k && size.rows > tile.rows) bytes *= kSharedBySplitK;
  return loaded * kGemmLine / (fast ? kManyBytes : bytes);
}

int best_splits(const GemmSize& size, GemmChoice choice) {
  const std::int64_t steps = step_count(size);
  int best = 1;
  double least = gemm_cost(size, choice);
  for (int splits : {2, 3, 4, 6, 8, 12, 16}) {
    // Each part has some stages, and the last one is not empty.
    const std::int64_t part_steps = ceil_div(steps, splits);
    if (part_steps < kLeastSteps || part_steps * (splits - 1) >= steps) continue;
    choice.splits = splits;
    if (const double cost = gemm_cost(size, choice); cost < least) {
      least = cost;
      best = splits;
    }
  }
  return best;
}

struct GemmSizeHash {
  std::size_t operator()(const GemmSize& size) const noexcept {
    std::uint64_t sum = static_cast<std::uint64_t>(size.multiprocessors) * 16 + size.out_bytes;
    sum = sum * 16 + size.in_bytes;
    sum = mix(sum, static_cast<std::uint64_t>(size.bandwidth));
    sum = sum * 32 + size.b_turned * 16u + size.block_scales * 8u + size.gated * 4u +
          size.promotes * 2u + size.whole;
    for (const std::int64_t extent : {size.rows, size.columns, size.inner, size.batches,
                                      size.groups, size.capacity, size.a_pitch, size.b_pitch}) {
      sum = mix(sum, static_cast<std::uint64_t>(extent));
    }
    return mixed(sum);
  }
};
constexpr std::size_t kMostChoices = 4096;
struct ChoiceTable {
  std::shared_mutex mutex;
  std::unordered_map<GemmSize, GemmChoice, GemmSizeHash> choices;
};

constexpr int kTwoBlockStages = 8;

std::int64_t tile_count(const GemmSize& size, const GemmTile& tile) {
  return ceil_div(size.rows, tile.rows) * ceil_div(size.columns, tile.columns) * size.batches;
}

/// Whether clusters of two blocks with tiles of 64x64 occupy most multiprocessors at once: the
/// blocks took 1 to 3 % less time with fewer stages on an H100 and an H200. Fewer blocks want all.
bool fills_device_by_two(const GemmSize& size, const GemmTile& tile) {
  if (!tile.split_k || tile.cluster != 2 || tile.rows != 64) return false;
  const std::int64_t clusters = tile_count(size, tile);
  return clusters <= clusters_at_once(size, tile) && 8 * clusters >= 3 * size.multiprocessors;
}

/// Whether tiles of 176 columns are considered. TMA tiles of a b that is not turned have 64
/// columns. Tiles of three groups gained 2 to 3 % where hardly any multiprocessor is idle in the
/// last round of tiles, with either b, at 2050^3 and 4097^3 on an H200.
bool suits_176_columns(const GemmSize& size, const GemmTile& tile) {
  if (size.groups > 0) return false;
  if (tile.groups < 3) return size.b_turned;
  const std::int64_t at_once = clusters_at_once(size, tile);
  const std::int64_t last = tile_count(size, tile) % at_once;
  return last == 0 || 16 * last >= 15 * at_once;
}

constexpr std::int64_t kPairInner = 4096;  // as far as it was measured

/// Pairs of blocks in place of blocks without PDL (gains_by_pdl() of wgmma_gemm.cpp), where a pair
/// has all rows (bfloat16 256x8960x1024 on an H200: 11.3 -> 10.2 us).
GemmChoice paired_rows(const GemmSize& size, const GemmChoice& choice) {
  const GemmTile& tile = choice.tile;
  const std::int64_t bytes =
      (size.rows + size.columns) * size.inner * static_cast<std::int64_t>(size.in_bytes);
  const bool late = bytes > kSmallOperands && size.inner <= kPairInner &&
                    tile_count(size, tile) < size.multiprocessors;
  const bool two = tile.rows == 128 && size.rows > 128 && size.rows <= kFewGemmRows;
  if (!late || !two || size.in_bytes != 2 || size.batches != 1 || choice.splits != 1) return choice;
  GemmTile pair = tile;
  pair.cluster = 2;
  const auto all = gemm_tiles(size.promotes, size.block_scales);
  const bool known = tile.cluster == 1 && std::ranges::find(all, pair) != all.end();
  return known ? choose_gemm(size, pair, 1) : choice;
}

GemmChoice cheapest_gemm(const GemmSize& size) {
  GemmChoice best;
  double least = 0;
  const auto take_if_cheaper = [&](const GemmChoice& choice) {
    const double cost = gemm_cost(size, choice);
    if (least != 0 && cost >= least) return;
    least = cost;
    best = choice;
  };
  for (const GemmTile& tile : gemm_tiles(size.promotes, size.block_scales)) {
    if (size.gated && tile.columns % 128 != 0) continue;
    // Of groups of rows other tiles were faster at most shapes that were measured. So were tiles of
    // two groups for int8 and tf32 on an H200.
    if (size.groups > 0 && tile.columns % 64 != 0) continue;
    // Two tiles of 96 columns have all rows, and share b. With 14336 of the inner dimension the
    // tiles were slow.
    const bool two = size.rows > tile.rows && size.rows <= tile.cluster_rows();
    if (tile.columns == 96 && (!two || step_count(size) > kMostSteps)) continue;
    if (tile.groups > 2 && (size.groups > 0 || size.in_bytes != 2)) continue;
    // Operands of eight bits: 16 bits were slower at 4095^3 to 4104^3 on an H200, but not in
    // groups.
    if (is_192_in_turn(tile) && size.in_bytes != 1 && !suits_groups_in_turn(size)) continue;
    if (tile.columns == 176 && !suits_176_columns(size, tile)) continue;
    // Their TMA tiles of scales have more rows than the tile.
    if (size.groups > 0 && size.block_scales && tile.rows > 128) continue;
    const bool one = size.gated || size.whole || size.groups > 0;
    take_if_cheaper(choose_gemm(size, tile, one ? 1 : 0));
  }
  if (size.groups > 0) return best;
  for (GemmTile tile : split_k_tiles(size.block_scales)) {
    if (size.gated && tile.columns % 128 != 0) continue;
    // With 16-bit operands, tiles of 128 columns took 4 to 30 % longer than narrower tiles.
    if (tile.columns > 64 && !size.promotes && !size.gated) continue;
    if (fills_device_by_two(size, tile)) tile.stages = kTwoBlockStages;
    if (step_count(size) >= tile.cluster * kLeastSteps) take_if_cheaper(choose_gemm(size, tile, 1));
  }
  return paired_rows(size, best);
}

}  // namespace

int memory_bandwidth(const Device& device) {
  const std::int64_t kilohertz = device.attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
  const std::int64_t bits = device.attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  // Twice in a period.
  const std::int64_t bandwidth = kilohertz * 2 * bits / 8 / 1'000'000;
  return bandwidth > 0 ? static_cast<int>(bandwidth) : GemmSize{}.bandwidth;
}

double gemm_cost(const GemmSize& size, const GemmChoice& choice) noexcept {
  const GemmTile& tile = choice.tile;
  const std::int64_t at_once = clusters_at_once(size, tile);
  const double waves = wave_count(size, choice, at_once);
  const int parts = tile.split_k ? tile.cluster : choice.splits;
  const auto steps = static_cast<double>(ceil_div(step_count(size), parts));
  const double rows = tile.rows, columns = tile.columns;
  double products =
      rows * columns * kGemmLine / kFlopsPerCycle / tensor_core_rate(size, choice, waves);
  // Two groups hide each other's additions.
  if (size.promotes) products += rows * columns / kAddsPerCycle / (tile.groups > 1 ? 4 : 1);
  const double out = rows * columns * static_cast<double>(choice.splits > 1 ? 4 : size.out_bytes) /
                     kOutBytesPerCycle;
  // The end of a tile costs nothing while the other group multiplies, except at the very end.
  const double ends = tile.ping_pong ? out + waves * 100 : waves * out;
  const double step =
      std::max({products, load_cycles(size, tile, waves), memory_cycles(size, tile)});
  const double multiplied = waves * steps * step, brought = floor_cycles(size);
  double cost = kStartCycles + std::max(multiplied, brought) +
                kHiddenPart * std::min(multiplied, brought) + ends;
  if (tile.cluster > 1 && !tile.split_k) cost += kClusterCycles;
  // Blocks with split-K have one tile each: the blocks of the next wave begin anew.
  if (tile.split_k) cost += waves * kClusterSplitCycles + (waves - 1) * kStartCycles;
  if (tile.split_k && size.block_scales) cost += waves * rows * columns / kAccumulatorsPerCycle;
  if (choice.splits > 1) {
    const double results = static_cast<double>(size.rows) * static_cast<double>(size.columns) *
                           static_cast<double>(size.batches);
    cost += kSecondCycles + results * (choice.splits * 4 + 2) /
                                (memory_bytes(size) * std::max(1, size.multiprocessors));
  }
  return cost;
}

GemmChoice choose_gemm(const GemmSize& size, const GemmTile& tile, int splits) noexcept {
  GemmChoice choice{tile, std::max(1, splits), best_group(size, tile)};
  if (splits == 0) choice.splits = best_splits(size, choice);
  return choice;
}

GemmChoice choose_gemm(const GemmSize& size) {
  static auto& table = *new ChoiceTable;
  {
    const std::shared_lock lock(table.mutex);
    if (const auto found = table.choices.find(size); found != table.choices.end()) {
      return found->second;
    }
  }
  const GemmChoice best = cheapest_gemm(size);
  const std::unique_lock lock(table.mutex);
  if (table.choices.size() >= kMostChoices) table.choices.clear();
  table.choices.try_emplace(size, best);
  return best;
}

GemmEdges gemm_edges(const GemmSize& size, const GemmChoice& choice) noexcept {
  const GemmTile& tile = choice.tile;
  const bool high = tile.rows >= 256 && tile.cluster == 1;
  if ((!tile.is_wide() && !high) || size.batches * choice.splits != 1) return {};
  if (size.promotes || size.groups > 0) return {};
  const std::int64_t rows = size.rows % (std::int64_t{tile.rows} * tile.cluster);
  const std::int64_t columns = size.columns % tile.columns;
  const bool share = tile.groups > 1 && !tile.ping_pong;
  return {.short_rows = share && rows > 0 && rows <= tile.rows / 2,
          .narrow_columns = !size.gated && columns > 0 && columns <= kNarrowColumns};
}

std::string describe(const GemmChoice& choice) {
  std::string text = describe(choice.tile);
  if (choice.splits > 1) text += format(", {} splits", choice.splits);
  return text;
}

}  // namespace kernwright::kernels
