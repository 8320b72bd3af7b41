// Gradients of attention on Hopper for heads above 128, where the accumulators fill the registers
// of two warpgroups. A block has 64 keys of a head and walks over the queries, the last tile first:
// a producer warp loads tiles of queries and of the result's gradient by TMA. The first warpgroup
// computes weights (wgmma, keys as rows) and the gradient of values, with weights as left operands
// in registers. The second warpgroup computes products of gradients and values, from these and the
// first warpgroup's weights the changes of scores, and then the gradient of keys. Shared memory
// holds weights, then changes. Each warpgroup computes a part of the columns of the previous tile's
// gradient of the queries, 64 at a time, beside the products of the current tile.
//
// Additions of this gradient limit the kernel at the L2 cache. So two blocks of a cluster have
// neighbouring keys: each block adds up half of the columns for both, from accumulators that the
// peer block sends to shared memory, and adds the sum to accumulators in global memory once all
// clusters with earlier keys have added theirs. The order of additions is fixed, as in
// hopper_backward.cu. The blocks load each tile of queries by multicast.
#include <kernwright/gradient_part.cuh>
#include <kernwright/gradient_rows.cuh>
#include <kernwright/wide_gradient_accumulators.cuh>

using namespace kernwright;

constexpr int kThreads = 384;
constexpr int kColumnBytes = 64 * 128;  // of 64 keys or queries
constexpr int kSets = 2;                // places for weights, then changes
// Named barriers: weights are in a set, changes are in it, the set is free, the second warpgroup's
// changes are written, all products are done.
constexpr int kWeightsFull = 1, kChangesFull = 3, kSetEmpty = 5, kGroupChanges = 7, kDone = 8;

/// The first warpgroup computes kGroup0Columns columns of 64 of the queries' gradient, the second
/// warpgroup all further columns. The first block of a cluster adds up the columns of first
/// warpgroups, the second block the columns of second warpgroups. The peer block sends half of 64
/// columns at a time to one of `slots` buffers.
template <int dim, int value_dim, bool ragged, int stages, int slots>
struct WideTile : BackwardTile<dim, value_dim, 64, 64, 2, ragged, stages> {
  static constexpr int kChangeSets = kSets;
  static constexpr int kSlotAccumulators = 2048, kSumSlots = slots;
  static constexpr bool kLarge = dim > 192 || value_dim > 192;
  static constexpr int kLoadRegisters = kLarge ? 24 : 40, kGradientRegisters = kLarge ? 240 : 232;
  static constexpr int kGroup0Columns = WideTile::kColumns == 3 ? 1 : (WideTile::kColumns + 1) / 2;
};

/// A tile of queries: the number of tiles before it, the index in the batch, and the number of
/// earlier clusters that add to it.
struct QueryTile {
  int step, place;
  unsigned turn;
};

/// The way of a warpgroup over the tiles of queries.
template <typename Config>
struct Walk {
  const AttentionCall& call;
  const Part<Config>& part;
  int warp, lane, key;  // the thread's first row, the other is 8 behind
  int steps;

