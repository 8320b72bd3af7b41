// Attention of many queries the Hopper way: a warp copies tiles of keys and values by tensor maps
// into rings of stages, warpgroups of 64 queries multiply them (wgmma). Products with the next keys
// run beside the softmax of these, and warpgroups take turns at the matrix units.
#include <kernwright/attention_rows.cuh>
#include <kernwright/tma.cuh>
#include <kernwright/wgmma_rows.cuh>

using namespace kernwright;

constexpr int kGroupRows = 64;  // queries of a warpgroup
constexpr int kWarpRows = 16;
constexpr int kSwizzled = 64;  // elements of a column of 128 bytes

/// `groups` warpgroups of queries meet `keys` keys at a time, of which `stages` tiles are on their
/// way or in use. Heads have up to `dim` elements, and `value_dim` of values.
template <int dim, int value_dim, int keys, int stages, int groups>
struct Tile {
  static constexpr int kDim = dim, kValueDim = value_dim, kKeys = keys;
  static constexpr int kStages = stages, kGroups = groups;
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
  int tiles, row_tiles, section;
  // What batches and heads are multiplied by for a place in the maps: 0 where all are the same.
  int q_batch, q_head, k_batch, k_head, v_batch, v_head;
};

/// What goes into scores beside scale, window and lengths; with kBiased ALiBi, masks, caps.
enum Extras : int { kPlain = 0, kCapped = 1, kBiased = 2 };

struct Maps {
  const TensorMap &q, &k, &v, &out;
};

template <typename Of>
struct Shared {
  static constexpr int kStages = Of::kStages;
  unsigned char *base, *key_base, *value_base;
  Mbarrier *q_full, *q_empty;  // of each warpgroup
  Mbarrier *k_full, *k_empty, *v_full, *v_empty;
  Mbarrier* tail;  // the last values, of which some are none

  __device__ explicit Shared(unsigned char* at)
      : base(at),
        key_base(at + Of::kGroups * Of::kGroupBytes),
        value_base(key_base + kStages * Of::kKeyBytes),
        q_full(reinterpret_cast<Mbarrier*>(value_base + kStages * Of::kValueBytes)),
        q_empty(q_full + Of::kGroups),
        k_full(q_empty + Of::kGroups),
        k_empty(k_full + kStages),
        v_full(k_empty + kStages),
        v_empty(v_full + kStages),
        tail(v_empty + kStages) {}
  __device__ unsigned char* queries(int group) const { return base + group * Of::kGroupBytes; }
  __device__ unsigned char* keys(int stage) const { return key_base + stage * Of::kKeyBytes; }
  __device__ unsigned char* values(int stage) const { return value_base + stage * Of::kValueBytes; }

