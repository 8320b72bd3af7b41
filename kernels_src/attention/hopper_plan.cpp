// Tiles, shared memory and the order of work of attention on Hopper; tensor maps.
#include "kernels_src/attention/hopper_plan.h"

#include "base/math.h"
#include "core/device.h"
#include "kernels_src/gemm/gemm_maps.h"

#include <algorithm>
#include <utility>

namespace kernwright::kernels {

std::int64_t multiprocessor_count(const PreparedAttention& made) {
  return made.q.device().attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
}

namespace {

constexpr std::int64_t kSectionBytes = std::int64_t{32} << 20;  // of keys and values

constexpr int kNumberedParts = 6, kPartBytes = 64;  // of attention_parts.cuh
constexpr std::int64_t kManyRowTiles = 32;          // of a head
constexpr std::int64_t kEvenParts = 8;              // of a block: shares are even

/// Heads of all batches; those of packed sequences over pages have common tiles of rows.
std::int64_t all_heads(const PreparedAttention& made) {
  return made.shares_tiles() ? made.call.heads : std::int64_t{made.call.batches} * made.call.heads;
}

/// Whether all queries see the same keys.
bool rows_are_alike(const AttentionCall& call) { return call.left < 0 && call.right < 0; }

/// Times of a block. The unit is the time for 128 queries and one key. Measured on an H100, except
/// for the splits: those are estimates.
struct HopperCosts {
  std::int64_t step = 12, part = 200, second_kernel = 300;
  std::int64_t unit_accumulators = 20000;  // of splits, written and read
  std::int64_t half = 12;                  // sixteenths, of 64 queries
};
constexpr HopperCosts kHopperCosts{};

/// The time of one part with `keys` of its keys in sight.
std::int64_t part_cost(const HopperAttentionTile& tile, std::int64_t keys) {
  const std::int64_t whole =
      ceil_div(keys, tile.keys) * (tile.keys + kHopperCosts.step) + kHopperCosts.part;
  return tile.groups == 2 ? whole : whole * kHopperCosts.half / 16;
}

/// Keys of a tile of float8: as many as the registers take where rows are long.
int choose_byte_keys(const PreparedAttention& made) {
  const int most = std::max(made.dim_class, made.value_class);
  if (most > 192) return 96;
  if (most > 128) return 128;
  if (made.call.keys < 2048) return 128;
  return hopper_extras(made.call) > 0 ? 160 : 192;
}

/// Keys of a tile: as many as the registers take where rows are long. With 160 there is room for
/// two places of queries. With 128, fewer keys are hidden, and there is room for three places or
/// for more values, which short rows need.
int choose_tile_keys(const PreparedAttention& made, std::int64_t rows) {
  const AttentionCall& call = made.call;
  const int most = std::max(made.dim_class, made.value_class);
  if (scalar_size(made.q.type()) == 1) return choose_byte_keys(made);
  const bool capped = hopper_extras(call) > 0;  // takes registers
  if (most > 192) return capped ? 64 : 80;
  if (made.value_class > 128) return 96;
  // The tokens of pages' capacity do not tell how long sequences are.
  if (most != 128 || capped || made.shares_tiles()) return 128;
  if (call.right >= 0 || call.left >= 0) return call.keys >= 8192 ? 176 : 128;
  const std::int64_t parts =
      std::int64_t{call.batches} * call.heads * ceil_div(rows, 2 * kHopperGroupRows);
  const bool many = parts >= multiprocessor_count(made);
  if (many && call.keys < 8192) return call.keys >= 2048 ? 160 : 128;
  return call.keys > 1024 ? 176 : 128;
}

/// Sets the warpgroups, and the number of blocks with common keys: the quickest.
void share_out(const PreparedAttention& made, const AttentionOptions& options, std::int64_t rows,
               HopperAttentionTile& tile) {
  const AttentionCall& call = made.call;
  const std::int64_t heads = all_heads(made);
  const std::int64_t multiprocessors = multiprocessor_count(made);
  const std::int64_t steps = ceil_div(call.keys, tile.keys);
  const bool splits = options.splits != 1 && !options.q_starts && !options.q_lengths;
  HopperAttentionTile best = tile;
  std::int64_t least = 0;
  for (const int groups : {2, 1}) {
    tile.groups = groups;
    const std::int64_t parts = heads * ceil_div(rows, kHopperGroupRows * groups);
    const std::int64_t most = splits ? std::min(steps, multiprocessors / parts) : 1;
    for (tile.splits = 1; tile.splits <= std::max<std::int64_t>(most, 1); ++tile.splits) {
      const std::int64_t waves = ceil_div(parts * tile.splits, multiprocessors);
      const std::int64_t keys = ceil_div(steps, tile.splits) * tile.keys;
      std::int64_t cost = waves * part_cost(tile, keys);
      if (tile.splits > 1) {
        cost += kHopperCosts.second_kernel +
                heads * rows * tile.splits * made.value_class / kHopperCosts.unit_accumulators;
      }
      if (least != 0 && cost >= least) continue;
      least = cost;
      best = tile;
    }
  }
  tile = best;
}

/// Heads at work at the same time. Their keys and values fit the L2 cache. Where rows are short, or
/// all alike, the rows of one head follow each other: loads of new heads are spread over time.
std::int64_t head_section(const PreparedAttention& made, std::int64_t row_tiles) {
  const AttentionCall& call = made.call;
  const auto element = static_cast<std::int64_t>(scalar_size(made.q.type()));
  const std::int64_t bytes = element * call.keys * (call.dim + call.value_dim);
  // The capacity of pages does not tell what is cached. Heads that begin together read the same
  // sequence at about the same time.
  if (made.shares_tiles()) return call.heads;
  const std::int64_t group = call.heads / call.kv_heads;
  const std::int64_t cached = std::max<std::int64_t>(1, kSectionBytes / bytes) * group;
  const bool alike = rows_are_alike(call);
  if (!alike && row_tiles >= kManyRowTiles) return cached;
  const std::int64_t wave = multiprocessor_count(made);
  // Unequal rows take two waves: their shares balance each other. If two waves are whole heads,
  // each head follows the one before: a block has its first and last rows in turn.
  const std::int64_t parts = all_heads(made) * row_tiles;
  if (!alike && 2 * wave % row_tiles == 0 && parts >= kEvenParts * wave) return 1;
  return std::min(cached, ceil_div((alike ? 1 : 2) * wave, row_tiles));
}

}  // namespace

int hopper_shared_bytes(const PreparedAttention& made, const HopperAttentionTile& tile,
                        const HopperAttentionRoom& room) {
  const int dim = made.dim_class, value_dim = made.value_class, slots = tile.groups * room.places;
  const bool bytes = scalar_size(made.q.type()) == 1;
  const int columns = bytes ? ceil_div(dim, 128) : ceil_div(dim, 64);
  const int result_columns = ceil_div(value_dim, 64);
  const int rows = std::max(columns, result_columns) * slots * static_cast<int>(kHopperGroupRows);
  const int barriers = 2 * (slots + tile.stages + room.value_stages + kNumberedParts + 1);
  const int values = bytes ? value_dim : result_columns * 128;  // of a key
  return rows * 128 + tile.keys * (tile.stages * columns * 128 + room.value_stages * values) +
         8 * barriers + kNumberedParts * kPartBytes;
}

int page_rows(const AttentionCall& call, int keys) {
  const unsigned common = static_cast<unsigned>(call.page_size) | static_cast<unsigned>(keys);
  return static_cast<int>(common & (0u - common));
}

int hopper_extras(const AttentionCall& call) {
  if (call.mask_kind != 0 || call.slopes != 0) return 2;
  return call.soft_cap > 0 ? 1 : 0;
}

bool is_ragged(const AttentionCall& call) {
  return call.q_starts != 0 || call.k_starts != 0 || call.q_lengths != 0 || call.k_lengths != 0;
}

int hopper_uses(const AttentionCall& call) {
  enum : int { splits = 1, starts = 2, window = 4, sinks = 8, cap = 16, slopes = 32 };
  enum : int { pages = 64, mask = 128 };
  const int uses = (call.splits > 1 ? splits : 0) | (is_ragged(call) ? starts : 0) |
                   (call.left >= 0 ? window : 0) | (call.sinks != 0 ? sinks : 0) |
                   (call.table != 0 ? pages : 0);
  if (hopper_extras(call) < 2) return uses;
  return uses | (call.soft_cap > 0 ? cap : 0) | (call.slopes != 0 ? slopes : 0) |
         mask * call.mask_kind;
}

HopperAttentionRoom choose_room(const PreparedAttention& made, const HopperAttentionTile& tile,
                                int taken) {
  const int few = tile.stages, more = tile.stages + 1;
  HopperAttentionRoom first{2, more}, second{3, few};
  if (!rows_are_alike(made.call) || made.call.keys <= 2 * tile.keys) std::swap(first, second);
  const HopperAttentionRoom rooms[] = {{3, more}, first, second, {2, few}, {1, more}};
  for (const HopperAttentionRoom& room : rooms) {
    if (room.places > 1 && hopper_extras(made.call) > 1) continue;  // for want of registers
    if (hopper_shared_bytes(made, tile, room) + taken <= kHopperSharedBytes) {
      return room;
    }
  }
  return {1, few};
}

HopperAttentionTile choose_hopper_tile(const PreparedAttention& made,
                                       const AttentionOptions& options) {
  const int most = std::max(made.dim_class, made.value_class);
  const std::int64_t rows = made.shares_tiles() ? made.call.queries : made.most_queries;
  HopperAttentionTile tile;
  tile.keys = choose_tile_keys(made, rows);
  share_out(made, options, rows, tile);
  const std::int64_t pairs = ceil_div(rows, 2 * kHopperGroupRows);
  if (tile.groups == 2 && tile.splits == 1 && most == 64 &&
      10 * 3 * ceil_div(rows, 3 * kHopperGroupRows) <= 11 * 2 * pairs) {
    tile = {hopper_extras(made.call) > 0 ? 96 : 128, 3, 3};
  }
  return tile;
}

CUtensorMap result_map(const Array& out, const AttentionCall& call, bool packed) {
  const HeadStrides& at = call.out_at;
  return gemm_map(out.device(),
                  {.address = out.address(),
                   .shape = {packed ? 1 : call.batches, call.heads, call.queries, call.value_dim},
                   .strides = {at.batch * 2, at.head * 2, at.token * 2, 2},
                   .type = out.type(),
                   .tma_rows = 16});
}

LaunchConfig hopper_config(const PreparedAttention& made, const HopperAttentionTile& tile,
                           const HopperAttentionRoom& room, const HopperPlan& plan,
                           const Stream& on) {
  const std::int64_t blocks = std::min<std::int64_t>(plan.tiles, multiprocessor_count(made));
  return {.grid = {static_cast<std::uint32_t>(blocks)},
          .block = {static_cast<std::uint32_t>(tile.threads())},
          .shared_bytes = static_cast<std::uint32_t>(hopper_shared_bytes(made, tile, room)),
          .stream = on,
          .most_blocks = static_cast<std::uint32_t>(plan.tiles)};
}

HopperPlan plan_hopper(const PreparedAttention& made, const HopperAttentionTile& tile) {
  const AttentionCall& call = made.call;
  const std::int64_t heads = all_heads(made);
  HopperPlan plan{};
  plan.heads = static_cast<std::int32_t>(heads);
  plan.page_rows = made.shares_tiles() ? page_rows(call, tile.keys) : 0;
  plan.row_tiles = static_cast<std::int32_t>(made.count_tiles(kHopperGroupRows * tile.groups, 1));
  plan.tiles = static_cast<std::int32_t>(heads * plan.row_tiles * call.splits);
  plan.section = static_cast<std::int32_t>(std::min(heads, head_section(made, plan.row_tiles)));
  const std::int64_t tiles = std::int64_t{plan.section} * plan.row_tiles;
  const std::int64_t last_section = (heads - 1) / plan.section;
  const bool alternates = 2 * multiprocessor_count(made) % tiles != 0;
  plan.rising = alternates ? static_cast<std::int32_t>((last_section + 1) % 2) : 2;
  plan.group = call.heads / call.kv_heads;
  const auto step = [](std::int64_t stride) { return stride != 0 ? 1 : 0; };
  plan.q_batch = step(call.q_at.batch);
  plan.q_head = step(call.q_at.head);
  plan.k_batch = step(call.k_at.batch);
  plan.k_head = step(call.k_at.head);
  plan.v_batch = step(call.v_at.batch);
  plan.v_head = step(call.v_at.head);
  return plan;
}

bool fits_map(const HeadStrides& at, std::int64_t batches, std::int64_t heads,
              std::int64_t tokens) {
  constexpr std::int64_t kMostElements = std::int64_t{1} << 38;
  const auto fits = [](std::int64_t stride, std::int64_t extent, bool repeats) {
    return extent == 1 || (stride > 0 && stride < kMostElements) || (repeats && stride == 0);
  };
  return fits(at.batch, batches, true) && fits(at.head, heads, true) &&
         fits(at.token, tokens, false);
}

CUtensorMap head_map(const Array& array, const HeadStrides& at, std::int64_t batches,
                     std::int64_t heads, std::int64_t tokens, int tma_rows) {
  const auto size = static_cast<std::int64_t>(scalar_size(array.type()));
  return gemm_map(array.device(),
                  {.address = array.address(),
                   .shape = {at.batch == 0 ? 1 : batches, at.head == 0 ? 1 : heads, tokens,
                             array.shape().back()},
                   .strides = {at.batch * size, at.head * size, at.token * size, size},
                   .type = array.type(),
                   .tma_rows = static_cast<std::uint32_t>(tma_rows),
                   .tma_columns = static_cast<std::uint32_t>(128 / size)});
}

}  // namespace kernwright::kernels