  __device__ __forceinline__ Walk(const AttentionCall& call_, const Part<Config>& part_)
      : call(call_), part(part_) {
    warp = same(threadIdx.x / 32 % 4);
    lane = threadIdx.x % 32;
    key = part.first_key + warp * kWarpKeys + lane / 4;
    steps = part.tiles * part.group;
  }
  /// Whether a tile of queries has some without one of the keys.
  __device__ __forceinline__ bool is_partial(int first) const {
    const Sequence& sequence = part.sequence;
    return first + 64 > sequence.queries || part.first_key + 64 > sequence.end_key(call, first) ||
           part.first_key < sequence.first_key(call, first + 63);
  }
  /// begin(), then work(step, first query, tile before, has a tile before) for each tile, then
  /// finish(last tile).
  template <typename Begin, typename Work, typename Finish>
  __device__ __forceinline__ void run(const BackwardPlan& plan, Begin begin, Work work,
                                      Finish finish) const {
    if (steps == 0) return;
    begin();
    int tile = part.low + part.tiles - 1, head = 0;
    const auto place = [&] { return (part.kv_head * part.group + head) * plan.query_tiles + tile; };
    QueryTile last{0, place(), part.turn(call, tile)};
    work(0, tile * 64, last, Count<0>{});
#pragma unroll 1
    for (int step = 1; step < steps; ++step) {
      if (++head == part.group) {
        head = 0;
        --tile;
      }
      work(step, tile * 64, last, Count<1>{});
      last = {step, place(), part.turn(call, tile)};
    }
    finish(last);
  }
  /// The gradient goes to global memory through the `place` of keys or values.
  template <typename T, int kDim>
  __device__ __forceinline__ void store(float factor, unsigned char* place, void* gradient,
                                        const HeadStrides& at, int dim) const {
    const Sequence& sequence = part.sequence;
    const int first = part.first_key + warp * kWarpKeys;
    const int stored = (is_packed<Config>(call.k_starts) ? sequence.keys : call.keys) - first;
    const int left = steps > 0 ? sequence.keys - first : 0;
    T* const to = static_cast<T*>(gradient) + sequence.k_place(at) + part.kv_head * at.head +
                  first * at.token;
    constexpr int kFirst = kDim < kFirstColumns ? kDim : kFirstColumns;
    place += warp * (kWarpKeys * 128);
    store_gradient<T, kFirstAccumulators, kFirst, kColumnBytes>(factor, place, to, at.token, dim,
                                                                left, stored, lane);
    if constexpr (kDim > kFirst) {
      store_gradient<T, kFurtherAccumulators, kDim - kFirst, kColumnBytes>(
          factor, place + kFirst / 64 * kColumnBytes, to + kFirst, at.token, dim - kFirst, left,
          stored, lane);
    }
  }
};

/// A warpgroup's columns of the queries' gradient.
template <typename T, typename Config, int kGroup>
struct QueryColumns {
  static constexpr int kFirst = kGroup * Config::kGroup0Columns;
  static constexpr int kCount =
      kGroup == 0 ? Config::kGroup0Columns : Config::kColumns - Config::kGroup0Columns;
  static_assert(kCount <= 2);

  const Shared<Config>& shared;
  float* accumulators;  // of the batch
  bool adds_up;         // this block adds up the columns
  Ring<Config::kSumSlots> ring;

  __device__ __forceinline__ QueryColumns(const Shared<Config>& shared_, const BackwardPlan& plan,
                                          const Part<Config>& part)
      : shared(shared_),
        accumulators(plan.accumulators + part.first_tile * Config::kAccumulators +
                     kFirst * (2 * Config::kSlotAccumulators) + threadIdx.x % 128 * 4),
        adds_up(cluster_rank() == kGroup) {}
  /// Queued: the products of column `kColumn` of the warpgroup, where there is one.
  template <int kColumn>
  __device__ __forceinline__ void multiply(int set) {
    if constexpr (kColumn < kCount) {
      begin_products();
      multiply_changes<T, kQueryProducts, 64, 64>(
          shared_address(shared.changes(set)),
          shared_address(shared.keys) + (kFirst + kColumn) * kColumnBytes);
      commit_products();
    }
  }
  /// Sends accumulators to the peer block, or adds the sum of both blocks to global memory.
  template <int kPart>
  __device__ __forceinline__ void share_part(const QueryTile& tile) {
    const int slot = ring.stage, lane = threadIdx.x % 32;
    const unsigned place = shared_address(
        shared.accumulators + slot * (Config::kSlotAccumulators / 4) + threadIdx.x % 128);
    constexpr int kBegin = kPart % 2 * 16;
    if (adds_up) {
      shared.peer_accumulators[slot].wait(ring.parity);
      if (kPart == 0) shared.may_add[tile.step % 2].wait(tile.step / 2 % 2);
      add_to_global<kQueryProducts, kBegin>(
          accumulators + tile.place * static_cast<long long>(Config::kAccumulators) +
              kPart * Config::kSlotAccumulators,
          place, tile.turn > 0);
      __syncwarp();
      if (lane == 0) {
        if (threadIdx.x % 128 == 0) {
          shared.peer_accumulators[slot].arrive_expecting(Config::kSlotAccumulators * 4);
        }
        shared.accumulators_empty[slot].arrive_at(kGroup ^ 1);
        if (kPart == 2 * kCount - 1) shared.accumulators_full[tile.step % 2].arrive();
      }
    } else {
      shared.accumulators_empty[slot].wait(ring.parity ^ 1);
      send_accumulators_to<kQueryProducts, kBegin>(
          address_in_block(place, kGroup),
          address_in_block(shared_address(shared.peer_accumulators + slot), kGroup));
    }
    ring.advance();
  }
  /// Handles column `kColumn` of the warpgroup, once the products of this column have ended.
  template <int kColumn>
  __device__ __forceinline__ void share(const QueryTile& tile) {
    if constexpr (kColumn < kCount) {
      share_part<2 * kColumn>(tile);
      share_part<2 * kColumn + 1>(tile);
    }
  }
  /// The columns of the last tile.
  __device__ __forceinline__ void run_last(const QueryTile& tile) {
    multiply<0>(tile.step % kSets);
    wait_for_products<0>();
    share<0>(tile);
    multiply<1>(tile.step % kSets);
    wait_for_products<0>();
    share<1>(tile);
  }
};

