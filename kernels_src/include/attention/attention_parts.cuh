// How attention on Hopper is shared out: tiles, shared memory, which queries and keys a block has.
// Compute capability 9.0 alone.
#pragma once

#include <kernwright/attention.cuh>
#include <kernwright/mbarrier.cuh>

namespace kernwright {

constexpr int kGroupRows = 64;  // queries of a warpgroup
constexpr int kWarpRows = 16;
constexpr int kSwizzled = 64;  // elements of a column of 128 bytes

/// `groups` warpgroups of queries meet `keys` keys at a time, of which `stages` tiles are on their
/// way or in use; each has `places` for its queries and results. Heads have up to `dim` elements,
/// and `value_dim` of values.
template <int dim, int value_dim, int keys, int stages, int groups, int places>
struct Tile {
  static constexpr int kDim = dim, kValueDim = value_dim, kKeys = keys;
  static constexpr int kStages = stages, kGroups = groups, kPlaces = places;
  static constexpr int kRows = groups * kGroupRows, kThreads = (groups + 1) * 128;
  static constexpr int kBound = groups == 1 ? 384 : kThreads;  // leaves registers to hand over
  static constexpr int kColumns = (dim + 63) / 64, kValueColumns = (value_dim + 63) / 64;
  static constexpr int kQueryBytes = kColumns * kGroupRows * 128;  // of a warpgroup
  static constexpr int kOutBytes = kValueColumns * kGroupRows * 128;
  static constexpr int kGroupBytes = kQueryBytes > kOutBytes ? kQueryBytes : kOutBytes;
  static constexpr int kKeyColumn = keys * 128;  // bytes
  static constexpr int kKeyBytes = kColumns * kKeyColumn;
  static constexpr int kValueBytes = kValueColumns * kKeyColumn;
};

/// How the work is shared out. Heads of all batches are numbered; `section` of them are worked on
/// at the same time, as their keys and values fit the L2 cache.
struct Plan {
  int tiles, row_tiles, section;  // tiles of all splits
  // What batches and heads are multiplied by for a place in the maps: 0 where all are the same.
  int q_batch, q_head, k_batch, k_head, v_batch, v_head;
};

template <typename Of>
struct Shared {
  static constexpr int kStages = Of::kStages;
  unsigned char *base, *key_base, *value_base;
  Mbarrier *q_full, *q_empty;  // of each warpgroup's places
  Mbarrier *k_full, *k_empty, *v_full, *v_empty;
  Mbarrier* tail;  // the last values, of which some are none

  __device__ explicit Shared(unsigned char* at)
      : base(at),
        key_base(at + Of::kGroups * Of::kPlaces * Of::kGroupBytes),
        value_base(key_base + kStages * Of::kKeyBytes),
        q_full(reinterpret_cast<Mbarrier*>(value_base + kStages * Of::kValueBytes)),
        q_empty(q_full + Of::kGroups * Of::kPlaces),
        k_full(q_empty + Of::kGroups * Of::kPlaces),
        k_empty(k_full + kStages),
        v_full(k_empty + kStages),
        v_empty(v_full + kStages),
        tail(v_empty + kStages) {}
  /// `slot`: group * kPlaces + place.
  __device__ unsigned char* queries(int slot) const { return base + slot * Of::kGroupBytes; }
  __device__ unsigned char* keys(int stage) const { return key_base + stage * Of::kKeyBytes; }
  __device__ unsigned char* values(int stage) const { return value_base + stage * Of::kValueBytes; }

  __device__ void init() const {
    for (int slot = 0; slot < Of::kGroups * Of::kPlaces; ++slot) {
      q_full[slot].init(1);
      q_empty[slot].init(4);
    }
    for (int stage = 0; stage < kStages; ++stage) {
      k_full[stage].init(1);
      v_full[stage].init(1);
      k_empty[stage].init(4 * Of::kGroups);
      v_empty[stage].init(4 * Of::kGroups);
    }
    tail->init(1);
    Mbarrier::publish();
  }
};

/// Queries of one head, and the tiles of keys that they see, or a split's share of these: `steps`
/// of them from `low` on.
template <typename Of>
struct Part {
  int first_row, head, batch, kv_head, low, steps, split;
  Sequence sequence;

  __device__ __forceinline__ Part(const AttentionCall& call, int first_row_, int head_, int batch_,
                                  int split_)
      : first_row(first_row_), head(head_), batch(batch_), split(split_), sequence(call, batch_) {
    kv_head = head / (call.heads / call.kv_heads);
    const int last_row = min(first_row + Of::kRows, sequence.queries) - 1;
    low = sequence.first_key(call, first_row) / Of::kKeys * Of::kKeys;
    const int high = last_row < first_row ? low : sequence.end_key(call, last_row);
    steps = high > low ? (high - low + Of::kKeys - 1) / Of::kKeys : 0;
    if (call.splits > 1) {
      const int each = (steps + call.splits - 1) / call.splits, first = split * each;
      steps = max(0, min(each, steps - first));
      low += first * Of::kKeys;
    }
  }
};

/// The block's share, part after part. The last queries see most keys where they see no later ones:
/// they come first in the last section, last in the one before, and so on. Every other round of the
/// blocks goes backwards. Both even the blocks' shares.
template <typename Of>
struct Parts {
  const AttentionCall& call;
  const Plan& plan;
  int begin = 0;
  bool back = false;

  /// What a part is made of again, and its steps; below 0 behind the last part.
  struct Place {
    int row, head, batch, split, steps;
  };
  __device__ __forceinline__ Place next() {
    const int blocks = gridDim.x, block = blockIdx.x;
    while (begin < plan.tiles) {
      const int tile = begin + (back ? blocks - 1 - block : block);
      begin += blocks;
      back = !back;
      if (tile >= plan.tiles) continue;
      const int index = call.splits > 1 ? tile / call.splits : tile;
      const int all = plan.section * plan.row_tiles;
      const int section = index / all, inside = index % all;
      const int first = section * plan.section, behind = call.heads * call.batches - first;
      const int heads = min(plan.section, behind);
      const bool falls = (behind - 1) / plan.section % 2 == 0;
      const int place = inside / heads, flat = first + inside - place * heads;
      Place at{(falls ? plan.row_tiles - 1 - place : place) * Of::kRows, 0, flat / call.heads,
               tile - index * call.splits, 0};
      at.head = flat - at.batch * call.heads;
      const Part<Of> made = part(at);
      at.steps = made.steps;
      if (call.q_starts == nullptr || at.row < made.sequence.queries) return at;
    }
    return {0, 0, 0, 0, -1};
  }
  __device__ __forceinline__ Part<Of> part(const Place& at) const {
    return Part<Of>(call, at.row, at.head, at.batch, at.split);
  }
};

}  // namespace kernwright
