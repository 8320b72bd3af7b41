// A warpgroup's work in attention on Hopper: scores, weights, sums, results of its 64 queries.
// `Form` has the products of the operands' types and the packing of weights. Compute capability
// 9.0 alone.
#pragma once

#include <kernwright/attention_loads.cuh>
#include <kernwright/attention_results.cuh>

namespace kernwright {

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
  float factor = 1;       // of scores of float8 operands

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
  for (int k = 0; k < Of::kDim * Of::kSize / 32; ++k) {
    const unsigned inside = k % 4 * 32;
    Products<T, Of::kKeys, false, false>::add(
        s, matrix_descriptor(queries + k / 4 * (kGroupRows * 128) + inside, kGroupRows * 128),
        matrix_descriptor(keys + k / 4 * Of::kKeyColumn + inside, Of::kKeyColumn), k > 0);
  }
  commit_products();
}

/// Matrix units add products of float8 with fewer bits than float32 has. So sums of many tiles are
/// kept in memory, and those of every `tiles` tiles are added to them in float32.
struct KeptSums {
  float4* sums;  // of the block's warpgroups: 64 queries of float32 each
  int tiles;
};

/// A warpgroup's work on its queries of all parts.
template <typename Form, typename Of, Extras kExtras>
struct Attending {
  using T = typename Form::Out;
  using Sums = Running<Form::kLift>;
  static constexpr bool kAhead = Of::kPlaces > 1, kLate = Of::kPlaces > 2;
  const Shared<Of>& shared;
  const TensorMap& map_out;
  const AttentionCall& call;
  const PingPong<Of::kGroups>& ping_pong;
  int group, warp, lane;
  float scale, inner;  // of scores to units of log2; before the cap
  KeptSums kept;
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
    if constexpr (Of::kSize == 1) view.factor = shared.parts[ring.stage].score_scale;
    ring.advance();
  }
  /// Of a part's scores to units of log2.
  __device__ __forceinline__ float scale_of(const Part& part) const {
    return Of::kSize == 2 || kExtras == kCapped ? scale : scale * fabsf(part.score_scale);
  }
  /// Queued: scores of a tile.
  __device__ __forceinline__ void begin_scores(float (&s)[Of::kKeys / 2]) const {
    begin_products();
    multiply_keys<typename Form::Scores, Of>(s, shared_address(shared.queries(slot())),
                                             shared_address(shared.keys(k_ring.stage)));
  }
  /// Queued: the sums of a tile.
  __device__ __forceinline__ void begin_sums(float (&out)[Of::kValueDim / 2],
                                             const unsigned (&weights)[Of::kSteps][4],
                                             bool adds) const {
    shared.v_full[v_ring.stage].wait(v_ring.parity);
    begin_products();
    Form::template multiply_values<Of>(out, weights, shared_address(shared.values(v_ring.stage)),
                                       adds);
  }
  __device__ __forceinline__ void take_scores(float (&s)[Of::kKeys / 2]) {
    settle(s);
    give_back(shared.k_empty[k_ring.stage], lane);
    k_ring.advance();
  }
  __device__ __forceinline__ void take_sums(float (&out)[Of::kValueDim / 2],
                                            unsigned (&weights)[Of::kSteps][4]) {
    settle(out);
    keep_weights(weights);
    give_back(shared.v_empty[v_ring.stage], lane);
    v_ring.advance();
  }

  /// Scores of the tile become weights; see Running::take().
  __device__ __forceinline__ void weigh(float (&s)[Of::kKeys / 2], Sums& running,
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
      for (float& score : s) score = quick_tanh(score * (inner * view.factor));
    } else if (Of::kSize == 1 && view.factor < 0) {
#pragma unroll
      for (float& score : s) score = -score;
    }
    if (view.first < view.all_low || view.first + Of::kKeys > view.all_high) {
      hide_keys(s, call, span(), view.row, view.first);
    }
    running.take(s, scale_of(part), shrink);
  }

  /// The thread's own place in memory.
  __device__ __forceinline__ float4* kept_sums() const {
    return kept.sums + group * (Of::kValueDim / 8 * 128) + (warp * 32 + lane);
  }
  /// Sums go to memory, and are added where `others` are.
  __device__ __forceinline__ void keep(float (&out)[Of::kValueDim / 2], bool others) const {
    if (others) add_kept(out);
    float4* const at = kept_sums();
#pragma unroll
    for (int i = 0; i < Of::kValueDim / 8; ++i) {
      at[i * 128] = make_float4(out[4 * i], out[4 * i + 1], out[4 * i + 2], out[4 * i + 3]);
    }
  }
  __device__ __forceinline__ void shrink_kept(const float (&shrink)[2]) const {
    float4* const at = kept_sums();
#pragma unroll 4
    for (int i = 0; i < Of::kValueDim / 8; ++i) {
      const float4 sum = at[i * 128];
      at[i * 128] =
          make_float4(sum.x * shrink[0], sum.y * shrink[0], sum.z * shrink[1], sum.w * shrink[1]);
    }
  }
  __device__ __forceinline__ void add_kept(float (&out)[Of::kValueDim / 2]) const {
    const float4* const at = kept_sums();
#pragma unroll
    for (int i = 0; i < Of::kValueDim / 8; ++i) {
      const float4 sum = at[i * 128];
      out[4 * i] += sum.x;
      out[4 * i + 1] += sum.y;
      out[4 * i + 2] += sum.z;
      out[4 * i + 3] += sum.w;
    }
  }

  /// A part's result leaves through the place of its queries, or a split's sums do. `met`: so have
  /// the warps since the last products with these queries.
  __device__ __forceinline__ void store(const Place& of, bool met, const Sums& running,
                                        float (&out)[Of::kValueDim / 2]) const {
    const Part& part = shared.parts[of.part];
    const int row = same_in_warp(part.row) + group * kGroupRows + warp * kWarpRows;
    if (call.splits > 1) {
      store_sums<Of>(out, running, scale_of(part), call, part, row, lane);
      return;
    }
    if (!met) meet(4 + group, 128);
    store_rows<T, Of>(out, running, scale_of(part),
                      shared.queries(of.slot) + warp * (kWarpRows * 128), map_out, call, part, row,
                      lane);
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
                                      unsigned (&weights)[Of::kSteps][4]) {
    Sums running, last;
    float shrink[2];
    Place before, owed;  // the part before; whose result is on its way
    bool owes = false, queued = false, adds = false;
    int summed = 0;  // tiles since sums were kept
    bool keeps = false, kept_last = false;
    const auto leave = [&] {
      if (Form::kKeeps && kept_last) add_kept(out);
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
        if (Form::kKeeps && keeps) shrink_kept(shrink);
      }
      Form::pack(s, weights);
      const bool leaves = kAhead && queued && !adds, late = kLate || !ends;
      // For all warps alike: so are the products that follow.
      if (Form::kKeeps && adds && ++summed >= kept.tiles) {
        keep(out, keeps);
        keeps = true;
        adds = false;
        summed = 0;
      }
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
        running = Sums();
        adds = false;
        kept_last = keeps;
        keeps = false;
        summed = 0;
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
    if (Form::kKeeps && keeps) add_kept(out);
    store(before, false, running, out);
    give_place(before);
  }
};

