// How attention on Hopper is shared out: tiles, shared memory, which queries and keys a block has.
// Compute capability 9.0 alone.
#pragma once

#include <kernwright/attention.cuh>
#include <kernwright/mbarrier.cuh>

namespace kernwright {

constexpr int kGroupRows = 64;  // queries of a warpgroup
constexpr int kWarpRows = 16;
constexpr int kSwizzled = 64;  // elements of the result in a column of 128 bytes

/// Optional features of a call. A kernel is compiled without unused features, because compile time
/// grows with the code.
enum Uses : int {
  kUsesSplits = 1,  // several blocks share a part's keys
  kUsesStarts = 2,  // starts and lengths of sequences
  kUsesWindow = 4,  // keys before the visible ones
  kUsesSinks = 8,
  kUsesCap = 16,        // this and the further ones tell the terms of kBiased
  kUsesSlopes = 32,     // ALiBi
  kUsesPages = 64,      // packed sequences over pages of keys and values
  kUsesMaskKind = 128,  // times MaskKind
};

/// `groups` consumer warpgroups of queries take `keys` keys at a time. `stages` and `value_stages`
/// are the stages of keys and of values; each group has `places` stages for queries and results.
/// Heads have up to `dim` elements of `size` bytes, and `value_dim` elements of values. Values of
/// one byte come from turn_values(), without gaps. `uses`: Uses of the call.
template <int size, int dim, int value_dim, int keys, int stages, int value_stages, int groups,
          int places, int uses>
struct TileTraits {
  static constexpr bool kSplits = uses & kUsesSplits, kStarts = uses & kUsesStarts;
  static constexpr bool kWindow = uses & kUsesWindow, kSinks = uses & kUsesSinks;
  static constexpr bool kCap = uses & kUsesCap, kSlopes = uses & kUsesSlopes;
  static constexpr bool kPages = uses & kUsesPages;
  static constexpr int kMaskKind = uses / kUsesMaskKind;
  static constexpr int kSize = size, kPerColumn = 128 / size;
  static constexpr int kDim = dim, kValueDim = value_dim, kKeys = keys;
  static constexpr int kStages = stages, kValueStages = value_stages;
  static constexpr int kGroups = groups, kPlaces = places;
  static constexpr int kRows = groups * kGroupRows, kThreads = (groups + 1) * 128;
  static constexpr int kBound = groups == 1 ? 384 : kThreads;  // leaves registers to hand over
  static constexpr int kColumns = (dim + kPerColumn - 1) / kPerColumn;
  static constexpr int kValueColumns = (value_dim + 63) / 64;      // and columns of the result
  static constexpr int kQueryBytes = kColumns * kGroupRows * 128;  // of a warpgroup
  static constexpr int kOutBytes = kValueColumns * kGroupRows * 128;
  static constexpr int kGroupBytes = kQueryBytes > kOutBytes ? kQueryBytes : kOutBytes;
  static constexpr int kKeyColumn = keys * 128;    // bytes
  static constexpr int kSteps = keys * size / 32;  // of weights, each of four registers
  static constexpr int kKeyBytes = kColumns * kKeyColumn;
  static constexpr int kValueBytes = size == 1 ? keys * value_dim : kValueColumns * kKeyColumn;
};
/// For elements of 16 bits.
template <int dim, int value_dim, int keys, int stages, int value_stages, int groups, int places,
          int uses>
using Tile = TileTraits<2, dim, value_dim, keys, stages, value_stages, groups, places, uses>;
/// For float8.
template <int dim, int value_dim, int keys, int stages, int value_stages, int groups, int places,
          int uses>
using ByteTile = TileTraits<1, dim, value_dim, keys, stages, value_stages, groups, places, uses>;

/// Whether there are starts of packed sequences.
template <typename Config>
__device__ __forceinline__ bool is_packed(const int* starts) {
  return Config::kStarts && starts != nullptr;
}

/// How the work is divided. Heads of all batches are numbered; the blocks work on `section` heads
/// at once, because the keys and values of a section fit the L2 cache. Packed sequences over pages
/// share tiles of rows: they count as one batch.
struct HopperPlan {
  int heads, page_rows;           // of all batches; tokens of a page that one TMA load has
  int tiles, row_tiles, section;  // tiles of all splits
  int rising;                     // sections of even (0), of odd (1), of no number (2) rise
  int group;                      // heads of queries to one of keys
  // Factors of batches and heads for a place in the maps: 0 if all share one.
  int q_batch, q_head, k_batch, k_head, v_batch, v_head;
  unsigned* next;  // tiles taken beyond the first of each block, 0 at the end; null: rounds
};

/// Queries of one head and the tiles of keys that the queries see, or a split's share of these
/// tiles. A part has at least one tile, in which the queries may see nothing.
struct alignas(16) Part : Span {
  int steps;             // tiles; below 0: no part is left
  int low;               // key of the first
  int row, head, batch;  // the first query
  int split, kv_head, out_batch;
  int q_token, k_token;            // where the sequence begins
  float score_scale, value_scale;  // of float8 operands
};

constexpr int kParts = 6;    // numbered and not yet done with
constexpr int kLoaders = 3;  // warps that read them: of queries, of keys, of values

template <typename Config>
struct Shared {
  static constexpr int kStages = Config::kStages, kValueStages = Config::kValueStages;
  static constexpr int kBarriers =  // an even number: parts follow
      2 * (Config::kGroups * Config::kPlaces + kStages + kValueStages + kParts + 1);
  unsigned char *base, *key_base, *value_base;
  Mbarrier *q_full, *q_empty;  // of each warpgroup's places
  Mbarrier *k_full, *k_empty, *v_full, *v_empty;
  Mbarrier *part_full, *part_empty;
  Mbarrier* tail;   // the last values, of which some are none
  Mbarrier* begun;  // the warp that loads keys has begun a part
  Part* parts;

