// Attention of many queries the Hopper way: a warp copies tiles of keys and values by tensor maps
// into rings of stages, warpgroups of 64 queries multiply them (wgmma). Products with the next keys
// run beside the softmax of these, and warpgroups take turns at the matrix units. Where queries
// have two places, those of the next rows come while these are worked on, and the first products
// with them run while the result leaves.
#include <kernwright/attention_parts.cuh>
#include <kernwright/attention_rows.cuh>
#include <kernwright/tma.cuh>
#include <kernwright/wgmma_rows.cuh>

using namespace kernwright;

/// Terms of scores beside scale, window and lengths; with kBiased ALiBi, masks, caps.
enum Extras : int { kPlain = 0, kCapped = 1, kBiased = 2 };

struct Maps {
  const TensorMap &q, &k, &v, &out;
};

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
  Ring<Of::kPlaces> q_ring;
  unsigned tails = 0;
  Parts<Of> parts{call, plan};
  for (auto place = parts.next(); place.steps >= 0; place = parts.next()) {
    const Part<Of> part = parts.part(place);
    const Sequence& sequence = part.sequence;
    const int q_token = static_cast<int>(sequence.q_token) + part.first_row;
    const int k_token = static_cast<int>(sequence.k_token) + part.low;
    const auto load_queries = [&] {
      const int head = part.head * plan.q_head;
      const int batch = static_cast<int>(sequence.q_batch) * plan.q_batch;
#pragma unroll 1
      for (int group = 0; group < Of::kGroups; ++group) {
        const int slot = group * Of::kPlaces + q_ring.stage;
        shared.q_empty[slot].wait(q_ring.parity ^ 1);
        shared.q_full[slot].arrive_expecting(Of::kQueryBytes);
#pragma unroll
        for (int i = 0; i < Of::kColumns; ++i) {
          load_box(shared.queries(slot) + i * (kGroupRows * 128), maps.q,
                   {i * kSwizzled, q_token + group * kGroupRows, head, batch}, shared.q_full[slot]);
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
    // The rows of the last tile behind the sequence, as far as the array goes; zeros follow.
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
    q_ring.advance();
  }
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

/// The view of a warpgroup's queries.
struct View {
  int row;                // of the thread, the other is 8 behind
  int all_low, all_high;  // keys in sight of all of them
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

/// A warp's 16 rows of a split's sums, relative to the rows' peaks.
template <typename Of>
__device__ __forceinline__ void store_sums(const float (&out)[Of::kValueDim / 2],
                                           const Running& running, float scale,
                                           const AttentionCall& call, const Part<Of>& part, int row,
                                           int lane) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int query = row + lane / 4 + 8 * r;
    const float total = running.whole_total(r);
    if (query >= call.queries) continue;
    const long long at = split_place(call, part.batch, part.head, query, part.split);
    float* const sums = call.partial + at * Of::kValueDim + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < Of::kValueDim / 8; ++i) {
      *reinterpret_cast<float2*>(sums + 8 * i) =
          make_float2(out[4 * i + 2 * r], out[4 * i + 2 * r + 1]);
    }
    if (lane % 4 == 0) {
      *reinterpret_cast<float2*>(call.peaks + 2 * at) = make_float2(running.peak[r] * scale, total);
    }
  }
}

/// A warp's 16 rows of the result and their logarithms, through the place of its queries, which are
/// not needed any more. The stores may still read it.
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
  }
}

/// A warpgroup's work on its queries of all parts.
template <typename T, typename Of, Extras kExtras>
struct Attending {
  const Shared<Of>& shared;
  const TensorMap& map_out;
  const AttentionCall& call;
  const Turns<Of::kGroups>& turns;
  int group, warp, lane;
  float scale, inner;  // of scores to units of log2; before the cap
  Ring<Of::kStages> k_ring, v_ring;
  Ring<Of::kPlaces> q_ring;

  /// The place of this part's queries; `behind`: of those of the part before.
  __device__ __forceinline__ int slot(bool behind) const {
    const int place = behind && Of::kPlaces == 2 ? q_ring.stage ^ 1 : q_ring.stage;
    return group * Of::kPlaces + place;
  }

  /// Queued: the first scores of a part.
  __device__ __forceinline__ void begin(float (&s)[Of::kKeys / 2]) const {
    begin_products();
    multiply_keys<T, Of>(s, shared_address(shared.queries(slot(false))),
                         shared_address(shared.keys(k_ring.stage)));
  }

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

  /// From the first scores, already there, to the weights of the last keys; their values are not
  /// yet added. The last keys come first.
  __device__ __forceinline__ void run(const Part<Of>& part, bool owes, Running& running,
                                      float (&s)[Of::kKeys / 2], float (&out)[Of::kValueDim / 2],
                                      unsigned (&weights)[Of::kKeys / 16][4]) {
    const int row = part.first_row + group * kGroupRows;
    const View view{row + warp * kWarpRows + lane / 4,
                    part.sequence.first_key(call, row + kGroupRows - 1),
                    part.sequence.end_key(call, row)};
    const unsigned queries = shared_address(shared.queries(slot(false)));
    float shrink[2];
    int first = part.low + (part.steps - 1) * Of::kKeys;
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
      } else if (Of::kPlaces == 2 && owes) {
        free_place();
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
  }

