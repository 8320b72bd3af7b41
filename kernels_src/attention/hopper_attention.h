// Attention of many queries on Hopper: its calls, its tiles, its launch.
#pragma once

#include "core/stream.h"
#include "driver/driver_api.h"

#include <cstdint>
#include <optional>
#include <span>

namespace kernwright {
class Array;
}

namespace kernwright::kernels {

struct AttentionOptions;
struct HeadStrides;
struct PreparedAttention;

/// Slots for the queries of each warpgroup, and stages of values, which may be more than those of
/// keys.
struct HopperAttentionRoom {
  int places, value_stages;
};

/// Blocks of `groups` warpgroups, 64 queries each, meet `keys` keys at a time; `stages` tiles of
/// keys and of values are on their way or in use. Blocks are persistent: each takes many rows.
/// `splits` blocks share the keys, and a second kernel puts their results together.
struct HopperAttentionTile {
  int keys = 128, stages = 2, groups = 2;
  std::int64_t splits = 1;

  int threads() const { return (groups + 1) * 128; }
};

enum class AttentionKernel : std::uint8_t { automatic, mma, hopper };

/// Tiles worth measuring for heads of 64, 96, 128, 192 or 256 elements: each gives right results.
std::span<const HopperAttentionTile> hopper_attention_tiles();

/// The kernel of attention() with 16-bit or 8-bit elements, and its tile. Packed sequences have no
/// splits. A PlanScope of one counts for the calls of a thread.
struct AttentionPlan {
  AttentionKernel kernel = AttentionKernel::automatic;
  std::optional<HopperAttentionTile> tile{};
};
/// Throws ArgumentError unless the tile is one of hopper_attention_tiles(), with any splits.
void require_attention_plan(const AttentionPlan& plan);
/// The plan of this thread's scope, or one that leaves the choice to the rules.
AttentionPlan current_attention_plan() noexcept;

/// The tile for a call; nothing where the other kernel has to do it: on other devices, with
/// dropout, with a mask or ALiBi and heads above 128 elements, where elements are not 16 bytes
/// apart or go backwards, for caches of 8 bits or pages that are no multiple of 16 tokens. Throws
/// ArgumentError for a plan of a scope that does not take the call. `few`: the rows are few. Then
/// the kernels of decoding take them, unless a scope has a plan.
std::optional<HopperAttentionTile> choose_hopper_attention(const PreparedAttention& made,
                                                           const AttentionOptions& options,
                                                           bool few);
void launch_hopper_attention(PreparedAttention& made, const AttentionOptions& options,
                             HopperAttentionTile tile, const Stream& on);

/// Why the kernel cannot do it; null where it can.
const char* hopper_obstacle(const PreparedAttention& made, const AttentionOptions& options);
/// Whether a tensor map can describe it: of extents above 1, strides are positive multiples of 16
/// bytes, but for repeated batches and heads.
bool fits_map(const HeadStrides& at, std::int64_t batches, std::int64_t heads, std::int64_t tokens);
/// The tensor map of TMA tiles of `tile_rows` tokens of one head, 128 bytes of each token; equal
/// batches and heads are one.
CUtensorMap head_map(const Array& array, const HeadStrides& at, std::int64_t batches,
                     std::int64_t heads, std::int64_t tokens, int tile_rows);

}  // namespace kernwright::kernels