  __device__ explicit Shared(unsigned char* at)
      : base(at),
        key_base(at + Config::kGroups * Config::kPlaces * Config::kGroupBytes),
        value_base(key_base + kStages * Config::kKeyBytes),
        q_full(reinterpret_cast<Mbarrier*>(value_base + kValueStages * Config::kValueBytes)),
        q_empty(q_full + Config::kGroups * Config::kPlaces),
        k_full(q_empty + Config::kGroups * Config::kPlaces),
        k_empty(k_full + kStages),
        v_full(k_empty + kStages),
        v_empty(v_full + kValueStages),
        part_full(v_empty + kValueStages),
        part_empty(part_full + kParts),
        tail(part_empty + kParts),
        begun(tail + 1),
        parts(reinterpret_cast<Part*>(q_full + kBarriers)) {}
  /// `slot`: group * kPlaces + place.
  __device__ unsigned char* queries(int slot) const { return base + slot * Config::kGroupBytes; }
  __device__ unsigned char* keys(int stage) const { return key_base + stage * Config::kKeyBytes; }
  __device__ unsigned char* values(int stage) const {
    return value_base + stage * Config::kValueBytes;
  }

  /// By one thread: barriers are made one after the other where threads have different ones.
  __device__ void init() const {
    for (int slot = 0; slot < Config::kGroups * Config::kPlaces; ++slot) {
      q_full[slot].init(1);
      q_empty[slot].init(4);
    }
    for (int stage = 0; stage < kStages; ++stage) {
      k_full[stage].init(1);
      k_empty[stage].init(4 * Config::kGroups);
    }
    for (int stage = 0; stage < kValueStages; ++stage) {
      v_full[stage].init(1);
      v_empty[stage].init(4 * Config::kGroups);
    }
    for (int i = 0; i < kParts; ++i) {
      part_full[i].init(1);
      part_empty[i].init(4 * Config::kGroups + kLoaders);
    }
    tail->init(1);
    begun->init(1);
    Mbarrier::publish();
  }
};

/// The quotient of numbers that are not below 0: it takes fewer instructions than a signed
/// quotient.
__device__ __forceinline__ int quotient(int number, int by) {
  return static_cast<unsigned>(number) / static_cast<unsigned>(by);
}

/// The block's share, part after part. With a causal mask the last queries see the most keys: they
/// come first in the last section (the work falls) and, if orders alternate, last in the previous
/// section, and so on. Every second round of the blocks goes backwards. Both even out the shares of
/// the blocks. Where two rounds are whole sections, shares are even without alternating orders.
///
/// Sequences of unknown lengths make rounds uneven: with `plan.next` a block takes the next tile
/// when it has none left. The number of requests equals the number of tiles, so the counter is 0
/// again at the end.
template <typename Config>
struct Parts {
  const AttentionCall& call;
  const HopperPlan& plan;
  int begin = 0;
  bool back = false;