  __device__ void init() const {
    for (int group = 0; group < Of::kGroups; ++group) {
      q_full[group].init(1);
      q_empty[group].init(4);
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

/// Queries of one head, and the tiles of keys that they see: `steps` of them from `low` on.
template <typename Of>
struct Part {
  int first_row, head, batch, kv_head, low, steps;
  Sequence sequence;

  __device__ __forceinline__ Part(const AttentionCall& call, int first_row_, int head_, int batch_)
      : first_row(first_row_), head(head_), batch(batch_), sequence(call, batch_) {
    kv_head = head / (call.heads / call.kv_heads);
    const int last_row = min(first_row + Of::kRows, sequence.queries) - 1;
    low = sequence.first_key(call, first_row) / Of::kKeys * Of::kKeys;
    const int high = last_row < first_row ? low : sequence.end_key(call, last_row);
    steps = high > low ? (high - low + Of::kKeys - 1) / Of::kKeys : 0;
  }
};

/// Calls work(part) for the block's share. The last queries see most keys where they see no later
/// ones: they come first in the last section, last in the one before, and so on. Every other round
/// of the blocks goes backwards. Both even the blocks' shares.
template <typename Of, typename Work>
__device__ __forceinline__ void for_parts(const AttentionCall& call, const Plan& plan, Work work) {
  const int blocks = gridDim.x, block = blockIdx.x;
  bool back = false;
  for (int begin = 0; begin < plan.tiles; begin += blocks, back = !back) {
    const int index = begin + (back ? blocks - 1 - block : block);
    if (index >= plan.tiles) continue;
    const int all = plan.section * plan.row_tiles;
    const int section = index / all, inside = index % all;
    const int first = section * plan.section, behind = call.heads * call.batches - first;
    const int heads = min(plan.section, behind);
    const bool falls = (behind - 1) / plan.section % 2 == 0;
    const int place = inside / heads;
    const int row = (falls ? plan.row_tiles - 1 - place : place) * Of::kRows;
    const int flat = first + inside % heads;
    const Part<Of> part(call, row, flat % call.heads, flat / call.heads);
    if (call.q_starts != nullptr && row >= part.sequence.queries) continue;
    work(part);
  }
}

/// Zeros in the place of values behind the last key, which are another sequence's or unwritten. By
/// a warp.
template <typename Of>
__device__ __forceinline__ void clear_values(unsigned char* values, int from, int lane) {
#pragma unroll 1
  for (int column = 0; column < Of::kValueColumns; ++column) {
    uint4* units = reinterpret_cast<uint4*>(values + column * Of::kKeyColumn);
#pragma unroll 1
    for (int i = from * 8 + lane; i < Of::kKeys * 8; i += 32) units[i] = make_uint4(0, 0, 0, 0);
  }
  show_to_copies();
  __syncwarp();
}

/// A warp loads queries, keys and values, the last keys first.
template <typename Of>
__device__ __forceinline__ void load_parts(const Shared<Of>& shared, const Maps& maps,
                                           const AttentionCall& call, const Plan& plan) {
  const int lane = threadIdx.x;
  Ring<Of::kStages> k_ring, v_ring;
  unsigned turn = 1, tails = 0;
  for_parts<Of>(call, plan, [&](const Part<Of>& part) {
    const Sequence& sequence = part.sequence;
    const int q_token = static_cast<int>(sequence.q_token) + part.first_row;
    const int k_token = static_cast<int>(sequence.k_token) + part.low;
    const auto load_queries = [&] {
      const int head = part.head * plan.q_head;
      const int batch = static_cast<int>(sequence.q_batch) * plan.q_batch;
#pragma unroll 1
      for (int group = 0; group < Of::kGroups; ++group) {
        shared.q_empty[group].wait(turn);
        shared.q_full[group].arrive_expecting(Of::kQueryBytes);
#pragma unroll
        for (int i = 0; i < Of::kColumns; ++i) {
          load_box(shared.queries(group) + i * (kGroupRows * 128), maps.q,
                   {i * kSwizzled, q_token + group * kGroupRows, head, batch},
                   shared.q_full[group]);
        }
      }
    };
    const auto load_keys = [&](int step) {
      Mbarrier& full = shared.k_full[k_ring.stage];
      shared.k_empty[k_ring.stage].wait(k_ring.parity ^ 1);
      full.arrive_expecting(Of::kKeyBytes);
#pragma unroll
      for (int i = 0; i < Of::kColumns; ++i) {
        load_box(shared.keys(k_ring.stage) + i * Of::kKeyColumn, maps.k,
                 {i * kSwizzled, k_token + step * Of::kKeys, part.kv_head * plan.k_head,
                  static_cast<int>(sequence.k_batch) * plan.k_batch},
                 full);
      }
    };
    const auto load_values = [&](int step, Mbarrier& full) {
      shared.v_empty[v_ring.stage].wait(v_ring.parity ^ 1);
      full.arrive_expecting(Of::kValueBytes);
#pragma unroll
      for (int i = 0; i < Of::kValueColumns; ++i) {
        load_box(shared.values(v_ring.stage) + i * Of::kKeyColumn, maps.v,
                 {i * kSwizzled, k_token + step * Of::kKeys, part.kv_head * plan.v_head,
                  static_cast<int>(sequence.k_batch) * plan.v_batch},
                 full);
      }
    };
    // The last tile's rows behind the sequence that are in the array; behind that zeros come.
    const int last = sequence.keys - (part.low + (part.steps - 1) * Of::kKeys);
    const bool has_tail = last < Of::kKeys && sequence.k_token + sequence.keys < call.keys;
#pragma unroll 1
    for (int i = 0; i <= part.steps; ++i) {
      if (i < part.steps) {
        if (lane == 0) load_keys(part.steps - 1 - i);
        k_ring.advance();
      }
      if (i == 0) {
        if (lane == 0) load_queries();
        continue;
      }
      Mbarrier& full = shared.v_full[v_ring.stage];
      if (i > 1 || !has_tail) {
        if (lane == 0) load_values(part.steps - i, full);
      } else {
        if (lane == 0) load_values(part.steps - i, *shared.tail);
        __syncwarp();
        shared.tail->wait(tails);
        tails ^= 1;
        clear_values<Of>(shared.values(v_ring.stage), last, lane);
        if (lane == 0) full.arrive();
      }
      v_ring.advance();
    }
    turn ^= 1;
  });
}

/// Warpgroups begin their products one after the other: the next one's run while this one has its
/// softmax. Barriers 1, 2 and 3.
template <int kGroups>
struct Turns {
  int group;
  __device__ __forceinline__ explicit Turns(int of) : group(of) {
    if (kGroups > 1 && group == kGroups - 1) let_pass(1, 256);
  }
  __device__ __forceinline__ void begin() const {
    if (kGroups > 1) meet(1 + group, 256);
  }
  __device__ __forceinline__ void end() const {
    if (kGroups > 1) let_pass(1 + (group + 1) % kGroups, 256);
  }
  __device__ __forceinline__ void leave() const {
    if (kGroups > 1 && group == 0) meet(1, 256);
  }
};

/// What the queries of a warpgroup see.
struct View {
  int row;                // of the thread, the other is 8 behind
  int all_low, all_high;  // keys that all of them see
};

/// Queued: scores of 64 queries and a tile of keys.
template <typename T, typename Of>
__device__ __forceinline__ void multiply_keys(float (&s)[Of::kKeys / 2], unsigned queries,
                                              unsigned keys) {
#pragma unroll
  for (int k = 0; k < Of::kDim / 16; ++k) {
    const unsigned inside = k % 4 * 32;
    Products<T, Of::kKeys, false, false>::add(
        s, matrix_descriptor(queries + k / 4 * (kGroupRows * 128) + inside, kGroupRows * 128),
        matrix_descriptor(keys + k / 4 * Of::kKeyColumn + inside, Of::kKeyColumn), k > 0);
  }
  commit_products();
}

/// Queued: weights times a tile of values are added.
template <typename T, typename Of>
__device__ __forceinline__ void multiply_values(float (&out)[Of::kValueDim / 2],
                                                const unsigned (&weights)[Of::kKeys / 16][4],
                                                unsigned values) {
#pragma unroll
  for (int k = 0; k < Of::kKeys / 16; ++k) {
    RowProducts<T, Of::kValueDim>::add(out, weights[k],
                                       matrix_descriptor(values + k * 2048, Of::kKeyColumn), 1);
  }
  commit_products();
}

/// A warp's rows of the result from its part of the staging, those of the sequence alone.
template <typename T, typename Of>
__device__ __forceinline__ void copy_rows(const unsigned char* staging, const AttentionCall& call,
                                          const Part<Of>& part, int row, int lane) {
  T* const out = static_cast<T*>(call.out) + part.sequence.out_first + part.head * call.out_at.head;
  for (int i = lane; i < kWarpRows * Of::kValueColumns * 8; i += 32) {
    const int r = i / (Of::kValueColumns * 8), unit = i % (Of::kValueColumns * 8);
    if (row + r >= part.sequence.queries || unit * 8 >= call.value_dim) continue;
    const unsigned char* from = staging + unit / 8 * (kGroupRows * 128) + swizzled(r, unit % 8);
    *reinterpret_cast<uint4*>(out + (row + r) * call.out_at.token + unit * 8) =
        *reinterpret_cast<const uint4*>(from);
  }
}

/// A warp's 16 rows of the result and their logarithms, through the place of its queries, which are
/// not needed any more.
template <typename T, typename Of>
__device__ __forceinline__ void store_rows(const float (&out)[Of::kValueDim / 2],
                                           const Running& running, float scale,
                                           unsigned char* staging, const TensorMap& map,
                                           const AttentionCall& call, const Part<Of>& part, int row,
                                           int lane) {
  const bool packed = call.q_starts != nullptr;
  const int stored = packed ? part.sequence.queries : call.queries;
  float factors[2];
  bool missing[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int query = row + lane / 4 + 8 * r;
    const float total = running.whole_total(r);
    missing[r] = query >= part.sequence.queries;
    factors[r] = finish_total(call, part.sequence, part.head, query,
                              missing[r] ? minus_infinity() : running.peak[r] * scale,
                              missing[r] ? 0.0f : total, lane % 4 == 0 && query < stored);
  }
#pragma unroll
  for (int i = 0; i < Of::kValueDim / 8; i += 2) {
    unsigned pairs[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float* two = out + 4 * i + 2 * j;
      const int r = j % 2;
      pairs[j] = missing[r] ? 0 : pair_of<T>(two[0] * factors[r], two[1] * factors[r]);
    }
    store_matrices(shared_address(staging + i / 8 * (kGroupRows * 128) +
                                  swizzled(lane % 16, i % 8 + lane / 16)),
                   pairs);
  }
  show_to_copies();
  __syncwarp();
  if (packed && row + kWarpRows > stored) {
    copy_rows<T>(staging, call, part, row, lane);
    __syncwarp();
  } else if (lane == 0 && row < stored) {
    const int z = packed ? part.head : part.batch * call.heads + part.head;
#pragma unroll
    for (int i = 0; i < Of::kValueColumns; ++i) {
      store_box(map, staging + i * (kGroupRows * 128), i * kSwizzled,
                static_cast<int>(part.sequence.q_token) + row, z);
    }
    commit_stores();
    wait_for_reads_of_stores<0>();
  }
}

/// What a warpgroup has of the queries of one part.
template <typename T, typename Of, Extras kExtras>
struct Attending {
  const Shared<Of>& shared;
  const AttentionCall& call;
  const Turns<Of::kGroups>& turns;
  int group, warp, lane;
  float scale, inner;  // of scores to units of log2; before the cap
  Ring<Of::kStages> k_ring, v_ring;

  /// Scores of the tile at `first` become weights; see Running::take().
  __device__ __forceinline__ void weigh(float (&s)[Of::kKeys / 2], const Part<Of>& part,
                                        const View& view, int first, Running& running,
                                        float (&shrink)[2]) const {
    if constexpr (kExtras == kBiased) {
      const ScoreTerms terms(call, part.batch, part.head);
      bend_scores<T>(s, call, part.sequence, terms, view.row, first);
    }
    if constexpr (kExtras == kCapped) {
#pragma unroll
      for (float& score : s) score = quick_tanh(score * inner);
    }
    if (first < view.all_low || first + Of::kKeys > view.all_high) {
      hide_keys(s, call, part.sequence, view.row, first);
    }
    running.take(s, scale, shrink);
  }

  /// `out` becomes the sum of weights times values. The last keys first.
  __device__ __forceinline__ void run(const Part<Of>& part, const View& view, Running& running,
                                      float (&out)[Of::kValueDim / 2]) {
    const unsigned queries = shared_address(shared.queries(group));
    float s[Of::kKeys / 2], shrink[2];
    unsigned weights[Of::kKeys / 16][4];
    int first = part.low + (part.steps - 1) * Of::kKeys;
#pragma unroll
    for (float& sum : out) sum = 0;
    shared.k_full[k_ring.stage].wait(k_ring.parity);
    begin_products();
    multiply_keys<T, Of>(s, queries, shared_address(shared.keys(k_ring.stage)));
    wait_for_products<0>();
    settle(s);
    give_back(shared.k_empty[k_ring.stage], lane);
    k_ring.advance();
    for (int step = 1;; ++step) {
      weigh(s, part, view, first, running, shrink);
      settle(s);
      settle(shrink);
      // NOTE: a wait here, as ptxas moves that for products up to the last branch before it, and
      // the weights would be made behind it.
      if (step < part.steps) shared.k_full[k_ring.stage].wait(k_ring.parity);
      wait_for_products<0>();
      settle(out);
      keep_weights(weights);
      if (step > 1) {
        give_back(shared.v_empty[v_ring.stage], lane);
        v_ring.advance();
      }
#pragma unroll
      for (int i = 0; i < Of::kValueDim / 2; ++i) out[i] *= shrink[i / 2 % 2];
      pack_weights<T>(s, weights);
      if (step == part.steps) break;
      first -= Of::kKeys;
      turns.begin();
      begin_products();
      multiply_keys<T, Of>(s, queries, shared_address(shared.keys(k_ring.stage)));
      shared.v_full[v_ring.stage].wait(v_ring.parity);
      begin_products();
      multiply_values<T, Of>(out, weights, shared_address(shared.values(v_ring.stage)));
      turns.end();
      wait_for_products<1>();
      settle(s);
      give_back(shared.k_empty[k_ring.stage], lane);
      k_ring.advance();
    }
    shared.v_full[v_ring.stage].wait(v_ring.parity);
    begin_products();
    multiply_values<T, Of>(out, weights, shared_address(shared.values(v_ring.stage)));
    wait_for_products<0>();
    settle(out);
    keep_weights(weights);
    give_back(shared.v_empty[v_ring.stage], lane);
    v_ring.advance();
  }
};

template <typename T, typename Of, Extras kExtras>
__device__ __forceinline__ void attend(const Shared<Of>& shared, const TensorMap& map_out,
                                       const AttentionCall& call, const Plan& plan) {
  // What the compiler knows to be the same in a warp stays out of its registers.
  const int group = __shfl_sync(~0u, static_cast<int>(threadIdx.x / 128), 0) - 1;
  const int warp = __shfl_sync(~0u, static_cast<int>(threadIdx.x / 32 % 4), 0);
  const int lane = threadIdx.x % 32;
  const Turns<Of::kGroups> turns(group);
  constexpr bool kHasCap = kExtras == kCapped;
  const float scale = kExtras == kBiased ? 1.0f : (kHasCap ? call.soft_cap : call.scale) * kLog2E;
  Attending<T, Of, kExtras> attending{
      shared, call, turns, group, warp, lane, scale, kHasCap ? call.scale / call.soft_cap : 0.0f,
      {},     {}};
  unsigned turn = 0;
  for_parts<Of>(call, plan, [&](const Part<Of>& part) {
    const int group_row = part.first_row + group * kGroupRows, row = group_row + warp * kWarpRows;
    const View view{row + lane / 4, part.sequence.first_key(call, group_row + kGroupRows - 1),
                    part.sequence.end_key(call, group_row)};
    Running running;
    float out[Of::kValueDim / 2];
    shared.q_full[group].wait(turn);
    turn ^= 1;
    if (part.steps > 0) {
      attending.run(part, view, running, out);
    } else {
#pragma unroll
      for (float& sum : out) sum = 0;
    }
    meet(4 + group, 128);
    store_rows<T, Of>(out, running, scale, shared.queries(group) + warp * (kWarpRows * 128),
                      map_out, call, part, row, lane);
    give_back(shared.q_empty[group], lane);
  });
  turns.leave();
}

/// Of::kThreads threads. Dynamic shared memory: queries of each warpgroup, stages of keys, stages
/// of values, two barriers for each warpgroup, four for each stage and one.
template <typename T, typename Of, Extras kExtras>
__global__ void __launch_bounds__(Of::kBound, 1)
    hopper_attention(const __grid_constant__ TensorMap map_q,
                     const __grid_constant__ TensorMap map_k,
                     const __grid_constant__ TensorMap map_v,
                     const __grid_constant__ TensorMap map_out,
                     const __grid_constant__ AttentionCall call,
                     const __grid_constant__ Plan plan) {
  extern __shared__ __align__(1024) unsigned char storage[];
  const Shared<Of> shared(storage);
  const Maps maps{map_q, map_k, map_v, map_out};
  if (threadIdx.x == 0) {
    prefetch(map_q);
    prefetch(map_k);
    prefetch(map_v);
    prefetch(map_out);
    shared.init();
  }
  __syncthreads();
  if (threadIdx.x < 128) {
    if constexpr (Of::kGroups < 3) asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if constexpr (Of::kGroups == 3) asm volatile("setmaxnreg.dec.sync.aligned.u32 32;");
    if (threadIdx.x < 32) load_parts<Of>(shared, maps, call, plan);
  } else {
    if constexpr (Of::kGroups == 1) asm volatile("setmaxnreg.inc.sync.aligned.u32 248;");
    if constexpr (Of::kGroups == 2) asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    if constexpr (Of::kGroups == 3) asm volatile("setmaxnreg.inc.sync.aligned.u32 160;");
    attend<T, Of, kExtras>(shared, map_out, call, plan);
  }
}
