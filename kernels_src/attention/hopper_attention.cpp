// Attention of 16-bit elements on Hopper: when it is chosen, plans of tests, its launch.
#include "kernels_src/attention/hopper_attention.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/math.h"
#include "core/device.h"
#include "kernels_src/attention/hopper_attention.cu.h"
#include "kernels_src/attention/hopper_plan.h"
#include "kernels_src/family.h"
#include "kernels_src/plans/plan_scope.h"
#include "kernels_src/zeroed_words.h"

#include <algorithm>
#include <utility>

namespace kernwright::kernels {
namespace {

constexpr HopperAttentionTile kHopperTiles[] = {
    {64, 2, 1},  {80, 2, 1},  {96, 2, 1}, {128, 2, 1}, {160, 2, 1}, {176, 2, 1},
    {64, 2, 2},  {64, 4, 2},  {80, 2, 2}, {96, 2, 2},  {128, 2, 2}, {128, 3, 2},
    {160, 2, 2}, {176, 2, 2}, {64, 2, 3}, {96, 3, 3},  {128, 2, 3}, {128, 3, 3},
};

constexpr std::int32_t kHopperPageTokens = 16;  ///< fewer make TMA tiles too small

/// The keys' extents in a tensor map: pages take the place of batches.
struct KeyExtents {
  std::int64_t batches, tokens;
};
KeyExtents key_extents(const PreparedAttention& made) {
  const AttentionCall& call = made.call;
  if (made.shares_tiles()) return {call.page_limit, call.page_size};
  return {call.q_starts != 0 ? 1 : call.batches, call.keys};
}

const LazyKernel& hopper_attention_kernel(const PreparedAttention& made,
                                          const HopperAttentionTile& tile,
                                          const HopperAttentionRoom& room) {
  static const auto& family = *new Family("hopper_attention.cu", text::hopper_attention_cu);
  constexpr const char* names[] = {"kPlain", "kCapped", "kBiased"};
  const int extras = hopper_extras(made.call), uses = hopper_uses(made.call);
  const auto key = InstanceKey()
                       .type(made.q.type())
                       .add(made.dim_class / 32, 4)
                       .add(made.value_class / 32, 4)
                       .add(tile.keys / 16, 4)
                       .add(tile.stages, 3)
                       .add(room.value_stages, 3)
                       .add(tile.groups, 2)
                       .add(room.places, 2)
                       .add(extras, 2)
                       .add(uses, 9);
  return family.instance(key, [&] {
    return format("hopper_attention<{}, Tile<{}, {}, {}, {}, {}, {}, {}, {}>, {}>",
                  device_type(made.q.type()), made.dim_class, made.value_class, tile.keys,
                  tile.stages, room.value_stages, tile.groups, room.places, uses, names[extras]);
  });
}

}  // namespace

const char* hopper_obstacle(const PreparedAttention& made, const AttentionOptions& options) {
  const AttentionCall& call = made.call;
  if (!made.q.device().capabilities().wgmma) return "the device has no wgmma";
  if (scalar_size(made.q.type()) > 2) return "elements are not of 16 bits or fewer";
  if (options.dropout > 0) return "it has no dropout";
  if ((options.mask || options.slopes) && std::max(made.dim_class, made.value_class) > 128) {
    return "heads above 128 elements have no mask or ALiBi";
  }
  if (scalar_size(made.k.type()) != scalar_size(made.q.type()) || options.k_scales) {
    return "caches have other elements or scales";
  }
  const bool paged = options.page_table.has_value();
  if (paged && call.page_size % kHopperPageTokens != 0) return "pages are no multiple of 16 tokens";
  if (made.dim_class > 256) return "heads have more than 256 elements";
  if (call.scale <= 0) return "the scale is not above 0";
  if (call.keys == 0 || made.k.size() == 0 || made.v.size() == 0) return "there are no keys";
  if (!made.moves_packs(true)) return "elements do not lie at multiples of 16 bytes";
  const KeyExtents keys = key_extents(made);
  const std::int64_t batches = options.q_starts ? 1 : call.batches;
  if (!fits_map(call.q_at, batches, call.heads, call.queries) ||
      !fits_map(call.k_at, keys.batches, call.kv_heads, keys.tokens) ||
      !fits_map(call.v_at, keys.batches, call.kv_heads, keys.tokens)) {
    return "strides are not above 0";
  }
  const std::int64_t rows = ceil_div(call.queries, kHopperGroupRows) + (paged ? 2 : 0);
  if (rows * call.heads * call.batches > std::int64_t{1} << 30) return "there are too many rows";
  return nullptr;
}

std::span<const HopperAttentionTile> hopper_attention_tiles() { return kHopperTiles; }

void require_attention_plan(const AttentionPlan& plan) {
  const std::optional<HopperAttentionTile>& tile = plan.tile;
  const auto same = [&](const HopperAttentionTile& other) {
    return tile->keys == other.keys && tile->stages == other.stages && tile->groups == other.groups;
  };
  if (tile && !std::ranges::any_of(kHopperTiles, same)) {
    throw ArgumentError(
        format("a tile of attention has {} keys, {} stages and {} warpgroups: "
               "that is none of those that there are",
               tile->keys, tile->stages, tile->groups));
  }
}

AttentionPlan current_attention_plan() noexcept {
  return PlanScope<AttentionPlan>::current().value_or(AttentionPlan{});
}

std::optional<HopperAttentionTile> choose_hopper_attention(const PreparedAttention& made,
                                                           const AttentionOptions& options,
                                                           bool few) {
  auto [kernel, tile] = current_attention_plan();
  const bool automatic = kernel == AttentionKernel::automatic;
  if (kernel == AttentionKernel::mma || (automatic && few)) return std::nullopt;
  const char* obstacle = hopper_obstacle(made, options);
  if (obstacle == nullptr && tile &&
      hopper_shared_bytes(made, *tile, {1, tile->stages}) > kHopperSharedBytes) {
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
  HopperPlan plan = plan_hopper(made, tile);
  Array next;
  if (is_ragged(call)) {
    next = zeroed_words(1, on);
    plan.next = next.address();
  }
  const HopperAttentionRoom room = choose_room(made, tile);
  const CUtensorMap q = head_map(made.q, call.q_at, batches, call.heads, call.queries,
                                 static_cast<int>(kHopperGroupRows));
  const KeyExtents keys = key_extents(made);
  const int tma_rows = plan.page_rows > 0 ? plan.page_rows : tile.keys;
  const CUtensorMap k =
      head_map(made.k, call.k_at, keys.batches, call.kv_heads, keys.tokens, tma_rows);
  const CUtensorMap v =
      head_map(made.v, call.v_at, keys.batches, call.kv_heads, keys.tokens, tma_rows);
  const CUtensorMap out = result_map(made.made.out, call, packed);
  const LaunchConfig config = hopper_config(made, tile, room, plan, on);
  KernelsAhead kernels;
  const LazyKernel* const combine = begin_combine(kernels, made);
  launch(hopper_attention_kernel(made, tile, room).on(made.q.device()), config, q, k, v, out, call,
         plan);
  launch_combine(made, combine, kernels, on);
  partial.use_on(on);
  if (plan.next != 0) next.use_on(on);
}

}  // namespace kernwright::kernels