/// The first warpgroup: weights, and the gradient of values.
template <typename T, typename Config, bool kHasCap>
__device__ __forceinline__ void derive_values(const Shared<Config>& shared,
                                              const AttentionCall& call, const Gradients& more,
                                              const BackwardPlan& plan, const Part<Config>& part) {
  const Walk<Config> walk(call, part);
  const float scale = (kHasCap ? call.soft_cap : call.scale) * kLog2E;
  const unsigned keys = shared_address(shared.keys);
  const unsigned weights_at =
      shared_address(shared.change_base) + walk.warp * (kWarpKeys * 128) + walk.lane * 16;
  QueryColumns<T, Config, 0> columns(shared, plan, part);
  Ring<Config::kStages> ring;
  unsigned weights[4][4] = {};
  const auto multiply = [&](const Ring<Config::kStages>& at) {
    shared.q_full[at.stage].wait(at.parity);
    begin_products();
    multiply_rows<T, kScores, Config::kDim, kColumnBytes, kColumnBytes>(
        keys, shared_address(shared.queries(at.stage)));
  };
  const auto begin = [&] {
    shared.kv_full->wait(0);
    multiply(ring);
  };
  walk.run(
      plan, begin,
      [&](int step, int first, const QueryTile& before, auto has_last) {
        const int set = step % kSets, last = set ^ 1;
        wait_for_products<0>();
        keep_weights(weights);
        if constexpr (has_last.value) {
          meet(kChangesFull + last, 256);
          columns.template multiply<0>(last);
        }
        float s[32];
        read_accumulators<kScores>(s);
        if constexpr (kHasCap) {
#pragma unroll
          for (float& score : s) score = quick_tanh(score * (call.scale / call.soft_cap));
        }
        if (walk.is_partial(first)) hide_queries(s, call, part.sequence, walk.key, first);
        shared.facts_full[ring.stage].wait(ring.parity);
        unsigned sent[4][4];
        WideSteps<T>::template weigh<kHasCap>(
            s, weights, sent, shared_address(shared.facts(ring.stage) + walk.lane % 4 * 2), scale);
        shared.q_empty[ring.stage].arrive();
        if (step >= kSets) meet(kSetEmpty + set, 256);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(
                           weights_at + set * kColumnBytes + i * 512),
                       "r"(sent[i][0]), "r"(sent[i][1]), "r"(sent[i][2]), "r"(sent[i][3])
                       : "memory");
        }
        let_pass(kWeightsFull + set, 256);
        shared.grad_full[ring.stage].wait(ring.parity);
        begin_products();
        add_wide_rows<T, Config::kValueDim, kColumnBytes>(
            weights, shared_address(shared.grads(ring.stage)), has_last.value);
        if constexpr (has_last.value) {
          wait_for_products<1>();
          columns.template share<0>(before);
          columns.template multiply<1>(last);
        }
        Ring<Config::kStages> next = ring;
        next.advance();
        if (step + 1 < walk.steps) {
          multiply(next);
          wait_for_products<1>();
        } else {
          wait_for_products<0>();
        }
        keep_weights(weights);
        give_back(shared.grad_empty[ring.stage], walk.lane);
        if constexpr (has_last.value) columns.template share<1>(before);
        ring = next;
      },
      [&](const QueryTile& last) {
        wait_for_products<0>();
        meet(kChangesFull + last.step % kSets, 256);
        columns.run_last(last);
      });
  meet(kDone, 256);
  walk.template store<T, Config::kValueDim>(kUnlift, shared.values, more.dv, more.dv_at,
                                            call.value_dim);
}

