// A consumer warpgroup of attention on Hopper: scores, weights, accumulators and results of 64
// queries. `Form` has the products of the operands' types and the packing of weights. Compute
// capability 9.0 alone.
#pragma once

#include <kernwright/attention_loads.cuh>
#include <kernwright/attention_results.cuh>

namespace kernwright {

/// Terms of scores beside scale, window and lengths; with kBiased ALiBi, masks, caps.
enum Extras : int { kPlain = 0, kCapped = 1, kBiased = 2 };

/// Warpgroups begin products one after another: the products of one warpgroup run while the
/// previous warpgroup computes the softmax. Barriers 1, 2 and 3.
template <int kGroups>
struct PingPong {
  int group;
  __device__ __forceinline__ explicit PingPong(int group_) : group(group_) {
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

/// A warpgroup's view of a part.
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

/// Queued: scores of 64 queries and a tile of keys.
template <typename T, typename Config>
__device__ __forceinline__ void multiply_keys(unsigned queries, unsigned keys) {
  const unsigned long long a = matrix_descriptor(queries, kGroupRows * 128);
  const unsigned long long b = matrix_descriptor(keys, Config::kKeyColumn);
#pragma unroll
  for (int k = 0; k < Config::kDim * Config::kSize / 32; ++k) {
    const unsigned inside = k % 4 * 32;
    AccumulatorProducts<T>::template add<Config::kKeys, kScores, false, false>(
        further(a, k / 4 * (kGroupRows * 128) + inside),
        further(b, k / 4 * Config::kKeyColumn + inside), k > 0);
  }
  commit_products();
}

/// Tensor cores add products of float8 with fewer bits than float32 has. So accumulators of many
/// tiles are kept in memory, and the accumulators of every `tiles` tiles are added there in
/// float32.
struct KeptAccumulators {
  float4* accumulators;  // of the block's warpgroups: 64 queries of float32 each
  int tiles;
};

/// The mainloop of a warpgroup over the queries of all parts.
template <typename Form, typename Config, Extras kExtras>
struct Attending {
  using T = typename Form::Out;
  using Softmax = Running<Form::kLift>;
  static constexpr bool kAhead = Config::kPlaces > 1, kLate = Config::kPlaces > 2;
  // Products of three warpgroups have few cycles for each tile, none for a branch between them: the
  // first scores have a text of their own.
  static constexpr bool kApart = Config::kGroups == 3;
  const Shared<Config>& shared;
  const TensorMap& map_out;
  const AttentionCall& call;
  const PingPong<Config::kGroups>& ping_pong;
  int group, warp, lane;
  float scale, inner;  // of scores to units of log2; before the cap
  KeptAccumulators kept;
  Ring<Config::kStages> k_ring;
  Ring<Config::kValueStages> v_ring;
  Ring<Config::kPlaces> q_ring;
  Ring<kParts> ring;
  View view;

  /// The stage of a part's queries, later of the part's result.
  __device__ __forceinline__ int part_slot(int part) const {
    static_assert(kParts == 6 && Config::kPlaces <= 3);  // so the rings go on together
    const int behind = Config::kPlaces == 3 && part >= 3 ? part - 3 : part;
    return group * Config::kPlaces + (Config::kPlaces == 3 ? behind : part % Config::kPlaces);
  }
  __device__ __forceinline__ int slot() const { return group * Config::kPlaces + q_ring.stage; }

  /// The next part is this one.
  __device__ __forceinline__ void take_part() {
    shared.part_full[ring.stage].wait(ring.parity);
    view.template take<Config::kKeys>(call, shared.parts[ring.stage], group,
                                      warp * kWarpRows + lane / 4);
    view.place = ring.stage;
    if constexpr (Config::kSize == 1) view.factor = shared.parts[ring.stage].score_scale;
    ring.advance();
  }
  /// The factor that brings a part's scores to units of log2.
  __device__ __forceinline__ float part_scale(const Part& part) const {
    return Config::kSize == 2 || kExtras == kCapped ? scale : scale * fabsf(part.score_scale);
  }
  /// Queued: scores of a tile.
  __device__ __forceinline__ void begin_scores() const {
    begin_products();
    multiply_keys<typename Form::Scores, Config>(shared_address(shared.queries(slot())),
                                                 shared_address(shared.keys(k_ring.stage)));
  }
  /// Queues the products of a tile; without `adds` they overwrite the accumulators.
  __device__ __forceinline__ void begin_values(const unsigned (&weights)[Config::kSteps][4],
                                               bool adds) const {
    shared.v_full[v_ring.stage].wait(v_ring.parity);
    begin_products();
    const unsigned long long values =
        Form::template describe_values<Config>(shared_address(shared.values(v_ring.stage)));
#pragma unroll
    for (int k = 0; k < Config::kSteps; ++k) {
      Form::template multiply_values<Config>(weights[k], values, k, k > 0 ? 1 : adds);
    }
    commit_products();
  }
  __device__ __forceinline__ void take_scores(float (&s)[Config::kKeys / 2]) {
    read_accumulators<kScores>(s);
    give_back(shared.k_empty[k_ring.stage], lane);
    k_ring.advance();
  }
  __device__ __forceinline__ void take_values(unsigned (&weights)[Config::kSteps][4]) {
    keep_weights(weights);
    give_back(shared.v_empty[v_ring.stage], lane);
    v_ring.advance();
  }

  /// Scores of the tile become weights; see Running::take().
  __device__ __forceinline__ void weigh(float (&s)[Config::kKeys / 2], Softmax& running,
                                        float (&shrink)[2]) const {
    const Part& part = shared.parts[view.place];
    const auto span = [&] {
      return Span{same_in_warp(part.queries), same_in_warp(part.keys), same_in_warp(part.diagonal)};
    };
    if constexpr (kExtras == kBiased) {
      const ScoreTerms terms(call, same_in_warp(part.batch), same_in_warp(part.head));
      bend_scores<T, Config>(s, call, span(), terms, view.row, view.first);
    }
    if constexpr (kExtras == kCapped) {
#pragma unroll
      for (float& score : s) score = quick_tanh(score * (inner * view.factor));
    } else if (Config::kSize == 1 && view.factor < 0) {
#pragma unroll
      for (float& score : s) score = -score;
    }
    if (view.first < view.all_low || view.first + Config::kKeys > view.all_high) {
      hide_keys<Config::kWindow>(s, call, span(), view.row, view.first);
    }
    running.take(s, part_scale(part), shrink);
  }

  /// The thread's own place in memory.
  __device__ __forceinline__ float4* kept_place() const {
    return kept.accumulators + group * (Config::kValueDim / 8 * 128) + (warp * 32 + lane);
  }
  /// Stores the accumulators in memory; adds the stored ones first where `others` is true.
  __device__ __forceinline__ void keep(bool others) const {
    if (others) add_kept();
    store_accumulators<kResult, Config::kValueDim / 2>(kept_place());
  }
  __device__ __forceinline__ void add_kept() const {
    add_stored_accumulators<kResult, Config::kValueDim / 2>(kept_place());
  }
  __device__ __forceinline__ void shrink_kept(const float (&shrink)[2]) const {
    float4* const at = kept_place();
#pragma unroll 4
    for (int i = 0; i < Config::kValueDim / 8; ++i) {
      const float4 sum = at[i * 128];
      at[i * 128] =
          make_float4(sum.x * shrink[0], sum.y * shrink[0], sum.z * shrink[1], sum.w * shrink[1]);
    }
  }
  /// Stores a part's result through the stage of its queries, or the accumulators of a split.
  /// `met`: the warps have met since the last products of these queries.
  __device__ __forceinline__ void store(int place, bool met, const Softmax& running) const {
    const Part& part = shared.parts[place];
    const int row = same_in_warp(part.row) + group * kGroupRows + warp * kWarpRows;
    if constexpr (Config::kSplits) {
      float out[Config::kValueDim / 2];
      read_accumulators<kResult>(out);
      store_accumulators<Config>(out, running, part_scale(part), call, part, row, lane);
    } else {
      if (!met) meet(4 + group, 128);
      store_rows<T, Config>(running, part_scale(part),
                            shared.queries(part_slot(place)) + warp * (kWarpRows * 128), map_out,
                            call, part, row, lane);
    }
  }
  /// It serves another part now.
  __device__ __forceinline__ void give_place(int place) const {
    __syncwarp();
    if (lane == 0) {
      wait_for_store_reads<0>();
      shared.q_empty[part_slot(place)].arrive();
      shared.part_empty[place].arrive();
    }
  }
  __device__ __forceinline__ void wait_for_queries() const {
    shared.q_full[slot()].wait(q_ring.parity);
  }
  __device__ __forceinline__ void wait_for_keys() const {
    shared.k_full[k_ring.stage].wait(k_ring.parity);
  }

  /// Computes a part from the first scores to the result, the last keys first. With several stages
  /// of queries the parts overlap up to the block's last part: the first scores of a part run
  /// beside the last products of the previous part, and the previous result is stored beside the
  /// second scores. With two stages a part of one tile ends the overlap, too: the next queries wait
  /// for its stage. The code has few copies of the products, because compile time grows with their
  /// number. But scores are always queued where products of weights are queued behind them:
  /// otherwise ptxas makes one product wait for the previous one.
  __device__ __forceinline__ void run(float (&s)[Config::kKeys / 2],
                                      unsigned (&weights)[Config::kSteps][4]) {
    Softmax running, last;
    float shrink[2];
    int here = 0, before = 0, owed = 0;  // places: of a part, of the one before, to be given
    bool owes = false, filled = false, adds = false, leaves = false, ends = false;
    int summed = 0;  // tiles since accumulators were kept
    bool keeps = false, kept_last = false;
    const auto give_owed = [&] {
      if (kAhead && owes) give_place(owed);
      owes = false;
    };
    const auto begin_turn = [&] {
      ping_pong.begin();
      begin_scores();
    };
    wait_for_queries();
    wait_for_keys();
    while (true) {
      if constexpr (!kApart) begin_turn();
      if (filled) {
        if constexpr (kApart) begin_turn();
        if (leaves) {
          ping_pong.end();
          store(before, Config::kGroups > 1, last);  // the warps met at their turn
          owed = before;
          owes = true;
        }
        begin_values(weights, adds);
        if (!leaves) ping_pong.end();
        adds = true;
        if (kAhead && ends) {
          before = here;
          last = running;
          running = Softmax();
          kept_last = keeps;
          adds = keeps = false;
          summed = 0;
        }
        wait_for_products<1>();
      } else {
        if constexpr (kApart) begin_turn();
        ping_pong.end();
        wait_for_products<0>();
      }
      take_scores(s);
      weigh(s, running, shrink);
      settle(s);
      settle(shrink);
      // Totals are never below 0. Three warpgroups check all the same: without a reader in front of
      // the wait, ptxas computed the weights behind the wait for the products.
      const bool wrong = kApart && running.total[0] < -running.total[1];
      const bool shrinks = __any_sync(~0u, shrink[0] != 1 || shrink[1] != 1 || wrong);
      here = view.place;
      ends = --view.left == 0;
      view.first -= Config::kKeys;
      if (kAhead && ends) take_part();
      const bool more = view.left > 0;
      // NOTE: a wait here, as ptxas moves that for products up to the last branch before it, and
      // the weights would be made behind it.
      if (more) wait_for_keys();
      wait_for_products<0>();
      if (filled) take_values(weights);
      give_owed();
      if (adds && shrinks) {
        scale_accumulators<kResult, Config::kValueDim / 2>(shrink);
        if (Form::kKeeps && keeps) shrink_kept(shrink);
      }
      Form::pack(s, weights);
      leaves = kAhead && filled && !adds;
      if (Form::kKeeps && leaves && kept_last) add_kept();
      filled = true;
      // For all warps alike: so are the products that follow.
      if (Form::kKeeps && adds && ++summed >= kept.tiles) {
        keep(keeps);
        keeps = true;
        adds = false;
        summed = 0;
      }
      if (!more || (!kLate && leaves && ends)) break;
      if (kAhead && ends) {
        q_ring.advance();
        wait_for_queries();
      }
    }
    while (true) {  // the previous part, if its result is still in registers, and this part
      if (!leaves) {
        ping_pong.begin();
        begin_values(weights, adds);
        ping_pong.end();
        wait_for_products<0>();
        take_values(weights);
        give_owed();
        if (Form::kKeeps && keeps) add_kept();
      }
      const int place = leaves ? before : here;
      Softmax ended = running;
      if (leaves) ended = last;
      store(place, Config::kGroups > 1 && leaves, ended);
      give_place(place);
      if (!leaves) break;
      leaves = false;
    }
  }
};

template <typename Form, typename Config, Extras kExtras>
__device__ __forceinline__ void attend(const Shared<Config>& shared, const TensorMap& map_out,
                                       const AttentionCall& call,
                                       const KeptAccumulators& kept = {}) {
  const int group = same_in_warp(static_cast<int>(threadIdx.x / 128)) - 1;
  const int warp = same_in_warp(static_cast<int>(threadIdx.x / 32 % 4));
  const int lane = threadIdx.x % 32;
  const PingPong<Config::kGroups> ping_pong(group);
  constexpr bool kHasCap = kExtras == kCapped, kAhead = Config::kPlaces > 1;
  const float scale = kExtras == kBiased ? 1.0f : (kHasCap ? call.soft_cap : call.scale) * kLog2E;
  Attending<Form, Config, kExtras> attending{
      shared,    map_out, call,
      ping_pong, group,   warp,
      lane,      scale,   kHasCap ? call.scale / call.soft_cap : 0.0f,
      kept,      {},      {},
      {},        {},      {}};
  declare_accumulators<2, (Config::kKeys > Config::kValueDim ? Config::kKeys : Config::kValueDim) /
                              2>();
  float s[Config::kKeys / 2];
  unsigned weights[Config::kSteps][4];
  attending.take_part();
  while (attending.view.left > 0) {
    attending.run(s, weights);
    if constexpr (!kAhead) attending.take_part();
    attending.q_ring.advance();
  }
  ping_pong.leave();
}

/// Moves registers from the producer warps to the consumer warpgroups.
template <typename Config>
__device__ __forceinline__ void release_registers() {
  if constexpr (Config::kGroups < 3) asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
  if constexpr (Config::kGroups == 3) asm volatile("setmaxnreg.dec.sync.aligned.u32 32;");
}
template <typename Config>
__device__ __forceinline__ void take_registers() {
  if constexpr (Config::kGroups == 1) asm volatile("setmaxnreg.inc.sync.aligned.u32 248;");
  if constexpr (Config::kGroups == 2) asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
  if constexpr (Config::kGroups == 3) asm volatile("setmaxnreg.inc.sync.aligned.u32 160;");
}

}  // namespace kernwright