  __device__ __forceinline__ Part next() {
    for (int tile = next_tile(); tile >= 0; tile = next_tile()) {
      const int index = Config::kSplits ? tile / call.splits : tile;
      const int all = plan.section * plan.row_tiles;
      const int section = quotient(index, all), inside = index - section * all;
      const int first = section * plan.section;
      const int heads = min(plan.section, plan.heads - first);
      const int place = quotient(inside, heads), flat = first + inside - place * heads;
      const bool falls = section % 2 != plan.rising;
      const int row_tile = falls ? plan.row_tiles - 1 - place : place;
      int row = row_tile * Config::kRows, batch = 0, head = flat;
      if constexpr (Config::kPages) {
        const PackedTile packed(call, row_tile, Config::kRows, 1);
        row = packed.first_row;
        batch = packed.batch;
      } else {
        batch = quotient(flat, call.heads);
        head = flat - batch * call.heads;
      }
      const Sequence sequence(call, batch, Config::kStarts);
      if (is_packed<Config>(call.q_starts) && (row < 0 || row >= sequence.queries)) continue;
      if (Config::kPages && PackedTile::is_left_out(call, batch, sequence.queries)) continue;
      const int split = Config::kSplits ? tile - index * call.splits : 0;
      return part(sequence, row, batch, head, split);
    }
    Part none{};
    none.steps = -1;
    return none;
  }

 private:
  /// Below 0: none is left.
  __device__ __forceinline__ int next_tile() {
    const int blocks = gridDim.x, block = blockIdx.x;
    if (Config::kStarts && plan.next != nullptr) {
      const unsigned last = static_cast<unsigned>(plan.tiles) - 1;
      const int tile = back ? blocks + static_cast<int>(atomicInc(plan.next, last)) : block;
      back = true;
      return tile < plan.tiles ? tile : -1;
    }
    while (begin < plan.tiles) {
      const int tile = begin + (back ? blocks - 1 - block : block);
      begin += blocks;
      back = !back;
      if (tile < plan.tiles) return tile;
    }
    return -1;
  }
  __device__ __forceinline__ Part part(const Sequence& sequence, int row, int batch, int head,
                                       int split) const {
    const int last_row = min(row + Config::kRows, sequence.queries) - 1;
    int low = Config::kWindow ? sequence.first_key(call, row) / Config::kKeys * Config::kKeys : 0;
    const int high = last_row < row ? low : sequence.end_key(call, last_row);
    int steps = high > low ? (high - low + Config::kKeys - 1) / Config::kKeys : 0;
    if constexpr (Config::kSplits) {
      const int each = (steps + call.splits - 1) / call.splits, first = split * each;
      steps = max(0, min(each, steps - first));
      low += first * Config::kKeys;
    }
    steps = max(1, steps);
    Part made;
    made.queries = sequence.queries;
    made.keys = sequence.keys;
    made.diagonal = sequence.diagonal;
    made.steps = steps;
    made.low = low;
    made.row = row;
    made.head = head;
    made.batch = batch;
    made.split = split;
    made.kv_head = quotient(head, plan.group);
    made.out_batch = is_packed<Config>(call.q_starts) ? 0 : batch;
    made.q_token = static_cast<int>(sequence.q_token);
    made.k_token = static_cast<int>(sequence.k_token);
    made.score_scale = made.value_scale = 1;
    return made;
  }
};

}  // namespace kernwright
