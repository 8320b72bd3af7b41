// Chooses tiles, makes tensor maps, shares out heads so their keys stay in the L2 cache.
#include "kernels_src/attention/hopper_attention.h"

#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "kernels_src/attention/attention_call.h"
#include "kernels_src/attention/hopper_attention.cu.h"
#include "kernels_src/family.h"
#include "kernels_src/gemm/gemm_maps.h"

#include <algorithm>
#include <mutex>
#include <utility>

namespace kernwright::kernels {
namespace {

constexpr std::int64_t kHopperGroupRows = 64;
constexpr int kHopperSharedBytes = 232448;                      // of a block, at most
constexpr std::int64_t kSectionBytes = std::int64_t{32} << 20;  // of keys and values

constexpr int kNumberedParts = 6, kPartBytes = 64;  // of attention_parts.cuh
constexpr std::int64_t kManyRowTiles = 32;          // of a head
constexpr std::int64_t kEvenParts = 8;              // of a block: shares are even

constexpr HopperAttentionTile kHopperTiles[] = {
    {64, 2, 1},         {80, 2, 1},         {96, 2, 1},         {128, 2, 1},
    {160, 2, 1},        {176, 2, 1},        {64, 2, 2},         {64, 4, 2},
    {80, 2, 2},         {96, 2, 2},         {128, 2, 2},        {128, 3, 2},
    {160, 2, 2},        {176, 2, 2},        {64, 2, 3},         {96, 3, 3},
    {128, 2, 3},        {128, 3, 3},        {64, 2, 2, false},  {80, 2, 2, false},
    {128, 2, 2, false}, {160, 2, 2, false}, {176, 2, 2, false}, {128, 3, 3, false},
};

/// `HopperPlan` of attention_parts.cuh.
struct HopperPlan {
  std::int32_t tiles, row_tiles, section, alternates;
  std::int32_t q_batch, q_head, k_batch, k_head, v_batch, v_head;
};

struct ForcedAttention {
  std::mutex mutex;
  AttentionKernel kernel = AttentionKernel::automatic;
  std::optional<HopperAttentionTile> tile;
};
ForcedAttention& forced_attention() {
  static auto& forced = *new ForcedAttention;
  return forced;
}

std::int64_t parts_of(std::int64_t size, std::int64_t each) { return (size + each - 1) / each; }

std::int64_t multiprocessors_of(const PreparedAttention& made) {
  return made.q.device().attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
}

/// Query rows of the longest sequence.
std::int64_t most_rows(const PreparedAttention& made, const AttentionOptions& options) {
  const std::int64_t queries = made.call.queries;
  const bool known = options.q_starts && options.most_queries > 0;
  return known ? std::min(queries, options.most_queries) : queries;
}

/// `Extras` of hopper_attention.cu.
int of_scores(const AttentionCall& call) {
  if (call.mask_kind != 0 || call.slopes != 0) return 2;
  return call.soft_cap > 0 ? 1 : 0;
}

/// Whether all queries see the same keys.
bool rows_are_alike(const AttentionCall& call) { return call.left < 0 && call.right < 0; }

/// The best use of shared memory that fits. Two places for a warpgroup's queries let loads and
/// stores overlap with products. With three, parts of one or two tiles of keys do not wait for
/// stores. Longer parts gain more by one more stage of values.
HopperAttentionRoom choose_room(const PreparedAttention& made, const HopperAttentionTile& tile) {
  const int few = tile.stages, more = tile.stages + 1;
  HopperAttentionRoom first{2, more}, second{3, few};
  if (!rows_are_alike(made.call) || made.call.keys <= 2 * tile.keys) std::swap(first, second);
  const HopperAttentionRoom rooms[] = {{3, more}, first, second, {2, few}, {1, more}};
  for (const HopperAttentionRoom& room : rooms) {
    if (room.places > 1 && of_scores(made.call) > 1) continue;  // for want of registers
    if (tile.shared_bytes(made.dim_class, made.value_class, room) <= kHopperSharedBytes) {
      return room;
    }
  }
  return {1, few};
}

/// Times of a block. The unit is the time for 128 queries and one key. Measured on an H100, except
/// for the splits: those are estimates.
struct HopperCosts {
  std::int64_t step = 12, part = 200, second_kernel = 300;
  std::int64_t sums_of_unit = 20000;  // of splits, written and read
  std::int64_t half = 12;             // sixteenths, of 64 queries
};
constexpr HopperCosts kHopperCosts{};

/// The time of one part with `keys` of its keys in sight.
std::int64_t part_cost(const HopperAttentionTile& tile, std::int64_t keys) {
  const std::int64_t whole =
      parts_of(keys, tile.keys) * (tile.keys + kHopperCosts.step) + kHopperCosts.part;
  return tile.groups == 2 ? whole : whole * kHopperCosts.half / 16;
}

/// Keys of a tile: as many as the registers take where rows are long. With 160 there is room for
/// two places of queries. With 128, fewer keys are hidden, and there is room for three places or
/// for more values, which short rows need.
int choose_tile_keys(const PreparedAttention& made, std::int64_t rows) {
  const AttentionCall& call = made.call;
  const int most = std::max(made.dim_class, made.value_class);
  const bool capped = of_scores(call) > 0;  // takes registers
  if (most > 192) return capped ? 64 : 80;
  if (made.value_class > 128) return 96;
  if (most != 128 || capped) return 128;
  if (call.right >= 0 || call.left >= 0) return call.keys >= 8192 ? 176 : 128;
  const std::int64_t parts =
      std::int64_t{call.batches} * call.heads * parts_of(rows, 2 * kHopperGroupRows);
  const bool many = parts >= multiprocessors_of(made);
  if (many && call.keys < 8192) return call.keys >= 2048 ? 160 : 128;
  return call.keys > 1024 ? 176 : 128;
}

/// Sets the warpgroups, and the number of blocks with common keys: the quickest.
void share_out(const PreparedAttention& made, const AttentionOptions& options, std::int64_t rows,
               HopperAttentionTile& tile) {
  const AttentionCall& call = made.call;
  const std::int64_t heads = std::int64_t{call.batches} * call.heads;
  const std::int64_t multiprocessors = multiprocessors_of(made);
  const std::int64_t steps = parts_of(call.keys, tile.keys);
  const bool splits = options.splits != 1 && !options.q_starts && !options.q_lengths;
  HopperAttentionTile best = tile;
  std::int64_t least = 0;
  for (const int groups : {2, 1}) {
    tile.groups = groups;
    const std::int64_t parts = heads * parts_of(rows, kHopperGroupRows * groups);
    const std::int64_t most = splits ? std::min(steps, multiprocessors / parts) : 1;
    for (tile.splits = 1; tile.splits <= std::max<std::int64_t>(most, 1); ++tile.splits) {
      const std::int64_t waves = parts_of(parts * tile.splits, multiprocessors);
      const std::int64_t keys = parts_of(steps, tile.splits) * tile.keys;
      std::int64_t cost = waves * part_cost(tile, keys);
      if (tile.splits > 1) {
        cost += kHopperCosts.second_kernel +
                heads * rows * tile.splits * made.value_class / kHopperCosts.sums_of_unit;
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
std::int64_t section_of_heads(const PreparedAttention& made, std::int64_t row_tiles) {
  const AttentionCall& call = made.call;
  const std::int64_t bytes = std::int64_t{2} * call.keys * (call.dim + call.value_dim);
  const std::int64_t group = call.heads / call.kv_heads;
  const std::int64_t cached = std::max<std::int64_t>(1, kSectionBytes / bytes) * group;
  const bool alike = rows_are_alike(call);
  if (!alike && row_tiles >= kManyRowTiles) return cached;
  const std::int64_t wave = multiprocessors_of(made);
  // Unequal rows take two waves: their shares balance each other. If two waves are whole heads,
  // each head follows the one before: a block has its first and last rows in turn.
  const std::int64_t parts = std::int64_t{call.batches} * call.heads * row_tiles;
  if (!alike && 2 * wave % row_tiles == 0 && parts >= kEvenParts * wave) return 1;
  return std::min(cached, parts_of((alike ? 1 : 2) * wave, row_tiles));
}

/// 192 rows of small heads, 128 else, and 64 where few blocks would come of these.
HopperAttentionTile choose_hopper_tile(const PreparedAttention& made,
                                       const AttentionOptions& options) {
  const int most = std::max(made.dim_class, made.value_class);
  const std::int64_t rows = most_rows(made, options);
  HopperAttentionTile tile;
  tile.keys = choose_tile_keys(made, rows);
  share_out(made, options, rows, tile);
  const std::int64_t pairs = parts_of(rows, 2 * kHopperGroupRows);
  if (tile.groups == 2 && tile.splits == 1 && most == 64 &&
      10 * 3 * parts_of(rows, 3 * kHopperGroupRows) <= 11 * 2 * pairs) {
    tile = {of_scores(made.call) > 0 ? 96 : 128, 3, 3};
  }
  // Sequences of other lengths than the longest leave blocks without work: others take their place.
  tile.persistent = !options.q_starts && !options.k_lengths && !options.q_lengths;
  return tile;
}

/// The result as one row of heads: those of all batches, or of all packed tokens.
CUtensorMap result_map(const Array& out, const AttentionCall& call, bool packed) {
  const std::int64_t heads = packed ? call.heads : std::int64_t{call.heads} * call.batches;
  return gemm_map(out.device(), {.address = out.address(),
                                 .shape = {1, heads, call.queries, call.value_dim},
                                 .strides = {0, call.out_at.head * 2, call.out_at.token * 2, 2},
                                 .type = out.type(),
                                 .box_rows = 16,
                                 .rank = 3});
}

HopperPlan plan_hopper(const PreparedAttention& made, const AttentionOptions& options,
                       const HopperAttentionTile& tile) {
  const AttentionCall& call = made.call;
  const std::int64_t heads = std::int64_t{call.batches} * call.heads;
  HopperPlan plan{};
  plan.row_tiles =
      static_cast<std::int32_t>(parts_of(most_rows(made, options), kHopperGroupRows * tile.groups));
  plan.tiles = static_cast<std::int32_t>(heads * plan.row_tiles * call.splits);
  plan.section = static_cast<std::int32_t>(std::min(heads, section_of_heads(made, plan.row_tiles)));
  const std::int64_t tiles = std::int64_t{plan.section} * plan.row_tiles;
  plan.alternates = 2 * multiprocessors_of(made) % tiles != 0 ? 1 : 0;
  const auto step = [](std::int64_t stride) { return stride != 0 ? 1 : 0; };
  plan.q_batch = step(call.q_at.batch);
  plan.q_head = step(call.q_at.head);
  plan.k_batch = step(call.k_at.batch);
  plan.k_head = step(call.k_at.head);
  plan.v_batch = step(call.v_at.batch);
  plan.v_head = step(call.v_at.head);
  return plan;
}

const LazyKernel& hopper_attention_kernel(const PreparedAttention& made,
                                          const HopperAttentionTile& tile,
                                          const HopperAttentionRoom& room) {
  static const auto& family = *new Family("hopper_attention.cu", text::hopper_attention_cu);
  constexpr const char* names[] = {"kPlain", "kCapped", "kBiased"};
  const int extras = of_scores(made.call);
  const auto key = InstanceKey()
                       .type(made.q.type())
                       .add(made.dim_class / 32, 4)
                       .add(made.value_class / 32, 4)
                       .add(tile.keys / 16, 4)
                       .add(tile.stages, 3)
                       .add(room.value_stages, 3)
                       .add(tile.groups, 2)
                       .add(room.places, 2)
                       .add(extras, 2);
  return family.instance(key, [&] {
    return format("hopper_attention<{}, Tile<{}, {}, {}, {}, {}, {}, {}>, {}>",
                  device_type(made.q.type()), made.dim_class, made.value_class, tile.keys,
                  tile.stages, room.value_stages, tile.groups, room.places, names[extras]);
  });
}

}  // namespace

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
                     std::int64_t heads, std::int64_t tokens, int box_rows) {
  return gemm_map(array.device(), {.address = array.address(),
                                   .shape = {at.batch == 0 ? 1 : batches, at.head == 0 ? 1 : heads,
                                             tokens, array.shape().back()},
                                   .strides = {at.batch * 2, at.head * 2, at.token * 2, 2},
                                   .type = array.type(),
                                   .box_rows = static_cast<std::uint32_t>(box_rows)});
}

const char* hopper_obstacle(const PreparedAttention& made, const AttentionOptions& options) {
  const AttentionCall& call = made.call;
  const Array& q = made.q;
  if (!q.device().capabilities().wgmma) return "the device has no wgmma";
  if (q.type() != ScalarType::float16 && q.type() != ScalarType::bfloat16) {
    return "elements are not of 16 bits";
  }
  if (options.dropout > 0) return "it has no dropout";
  if ((options.mask || options.slopes) && std::max(made.dim_class, made.value_class) > 128) {
    return "heads above 128 elements have no mask or ALiBi";
  }
  if (options.page_table || options.k_scales) return "it has no pages or scales";
  if (call.scale <= 0) return "the scale is not above 0";
  if (call.keys == 0 || call.dim == 0 || call.value_dim == 0) return "there are no keys";
  if (!made.moves_packs(true)) return "elements do not lie at multiples of 16 bytes";
  const bool packed = options.q_starts.has_value();
  const std::int64_t batches = packed ? 1 : call.batches;
  if (!fits_map(call.q_at, batches, call.heads, call.queries) ||
      !fits_map(call.k_at, batches, call.kv_heads, call.keys) ||
      !fits_map(call.v_at, batches, call.kv_heads, call.keys)) {
    return "strides are not above 0";
  }
  const std::int64_t rows = parts_of(call.queries, kHopperGroupRows);
  if (rows * call.heads * call.batches > std::int64_t{1} << 30) return "there are too many rows";
  return nullptr;
}

int HopperAttentionTile::shared_bytes(int dim, int value_dim,
                                      const HopperAttentionRoom& room) const {
  const int columns = (dim + 63) / 64, value_columns = (value_dim + 63) / 64;
  const int slots = groups * room.places;
  const int rows = std::max(columns, value_columns) * slots * static_cast<int>(kHopperGroupRows);
  const int barriers = 2 * (slots + stages + room.value_stages + kNumberedParts + 1);
  const int boxes = stages * columns + room.value_stages * value_columns;
  return (rows + keys * boxes) * 128 + 8 * barriers + kNumberedParts * kPartBytes;
}

std::span<const HopperAttentionTile> hopper_attention_tiles() { return kHopperTiles; }

void force_attention_kernel(AttentionKernel kernel, std::optional<HopperAttentionTile> tile) {
  const auto same = [&](const HopperAttentionTile& other) {
    return tile->keys == other.keys && tile->stages == other.stages &&
           tile->groups == other.groups && tile->persistent == other.persistent;
  };
  if (tile && !std::ranges::any_of(kHopperTiles, same)) {
    throw ArgumentError(format(
        "a tile of attention has {} keys, {} stages and {} warpgroups{}: "
        "that is none of those that there are",
        tile->keys, tile->stages, tile->groups, tile->persistent ? "" : ", which do not stay"));
  }
  ForcedAttention& forced = forced_attention();
  const std::lock_guard lock(forced.mutex);
  forced.kernel = kernel;
  forced.tile = tile;
}

std::optional<HopperAttentionTile> choose_hopper_attention(const PreparedAttention& made,
                                                           const AttentionOptions& options,
                                                           bool few) {
  AttentionKernel kernel = AttentionKernel::automatic;
  std::optional<HopperAttentionTile> tile;
  {
    ForcedAttention& forced = forced_attention();
    const std::lock_guard lock(forced.mutex);
    kernel = forced.kernel;
    tile = forced.tile;
  }
  const bool automatic = kernel == AttentionKernel::automatic;
  if (kernel == AttentionKernel::mma || (automatic && few)) return std::nullopt;
  const char* obstacle = hopper_obstacle(made, options);
  if (obstacle == nullptr && tile &&
      tile->shared_bytes(made.dim_class, made.value_class, {1, tile->stages}) >
          kHopperSharedBytes) {
    obstacle = "the tile does not fit shared memory";
  }
  if (obstacle == nullptr) {
    if (!tile) return choose_hopper_tile(made, options);
    if (options.q_starts || options.q_lengths) tile->splits = 1;
    return tile;
  }
  if (automatic) return std::nullopt;
  throw ArgumentError(format("attention by the kernel for Hopper: {}; query is a {}, key a {}",
                             obstacle, made.q.identify(), made.k.identify()));
}

void launch_hopper_attention(PreparedAttention& made, const AttentionOptions& options,
                             HopperAttentionTile tile, const Stream& on) {
  const AttentionCall& call = made.call;
  const bool packed = options.q_starts.has_value();
  const std::int64_t batches = packed ? 1 : call.batches;
  const Array partial = allocate_splits(made, tile.splits, on);
  const HopperPlan plan = plan_hopper(made, options, tile);
  const HopperAttentionRoom room = choose_room(made, tile);
  const CUtensorMap q = head_map(made.q, call.q_at, batches, call.heads, call.queries,
                                 static_cast<int>(kHopperGroupRows));
  const CUtensorMap k = head_map(made.k, call.k_at, batches, call.kv_heads, call.keys, tile.keys);
  const CUtensorMap v = head_map(made.v, call.v_at, batches, call.kv_heads, call.keys, tile.keys);
  const CUtensorMap out = result_map(made.made.out, call, packed);
  const std::int64_t blocks =
      tile.persistent ? std::min<std::int64_t>(plan.tiles, multiprocessors_of(made)) : plan.tiles;
  const LaunchConfig config{.grid = {static_cast<std::uint32_t>(blocks)},
                            .block = {static_cast<std::uint32_t>(tile.threads())},
                            .shared_bytes = static_cast<std::uint32_t>(
                                tile.shared_bytes(made.dim_class, made.value_class, room)),
                            .stream = on};
  launch(hopper_attention_kernel(made, tile, room).on(made.q.device()), config, q, k, v, out, call,
         plan);
  if (call.splits > 1) launch_combine(made, on);
  partial.use_on(on);
}

}  // namespace kernwright::kernels