/// The second warpgroup: changes of scores, and the gradient of keys.
template <typename T, typename Config>
__device__ __forceinline__ void derive_keys(const Shared<Config>& shared, const AttentionCall& call,
                                            const Gradients& more, const BackwardPlan& plan,
                                            const Part<Config>& part) {
  const Walk<Config> walk(call, part);
  const unsigned values = shared_address(shared.values);
  const unsigned rows = shared_address(shared.change_base) + walk.warp * (kWarpKeys * 128);
  const unsigned inside = swizzled(walk.lane % 16, walk.lane / 16);
  QueryColumns<T, Config, 1> columns(shared, plan, part);
  Ring<Config::kStages> ring;
  unsigned changes[4][4] = {};
  const auto multiply = [&](const Ring<Config::kStages>& at) {
    shared.grad_full[at.stage].wait(at.parity);
    begin_products();
    multiply_rows<T, kScores, Config::kValueDim, kColumnBytes, kColumnBytes>(
        values, shared_address(shared.grads(at.stage)));
  };
  const auto begin = [&] {
    shared.kv_full->wait(0);
    multiply(ring);
  };
  walk.run(
      plan, begin,
      [&](int step, int first, const QueryTile& before, auto has_last) {
        const int set = step % kSets, last = set ^ 1;
        wait_for_products<0>();
        keep_weights(changes);
        give_back(shared.grad_empty[ring.stage], walk.lane);
        if constexpr (has_last.value) {
          meet(kGroupChanges, 128);
          columns.template multiply<0>(last);
        }
        shared.facts_full[ring.stage].wait(ring.parity);
        const unsigned place = rows + set * kColumnBytes;
        const unsigned deltas = shared_address(shared.facts(ring.stage) + 64 + walk.lane % 4 * 2);
        const bool is_partial = walk.is_partial(first);
        meet(kWeightsFull + set, 256);
        float products[32];
        read_accumulators<kScores>(products);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          unsigned weights[4];
          float eight[8];
          asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                       : "=r"(weights[0]), "=r"(weights[1]), "=r"(weights[2]), "=r"(weights[3])
                       : "r"(place + walk.lane * 16 + i * 512)
                       : "memory");
#pragma unroll
          for (int j = 0; j < 8; ++j) eight[j] = products[i * 8 + j];
          if (is_partial) drop_products(eight, weights);
          WideSteps<T>::change(changes[i], eight, weights, deltas + i * 64);
        }
        __syncwarp();  // all weights of the warp's rows are read
#pragma unroll
        for (int k = 0; k < 4; ++k) store_matrices((place + inside) ^ k * 32, changes[k]);
        show_to_copies();
        let_pass(kChangesFull + set, 256);
        shared.q_full[ring.stage].wait(ring.parity);
        begin_products();
        add_wide_rows<T, Config::kDim, kColumnBytes>(
            changes, shared_address(shared.queries(ring.stage)), has_last.value);
        if constexpr (has_last.value) {
          wait_for_products<1>();
          columns.template share<0>(before);
          columns.template multiply<1>(last);
        }
        Ring<Config::kStages> next = ring;
        next.advance();
        if (step + 1 < walk.steps) {
          multiply(next);
          wait_for_products<1>();
        } else {
          wait_for_products<0>();
        }
        keep_weights(changes);
        shared.q_empty[ring.stage].arrive();
        if constexpr (has_last.value) {
          if (step + 1 < walk.steps) let_pass(kSetEmpty + last, 256);
          columns.template share<1>(before);
        }
        ring = next;
      },
      [&](const QueryTile& last) {
        wait_for_products<0>();
        meet(kGroupChanges, 128);
        columns.run_last(last);
      });
  meet(kDone, 256);
  walk.template store<T, Config::kDim>(call.scale, shared.keys, more.dk, more.dk_at, call.dim);
}

