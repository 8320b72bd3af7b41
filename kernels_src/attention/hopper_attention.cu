// Attention of many queries the Hopper way: warps copy tiles of keys and values by tensor maps into
// rings of stages, warpgroups of 64 queries multiply them (wgmma). Products with the next keys
// run beside the softmax of these, and warpgroups take turns at the matrix units. Where queries
// have two or three places, those of the next rows come while these are worked on, and the first
// products with them run beside the last ones of these.
#include <kernwright/attention_loads.cuh>
#include <kernwright/attention_results.cuh>

using namespace kernwright;

/// Terms of scores beside scale, window and lengths; with kBiased ALiBi, masks, caps.
enum Extras : int { kPlain = 0, kCapped = 1, kBiased = 2 };

/// Warpgroups begin their products one after the other: the next one's run while this one has its
/// softmax. Barriers 1, 2 and 3.
template <int kGroups>
struct PingPong {
  int group;
  __device__ __forceinline__ explicit PingPong(int of) : group(of) {
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

/// A warpgroup's view of its part.
struct View {
  int left, first;        // tiles, the last first; the first key of this one
  int row;                // of the thread, the other is 8 behind
  int all_low, all_high;  // keys in sight of all queries
  int place;              // of the part's numbers

  template <int kKeys>
  __device__ __forceinline__ void take(const AttentionCall& call, const Part& part, int group,
                                       int inside) {
    const int first_row = part.row + group * kGroupRows;
    left = same_in_warp(part.steps);
    first = same_in_warp(part.low + (part.steps - 1) * kKeys);
    row = first_row + inside;
    all_low = same_in_warp(part.first_key(call, first_row + kGroupRows - 1));
    all_high = same_in_warp(part.end_key(call, first_row));
  }
};

/// The slots of a part's queries (later its result) and of its numbers.
struct Place {
  int slot = 0, part = 0;
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

/// Queued: weights times a tile of values are added; without `adds` they are the first.
template <typename T, typename Of>
__device__ __forceinline__ void multiply_values(float (&out)[Of::kValueDim / 2],
                                                const unsigned (&weights)[Of::kKeys / 16][4],
                                                unsigned values, int adds) {
#pragma unroll
  for (int k = 0; k < Of::kKeys / 16; ++k) {
    RowProducts<T, Of::kValueDim>::add(
        out, weights[k], matrix_descriptor(values + k * 2048, Of::kKeyColumn), k > 0 ? 1 : adds);
  }
  commit_products();
}

/// A warpgroup's work on its queries of all parts.
template <typename T, typename Of, Extras kExtras>
struct Attending {
  static constexpr bool kAhead = Of::kPlaces > 1, kLate = Of::kPlaces > 2;
  const Shared<Of>& shared;
  const TensorMap& map_out;
  const AttentionCall& call;
  const PingPong<Of::kGroups>& ping_pong;
  int group, warp, lane;
  float scale, inner;  // of scores to units of log2; before the cap
  Ring<Of::kStages> k_ring;
  Ring<Of::kValueStages> v_ring;
  Ring<Of::kPlaces> q_ring;
  Ring<kParts> ring;
  View view;

  /// The place of this part's queries.
  __device__ __forceinline__ int slot() const { return group * Of::kPlaces + q_ring.stage; }

  /// The next part is this one.
  __device__ __forceinline__ void take_part() {
    shared.part_full[ring.stage].wait(ring.parity);
    view.template take<Of::kKeys>(call, shared.parts[ring.stage], group,
                                  warp * kWarpRows + lane / 4);
    view.place = ring.stage;
    ring.advance();
  }
  /// Queued: scores of a tile.
  __device__ __forceinline__ void begin_scores(float (&s)[Of::kKeys / 2]) const {
    begin_products();
    multiply_keys<T, Of>(s, shared_address(shared.queries(slot())),
                         shared_address(shared.keys(k_ring.stage)));
  }
  /// Queued: the sums of a tile.
  __device__ __forceinline__ void begin_sums(float (&out)[Of::kValueDim / 2],
                                             const unsigned (&weights)[Of::kKeys / 16][4],
                                             bool adds) const {
    shared.v_full[v_ring.stage].wait(v_ring.parity);
    begin_products();
    multiply_values<T, Of>(out, weights, shared_address(shared.values(v_ring.stage)), adds);
  }
  __device__ __forceinline__ void take_scores(float (&s)[Of::kKeys / 2]) {
    settle(s);
    give_back(shared.k_empty[k_ring.stage], lane);
    k_ring.advance();
  }
  __device__ __forceinline__ void take_sums(float (&out)[Of::kValueDim / 2],
                                            unsigned (&weights)[Of::kKeys / 16][4]) {
    settle(out);
    keep_weights(weights);
    give_back(shared.v_empty[v_ring.stage], lane);
    v_ring.advance();
  }

  /// Scores of the tile become weights; see Running::take().
  __device__ __forceinline__ void weigh(float (&s)[Of::kKeys / 2], Running& running,
                                        float (&shrink)[2]) const {
    const Part& part = shared.parts[view.place];
    const auto span = [&] {
      return Span{same_in_warp(part.queries), same_in_warp(part.keys), same_in_warp(part.diagonal)};
    };
    if constexpr (kExtras == kBiased) {
      const ScoreTerms terms(call, same_in_warp(part.batch), same_in_warp(part.head));
      bend_scores<T>(s, call, span(), terms, view.row, view.first);
    }
    if constexpr (kExtras == kCapped) {
#pragma unroll
      for (float& score : s) score = quick_tanh(score * inner);
    }
    if (view.first < view.all_low || view.first + Of::kKeys > view.all_high) {
      hide_keys(s, call, span(), view.row, view.first);
    }
    running.take(s, scale, shrink);
  }

  /// A part's result leaves through the place of its queries, or a split's sums do. `met`: so have
  /// the warps since the last products with these queries.
  __device__ __forceinline__ void store(const Place& of, bool met, const Running& running,
                                        float (&out)[Of::kValueDim / 2]) const {
    const Part& part = shared.parts[of.part];
    const int row = same_in_warp(part.row) + group * kGroupRows + warp * kWarpRows;
    if (call.splits > 1) {
      store_sums<Of>(out, running, scale, call, part, row, lane);
      return;
    }
    if (!met) meet(4 + group, 128);
    store_rows<T, Of>(out, running, scale, shared.queries(of.slot) + warp * (kWarpRows * 128),
                      map_out, call, part, row, lane);
  }
  /// It serves another part now.
  __device__ __forceinline__ void give_place(const Place& of) const {
    __syncwarp();
    if (lane == 0) {
      wait_for_reads_of_stores<0>();
      shared.q_empty[of.slot].arrive();
      shared.part_empty[of.part].arrive();
    }
  }
  __device__ __forceinline__ void wait_for_queries() const {
    shared.q_full[slot()].wait(q_ring.parity);
  }
  __device__ __forceinline__ void wait_for_keys() const {
    shared.k_full[k_ring.stage].wait(k_ring.parity);
  }

  /// From the first scores of a part, already there, to its result. The last keys come first. With
  /// more places parts follow each other to the block's last one: the first scores of one are made
  /// beside the last sums of the part before. That one's result leaves beside the second scores.
  /// With two places and one tile it leaves before: the next queries wait for its place.
  __device__ __forceinline__ void run(float (&s)[Of::kKeys / 2], float (&out)[Of::kValueDim / 2],
                                      unsigned (&weights)[Of::kKeys / 16][4]) {
    Running running, last;
    float shrink[2];
    Place before, owed;  // the part before; whose result is on its way
    bool owes = false, queued = false, adds = false;
    const auto leave = [&] {
      store(before, Of::kGroups > 1, last, out);  // the warps met at their turn
      owed = before;
      owes = true;
    };
    const auto give_owed = [&] {
      if (kAhead && owes) give_place(owed);
      owes = false;
    };
    while (true) {
      weigh(s, running, shrink);
      settle(s);
      settle(shrink);
      const bool shrinks = __any_sync(~0u, shrink[0] != 1 || shrink[1] != 1);
      const Place here{slot(), view.place};
      const bool ends = --view.left == 0;
      view.first -= Of::kKeys;
      if (kAhead && ends) take_part();
      const bool more = view.left > 0;
      // NOTE: a wait here, as ptxas moves that for products up to the last branch before it, and
      // the weights would be made behind it.
      if (more) wait_for_keys();
      wait_for_products<0>();
      if (queued) take_sums(out, weights);
      give_owed();
      if (adds && shrinks) {
#pragma unroll
        for (int i = 0; i < Of::kValueDim / 2; ++i) out[i] *= shrink[i / 2 % 2];
      }
      pack_weights<T>(s, weights);
      const bool leaves = kAhead && queued && !adds, late = kLate || !ends;
      if (leaves && !late) leave();
      if (!more) {
        if (leaves && late) leave();
        before = here;
        break;
      }
      if (kAhead && ends) {
        if (!kLate) give_owed();
        q_ring.advance();
        wait_for_queries();
      }
      ping_pong.begin();
      begin_scores(s);
      if (leaves && late) {
        ping_pong.end();
        leave();
      }
      begin_sums(out, weights, adds);
      if (!leaves || !late) ping_pong.end();
      queued = adds = true;
      if (kAhead && ends) {
        before = here;
        last = running;
        running = Running();
        adds = false;
      }
      wait_for_products<1>();
      take_scores(s);
    }
    ping_pong.begin();
    begin_sums(out, weights, adds);
    ping_pong.end();
    wait_for_products<0>();
    take_sums(out, weights);
    give_owed();
    store(before, false, running, out);
    give_place(before);
  }
};

template <typename T, typename Of, Extras kExtras>
__device__ __forceinline__ void attend(const Shared<Of>& shared, const TensorMap& map_out,
                                       const AttentionCall& call) {
  const int group = same_in_warp(static_cast<int>(threadIdx.x / 128)) - 1;
  const int warp = same_in_warp(static_cast<int>(threadIdx.x / 32 % 4));
  const int lane = threadIdx.x % 32;
  const PingPong<Of::kGroups> ping_pong(group);
  constexpr bool kHasCap = kExtras == kCapped, kAhead = Of::kPlaces > 1;
  const float scale = kExtras == kBiased ? 1.0f : (kHasCap ? call.soft_cap : call.scale) * kLog2E;
  Attending<T, Of, kExtras> of{shared,    map_out, call,
                               ping_pong, group,   warp,
                               lane,      scale,   kHasCap ? call.scale / call.soft_cap : 0.0f,
                               {},        {},      {},
                               {},        {}};
  float s[Of::kKeys / 2], out[Of::kValueDim / 2];
  unsigned weights[Of::kKeys / 16][4];
  of.take_part();
  while (of.view.left > 0) {
    of.wait_for_queries();
    of.wait_for_keys();
    if constexpr (kAhead) ping_pong.begin();
    of.begin_scores(s);
    if constexpr (kAhead) ping_pong.end();
    wait_for_products<0>();
    of.take_scores(s);
    of.run(s, out, weights);
    if constexpr (kAhead) break;
    of.take_part();
    of.q_ring.advance();
  }
  ping_pong.leave();
}

/// Launched with Of::kThreads threads. Dynamic shared memory: queries of each warpgroup, stages of
/// keys, stages of values, barriers (two for each slot of queries and numbered part, four for each
/// stage, one for the end), the numbered parts.
template <typename T, typename Of, Extras kExtras>
__global__ void __launch_bounds__(Of::kBound, 1)
    hopper_attention(const __grid_constant__ TensorMap map_q,
                     const __grid_constant__ TensorMap map_k,
                     const __grid_constant__ TensorMap map_v,
                     const __grid_constant__ TensorMap map_out,
                     const __grid_constant__ AttentionCall call,
                     const __grid_constant__ HopperPlan plan) {
  extern __shared__ __align__(1024) unsigned char storage[];
  const Shared<Of> shared(storage);
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
    const int warp = threadIdx.x / 32;
    if (threadIdx.x == 0) number_parts<Of>(shared, call, plan);
    if (warp == 1) load_queries<Of>(shared, map_q, call, plan);
    if (warp == 2) load_keys<Of>(shared, map_k, call, plan);
    if (warp == 3) load_values<Of>(shared, map_v, call, plan);
  } else {
    if constexpr (Of::kGroups == 1) asm volatile("setmaxnreg.inc.sync.aligned.u32 248;");
    if constexpr (Of::kGroups == 2) asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    if constexpr (Of::kGroups == 3) asm volatile("setmaxnreg.inc.sync.aligned.u32 160;");
    attend<T, Of, kExtras>(shared, map_out, call);
  }
}
