// Plans of attention on Hopper, for elements of 16 bits and for float8.
#pragma once

#include "kernels_src/attention/attention_call.h"
#include "kernels_src/attention/hopper_attention.h"

#include <cstdint>

namespace kernwright::kernels {

constexpr std::int64_t kHopperGroupRows = 64;
constexpr int kHopperSharedBytes = 232448;  // of a block, at most

/// `HopperPlan` of attention_parts.cuh.
struct HopperPlan {
  std::int32_t heads, page_rows;
  std::int32_t tiles, row_tiles, section, rising, group;
  std::int32_t q_batch, q_head, k_batch, k_head, v_batch, v_head;
  CUdeviceptr next;
};

std::int64_t multiprocessor_count(const PreparedAttention& made);
/// `Extras` of attention_group.cuh.
int hopper_extras(const AttentionCall& call);
/// Whether sequences may have other lengths than the arrays.
bool is_ragged(const AttentionCall& call);
/// `Uses` of attention_parts.cuh.
int hopper_uses(const AttentionCall& call);

/// Tokens of a page that one TMA load of a tile of `keys` tokens has: a power of two, at least 16
/// for pages that the kernel takes.
int page_rows(const AttentionCall& call, int keys);

/// Of a block.
int hopper_shared_bytes(const PreparedAttention& made, const HopperAttentionTile& tile,
                        const HopperAttentionRoom& room);
/// The best use of shared memory that fits. Two places for a warpgroup's queries let loads and
/// stores overlap with products. With three, parts of one or two tiles of keys do not wait for
/// stores. Longer parts gain more by one more stage of values. `taken` bytes serve something else.
HopperAttentionRoom choose_room(const PreparedAttention& made, const HopperAttentionTile& tile,
                                int taken = 0);
/// 192 rows of small heads, 128 else, and 64 where few blocks would come of these.
HopperAttentionTile choose_hopper_tile(const PreparedAttention& made,
                                       const AttentionOptions& options);
HopperPlan plan_hopper(const PreparedAttention& made, const HopperAttentionTile& tile);
LaunchConfig hopper_config(const PreparedAttention& made, const HopperAttentionTile& tile,
                           const HopperAttentionRoom& room, const HopperPlan& plan,
                           const Stream& on);

/// The result as one row of heads: those of all batches, or of all packed tokens.
CUtensorMap result_map(const Array& out, const AttentionCall& call, bool packed);

}  // namespace kernwright::kernels