/// A thread waits for the cluster's turn, lets the block add its columns of every second tile, and
/// then lets the next cluster add.
template <typename Config>
__device__ __forceinline__ void order_additions(const Shared<Config>& shared,
                                                const AttentionCall& call, const BackwardPlan& plan,
                                                const Part<Config>& part, int first_step) {
  constexpr int kAdders = Config::kColumns > 1 ? 2 : 1;
  int step = 0;
  part.for_tiles([&](int head, int tile) {
    const int number = step++;
    if (number % 2 != first_step) return;
    const long long index =
        part.first_tile + static_cast<long long>(head) * plan.query_tiles + tile;
    unsigned* const count = plan.counters + 1 + index;
    const unsigned turn = part.turn(call, tile) * kAdders;
    while (read_count(count) < turn) {}
    shared.may_add[first_step].arrive();
    shared.accumulators_full[first_step].wait(number / 2 % 2);
    add_release(count);
  });
}

/// The work of a block.
template <typename T, typename Config, Extras kExtras>
__device__ __forceinline__ void derive_gradients(const Shared<Config>& shared, const Maps& maps,
                                                 const AttentionCall& call, const Gradients& more,
                                                 const BackwardPlan& plan, unsigned rank) {
  const unsigned number = read_in_block(shared_address(shared.number), 0);
  int tile, flat, batch;
  if (!place_block<Config, kThreads>(call, plan, number, tile, flat, batch)) return;
  const Part<Config> part(call, plan, tile, flat % call.kv_heads, batch, rank);
  if (is_packed<Config>(call.k_starts) && !part.has_keys()) return;
  const int group = same(threadIdx.x / 128);
  if (group == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Config::kLoadRegisters));
    const int warp = same(threadIdx.x / 32);
    if (warp == 0) {
      load_part<Config>(shared, maps, call, plan, part);
    } else if (warp == 1) {
      load_facts<Config>(shared, call, more, part);
    } else if (threadIdx.x % 32 == 0 && (rank == 0 || Config::kColumns > 1)) {
      order_additions<Config>(shared, call, plan, part, warp - 2);
    }
  } else if (group == 1) {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Config::kGradientRegisters));
    derive_values<T, Config, kExtras == kCapped>(shared, call, more, plan, part);
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Config::kGradientRegisters));
    derive_keys<T, Config>(shared, call, more, plan, part);
  }
}

/// kThreads threads. Dynamic shared memory: keys, values, stages of queries and of gradients, sets
/// of weights and changes, slots of accumulators, facts of each stage, seven barriers for each
/// stage, two for each slot and six, a number.
template <typename T, typename Config, Extras kExtras>
__global__ void __launch_bounds__(kThreads, 1)
    wide_backward(const __grid_constant__ TensorMap map_q,
                  const __grid_constant__ TensorMap map_grad,
                  const __grid_constant__ TensorMap map_k, const __grid_constant__ TensorMap map_v,
                  const __grid_constant__ AttentionCall call,
                  const __grid_constant__ Gradients more,
                  const __grid_constant__ BackwardPlan plan) {
  extern __shared__ __align__(1024) unsigned char storage[];
  declare_accumulators<4, 64>();
  const Shared<Config> shared(storage);
  const unsigned rank = cluster_rank();
  if (threadIdx.x == 0) {
    prefetch(map_q);
    prefetch(map_grad);
    prefetch(map_k);
    prefetch(map_v);
    if (rank == 0) *shared.number = atomicAdd(plan.counters, 1u);
    shared.init();
    for (int slot = 0; slot < Config::kSumSlots; ++slot) {
      shared.peer_accumulators[slot].arrive_expecting(Config::kSlotAccumulators * 4);
    }
  }
  cluster_sync();
  derive_gradients<T, Config, kExtras>(shared, Maps{map_q, map_grad, map_k, map_v}, call, more,
                                       plan, rank);
  cluster_sync();  // nothing more comes from the other block
}
