// Gradients of attention on Hopper. A block has 128 keys of a head and walks over the queries, the
// last tile first: a producer warp loads tiles of queries and of the result's gradient by TMA, and
// two consumer warpgroups of 64 keys compute weights and changes of scores with keys as rows
// (wgmma). So weights and changes are left operands in registers for the gradients of values and of
// keys. Changes also go to shared memory, where the gradient of the queries reads them. The
// warpgroups alternate in this product, so that one warpgroup computes the next weights while the
// tensor cores work for the second warpgroup. The gradient of the queries is a sum over blocks: a
// thread adds a tile's part to accumulators in global memory (cp.reduce.async.bulk) once all blocks
// with earlier keys have added their parts. The order of additions is fixed and scores are computed
// once; a separate kernel for the queries would need no order, but would compute two of the five
// products twice. Blocks take numbers from a counter, so a block only waits for blocks that have
// begun.
#include <kernwright/gradient_accumulators.cuh>
#include <kernwright/gradient_part.cuh>
#include <kernwright/gradient_rows.cuh>

using namespace kernwright;

constexpr int kThreads = 384;
constexpr int kGroupKeys = 64;  // of a warpgroup
constexpr int kSumSets = 2;     // one of each warpgroup

/// Heads of up to 64 columns take 128 queries, larger heads 64: a thread then holds 64 accumulators
/// for the gradient of a tile's queries.
template <int dim, int value_dim, int queries, bool ragged>
struct Tile : BackwardTile<dim, value_dim, queries, 2 * kGroupKeys, 1, ragged, 2> {
  static constexpr int kHalves = queries / 64;
  static constexpr bool kSmall = dim + value_dim <= 192;
  static constexpr int kChangeSets = 2, kSlotAccumulators = Tile::kAccumulators,
                       kSumSlots = kSumSets;
  static_assert(Tile::kAccumulators == 8192);
};

/// A thread adds every second tile of a warpgroup's gradient of the queries to the accumulators in
/// global memory, in the order of the blocks. The first block of a tile writes instead.
template <typename Config>
__device__ __forceinline__ void add_accumulators(const Shared<Config>& shared,
                                                 const AttentionCall& call,
                                                 const BackwardPlan& plan, const Part<Config>& part,
                                                 int set) {
  unsigned parity = 0;
  int step = kSumSets - 1 - set;
  float4* const from = shared.accumulators + set * (Config::kAccumulators / 4);
  part.for_tiles([&](int head, int tile) {
    if (++step < kSumSets) return;
    step = 0;
    const long long index =
        part.first_tile + static_cast<long long>(head) * plan.query_tiles + tile;
    const unsigned turn = part.turn(call, tile);
    unsigned* const count = plan.counters + 1 + index;
    float* const to = plan.accumulators + index * Config::kAccumulators;
    shared.accumulators_full[set].wait(parity);
    parity ^= 1;
    wait_for_turn(count, turn);
    send_accumulators(to, from, Config::kAccumulators * 4, turn > 0);
    wait_for_store_reads<0>();
    shared.accumulators_empty[set].arrive();
    let_next_block_add(count);
  });
}

/// The state of a warpgroup's thread.
struct Self {
  int group, warp, lane;
  int key;             // of the first row; the second row is 8 behind
  float scale, inner;  // of scores to units of log2; before the cap
};

/// A warpgroup's share of a part: 64 keys.
template <typename T, typename Config, Extras kExtras>
struct Deriving {
  using Steps = GradientSteps<T>;
  static constexpr bool kHasCap = kExtras == kCapped;
  static constexpr int kLast = Config::kHalves - 1;
  static constexpr int kHalfBytes = 64 * 128;  // of 64 queries in a column

  const Shared<Config>& shared;
  const AttentionCall& call;
  const Gradients& more;
  const Part<Config>& part;
  Self self;
  int group_key, rows;  // the first key; bytes before the warp's rows in a column of keys
  unsigned keys, values;
  Ring<Config::kStages> ring;
  int set = 0;
  unsigned accumulators_parity = 1;
  unsigned weights[Config::kHalves][4][4], changes[Config::kHalves][4][4] = {};

  __device__ __forceinline__ Deriving(const Shared<Config>& shared_, const AttentionCall& call_,
                                      const Gradients& more_, const Part<Config>& part_)
      : shared(shared_), call(call_), more(more_), part(part_) {
    self.group = same(threadIdx.x / 128) - 1;
    self.warp = same(threadIdx.x / 32 % 4);
    self.lane = threadIdx.x % 32;
    group_key = part.first_key + self.group * kGroupKeys;
    self.key = group_key + self.warp * kWarpKeys + self.lane / 4;
    self.scale = kExtras == kBiased ? 1.0f : (kHasCap ? call.soft_cap : call.scale) * kLog2E;
    self.inner = kHasCap ? call.scale / call.soft_cap : 0.0f;
    rows = (self.group * kGroupKeys + self.warp * kWarpKeys) * 128;
    keys = shared_address(shared.keys);
    values = shared_address(shared.values);
  }