  /// The part's result leaves through the place of its queries, or a split's sums do.
  __device__ __forceinline__ void store(const Part<Of>& part, const Running& running,
                                        const float (&out)[Of::kValueDim / 2]) const {
    const int row = part.first_row + group * kGroupRows + warp * kWarpRows;
    if (call.splits > 1) {
      store_sums<Of>(out, running, scale, call, part, row, lane);
      return;
    }
    meet(4 + group, 128);
    store_rows<T, Of>(out, running, scale,
                      shared.queries(slot(Of::kPlaces == 2)) + warp * (kWarpRows * 128), map_out,
                      call, part, row, lane);
  }
  /// The place through which the result left serves other queries now; with two places, the place
  /// of the part before this one.
  __device__ __forceinline__ void free_place() {
    if (lane == 0) wait_for_reads_of_stores<0>();
    give_back(shared.q_empty[slot(Of::kPlaces == 2)], lane);
  }
};

template <typename T, typename Of, Extras kExtras>
__device__ __forceinline__ void attend(const Shared<Of>& shared, const TensorMap& map_out,
                                       const AttentionCall& call, const Plan& plan) {
  // Values known to the compiler as the same in a warp stay out of its registers.
  const int group = __shfl_sync(~0u, static_cast<int>(threadIdx.x / 128), 0) - 1;
  const int warp = __shfl_sync(~0u, static_cast<int>(threadIdx.x / 32 % 4), 0);
  const int lane = threadIdx.x % 32;
  const Turns<Of::kGroups> turns(group);
  constexpr bool kHasCap = kExtras == kCapped, kAhead = Of::kPlaces == 2;
  const float scale = kExtras == kBiased ? 1.0f : (kHasCap ? call.soft_cap : call.scale) * kLog2E;
  Attending<T, Of, kExtras> of{shared, map_out, call,
                               turns,  group,   warp,
                               lane,   scale,   kHasCap ? call.scale / call.soft_cap : 0.0f,
                               {},     {},      {}};
  Parts<Of> parts{call, plan};
  auto place = parts.next(), before = place;
  auto next = place;  // with two places, as numbering parts takes time: products run beside it
  const auto look_ahead = [&] {
    if constexpr (kAhead) next = parts.next();
  };
  look_ahead();
  float s[Of::kKeys / 2], out[Of::kValueDim / 2];
  unsigned weights[Of::kKeys / 16][4];
  const auto take_scores = [&] {
    wait_for_products<0>();
    settle(s);
    give_back(shared.k_empty[of.k_ring.stage], lane);
    of.k_ring.advance();
  };
  const auto add_values = [&] {
    begin_products();
    multiply_values<T, Of>(out, weights, shared_address(shared.values(of.v_ring.stage)));
  };
  const auto take_sums = [&] {
    settle(out);
    keep_weights(weights);
    give_back(shared.v_empty[of.v_ring.stage], lane);
    of.v_ring.advance();
  };
  const auto go_on = [&] {
    before = place;
    place = kAhead ? next : parts.next();
    of.q_ring.advance();
  };
  while (place.steps >= 0) {
    Running running;
    shared.q_full[of.slot(false)].wait(of.q_ring.parity);
    if (place.steps > 0) {
      shared.k_full[of.k_ring.stage].wait(of.k_ring.parity);
      if constexpr (kAhead) turns.begin();
      of.begin(s);
      if constexpr (kAhead) turns.end();
      take_scores();
      // Parts one after the other; their first scores are there.
      for (bool owes = false;; owes = true) {
        running = Running();
#pragma unroll
        for (float& sum : out) sum = 0;
        of.run(parts.part(place), owes, running, s, out, weights);
        if constexpr (kAhead) go_on();
        shared.v_full[of.v_ring.stage].wait(of.v_ring.parity);
        if (!kAhead || place.steps <= 0) break;
        shared.q_full[of.slot(false)].wait(of.q_ring.parity);
        shared.k_full[of.k_ring.stage].wait(of.k_ring.parity);
        turns.begin();
        add_values();
        of.begin(s);
        turns.end();
        look_ahead();
        wait_for_products<1>();
        take_sums();
        of.store(parts.part(before), running, out);
        take_scores();
      }
      add_values();
      wait_for_products<0>();
      take_sums();
    } else {
#pragma unroll
      for (float& sum : out) sum = 0;
      if constexpr (kAhead) go_on();
    }
    look_ahead();
    of.store(parts.part(kAhead ? before : place), running, out);
    of.free_place();
    if constexpr (!kAhead) go_on();
  }
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