template <typename Form, typename Of, Extras kExtras>
__device__ __forceinline__ void attend(const Shared<Of>& shared, const TensorMap& map_out,
                                       const AttentionCall& call, const KeptSums& kept = {}) {
  const int group = same_in_warp(static_cast<int>(threadIdx.x / 128)) - 1;
  const int warp = same_in_warp(static_cast<int>(threadIdx.x / 32 % 4));
  const int lane = threadIdx.x % 32;
  const PingPong<Of::kGroups> ping_pong(group);
  constexpr bool kHasCap = kExtras == kCapped, kAhead = Of::kPlaces > 1;
  const float scale = kExtras == kBiased ? 1.0f : (kHasCap ? call.soft_cap : call.scale) * kLog2E;
  Attending<Form, Of, kExtras> of{shared,    map_out, call,
                                  ping_pong, group,   warp,
                                  lane,      scale,   kHasCap ? call.scale / call.soft_cap : 0.0f,
                                  kept,      {},      {},
                                  {},        {},      {}};
  float s[Of::kKeys / 2], out[Of::kValueDim / 2];
  unsigned weights[Of::kSteps][4];
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

/// Registers go from the copying warps to those that multiply.
template <typename Of>
__device__ __forceinline__ void release_registers() {
  if constexpr (Of::kGroups < 3) asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
  if constexpr (Of::kGroups == 3) asm volatile("setmaxnreg.dec.sync.aligned.u32 32;");
}
template <typename Of>
__device__ __forceinline__ void take_registers() {
  if constexpr (Of::kGroups == 1) asm volatile("setmaxnreg.inc.sync.aligned.u32 248;");
  if constexpr (Of::kGroups == 2) asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
  if constexpr (Of::kGroups == 3) asm volatile("setmaxnreg.inc.sync.aligned.u32 160;");
}

}  // namespace kernwright