  /// Queued: scores, and products of gradients and values. Waits for the scores, and so for all
  /// products before them.
  template <int kHalf>
  __device__ __forceinline__ void multiply() {
    const unsigned queries = shared_address(shared.queries(ring.stage)) + kHalf * kHalfBytes;
    const unsigned grads = shared_address(shared.grads(ring.stage)) + kHalf * kHalfBytes;
    const unsigned group_offset = self.group * (kGroupKeys * 128);
    if (kHalf == 0) shared.q_full[ring.stage].wait(ring.parity);
    begin_products();
    multiply_rows<T, kScores, Config::kDim, Config::kKeyColumn, Config::kQueryColumn>(
        keys + group_offset, queries);
    if (kHalf == 0) {
      shared.grad_full[ring.stage].wait(ring.parity);
      shared.facts_full[ring.stage].wait(ring.parity);
    }
    begin_products();
    multiply_rows<T, kValueProducts, Config::kValueDim, Config::kKeyColumn, Config::kQueryColumn>(
        values + group_offset, grads);
    wait_for_products<1>();
    if constexpr (kHalf > 0) {
      keep_weights(weights[0]);
      keep_weights(changes[0]);
    }
  }

  /// 64 queries: weights meet gradients, changes of scores meet queries and go to shared memory.
  template <int kHalf>
  __device__ __forceinline__ void take(int head, int tile_query, bool is_first) {
    const int first = tile_query + kHalf * 64;
    const unsigned facts =
        shared_address(shared.facts(ring.stage) + kHalf * 64 + self.lane % 4 * 2);
    multiply<kHalf>();
    if constexpr (kExtras != kPlain) {
      float s[32];
      read_accumulators<kScores>(s);
      if constexpr (kHasCap) {
#pragma unroll
        for (float& score : s) score = quick_tanh(score * self.inner);
      } else {
        const int query_head = part.kv_head * part.group + head;
        const ScoreTerms terms(call, part.batch, query_head);
        const float* bases = more.bases;
        if (bases != nullptr) bases += part.sequence.lse_first + query_head * call.lse_at.head;
        bias_scores<T>(s, call, part.sequence, terms, bases, self.key, first);
      }
      write_accumulators<kScores>(s);
    }
    const bool partial = first + 64 > part.sequence.queries ||
                         group_key + kGroupKeys > part.sequence.end_key(call, first) ||
                         group_key < part.sequence.first_key(call, first + 63);
    if (partial) hide_queries(call, part.sequence, self.key, first);
    Steps::template weigh<kHasCap>(weights[kHalf], facts, self.scale);
    const bool adds = !is_first || kHalf > 0;
    begin_products();
    add_rows<T, kValueAccumulators, Config::kValueDim, Config::kQueryColumn>(
        weights[kHalf], shared_address(shared.grads(ring.stage)) + kHalf * kHalfBytes, adds);
    wait_for_products<1>();
    if (kExtras == kBiased || partial) drop_products();
    Steps::change(changes[kHalf], facts + Config::kQueries * 4);
    // NOTE: in front of the products, as ptxas packs between the stores then: 2 % less time on an
    // H200 than behind them.
    const unsigned to = shared_address(shared.changes(set)) + kHalf * Config::kKeyColumn + rows +
                        swizzled(self.lane % 16, self.lane / 16);
#pragma unroll
    for (int k = 0; k < 4; ++k) store_matrices(to ^ k * 32, changes[kHalf][k]);
    begin_products();
    add_rows<T, kKeyAccumulators, Config::kDim, Config::kQueryColumn>(
        changes[kHalf], shared_address(shared.queries(ring.stage)) + kHalf * kHalfBytes, adds);
  }

  /// Ends a tile. Of every second one, this warpgroup makes the part of the queries' gradient.
  __device__ __forceinline__ void sum_queries() {
    constexpr int kColumns = Config::kQueries == 128 ? 64 : 128;
    show_to_copies();
    wait_for_products<1>();
    keep_weights(weights[kLast]);
    give_back(shared.grad_empty[ring.stage], self.lane);
    if (set != self.group) {
      let_pass(1 + set, 256);
      wait_for_products<0>();
      keep_weights(changes[kLast]);
      shared.q_empty[ring.stage].arrive();
    } else {
      // The last products of this set of buffers, one of two, ended before the peer warpgroup's
      // last pass.
      meet(1 + set, 256);
      const unsigned from = shared_address(shared.changes(set));
      begin_products();
      multiply_changes<T, kQueryAccumulators, kColumns, Config::kKeys>(from, keys);
      if constexpr (kLast > 0) {
        multiply_changes<T, kQueryAccumulators + 1, kColumns, Config::kKeys>(
            from + Config::kKeyColumn, keys);
      }
      commit_products();
      wait_for_products<1>();
      keep_weights(changes[kLast]);
      shared.q_empty[ring.stage].arrive();
      wait_for_products<0>();
      shared.accumulators_empty[self.group].wait(accumulators_parity);
      accumulators_parity ^= 1;
      const unsigned to = shared_address(
          shared.accumulators + self.group * (Config::kAccumulators / 4) + threadIdx.x % 128);
      share_accumulators<kQueryAccumulators, kColumns / 2>(to);
      if constexpr (kLast > 0)
        share_accumulators<kQueryAccumulators + 1, kColumns / 2>(to + Config::kAccumulators * 2);
      show_to_copies();
      give_back(shared.accumulators_full[self.group], self.lane);
    }
    set ^= 1;
    ring.advance();
  }

  __device__ __forceinline__ void run() {
    if (part.tiles > 0) shared.kv_full->wait(0);
    const int steps = part.tiles * part.group;
    for (int step = 0, tile = part.low + part.tiles, head = 0; step < steps; ++step) {
      if (head == 0) --tile;
      const int first = tile * Config::kQueries;
      take<0>(head, first, step == 0);
      if constexpr (kLast > 0) take<kLast>(head, first, step == 0);
      sum_queries();
      if (++head == part.group) head = 0;
    }
    wait_for_products<0>();
    keep_weights(changes[kLast]);
    meet(3, 256);  // all products with keys are done: gradients go through their place
    const Sequence& sequence = part.sequence;
    const int first = group_key + self.warp * kWarpKeys;
    const int stored = (is_packed<Config>(call.k_starts) ? sequence.keys : call.keys) - first;
    const int left = steps > 0 ? sequence.keys - first : 0;
    const auto place = [&](const HeadStrides& at) {
      return sequence.k_place(at) + part.kv_head * at.head + first * at.token;
    };
    store_gradient<T, kValueAccumulators, Config::kValueDim, Config::kKeyColumn>(
        1.0f, shared.values + rows, static_cast<T*>(more.dv) + place(more.dv_at), more.dv_at.token,
        call.value_dim, left, stored, self.lane);
    store_gradient<T, kKeyAccumulators, Config::kDim, Config::kKeyColumn>(
        call.scale, shared.keys + rows, static_cast<T*>(more.dk) + place(more.dk_at),
        more.dk_at.token, call.dim, left, stored, self.lane);
  }
};

/// kThreads threads. Dynamic shared memory: keys, values, stages of queries and of gradients, two
/// sets of changes and of accumulators, facts of each stage, five barriers for each stage and six,
/// a number.
template <typename T, typename Config, Extras kExtras>
__global__ void __launch_bounds__(kThreads, 1)
    hopper_backward(const __grid_constant__ TensorMap map_q,
                    const __grid_constant__ TensorMap map_grad,
                    const __grid_constant__ TensorMap map_k,
                    const __grid_constant__ TensorMap map_v,
                    const __grid_constant__ AttentionCall call,
                    const __grid_constant__ Gradients more,
                    const __grid_constant__ BackwardPlan plan) {
  extern __shared__ __align__(1024) unsigned char storage[];
  declare_accumulators<kQueryAccumulators + Config::kHalves, Config::kQueries == 128 ? 32 : 64>();
  const Shared<Config> shared(storage);
  const Maps maps{map_q, map_grad, map_k, map_v};
  if (threadIdx.x == 0) {
    prefetch(map_q);
    prefetch(map_grad);
    prefetch(map_k);
    prefetch(map_v);
    *shared.number = atomicAdd(plan.counters, 1u);
    shared.init();
  }
  __syncthreads();
  int tile, flat, batch;
  if (!place_block<Config, kThreads>(call, plan, *shared.number, tile, flat, batch)) return;
  const Part<Config> part(call, plan, tile, flat % call.kv_heads, batch);
  if (is_packed<Config>(call.k_starts) && !part.has_keys()) return;
  if (threadIdx.x < 128) {
    if constexpr (Config::kSmall) asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if constexpr (!Config::kSmall) asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
    const int warp = same(threadIdx.x / 32);
    if (warp == 0) {
      load_part<Config>(shared, maps, call, plan, part);
    } else if (warp == 1) {
      load_facts<Config>(shared, call, more, part);
    } else if (threadIdx.x % 32 == 0) {
      add_accumulators<Config>(shared, call, plan, part, warp - 2);
    }
  } else {
    if constexpr (Config::kSmall) asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    if constexpr (!Config::kSmall) asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
    Deriving<T, Config, kExtras>(shared, call, more, part).run();
  }
}
