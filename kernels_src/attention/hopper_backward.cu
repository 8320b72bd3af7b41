// Gradients of attention the Hopper way. A block has 128 keys of a head and walks over its queries,
// the last first: a warp copies tiles of queries and of the result's gradient by tensor maps, two
// warpgroups of 64 keys make weights and changes of scores with keys as rows (wgmma). So both are
// left operands in registers for the gradients of values and of keys; the changes also go to shared
// memory, where the gradient of the queries needs them. The warpgroups make it in turns, each of
// every second tile: the other one goes on to the next weights meanwhile, so the tensor cores have
// work. It is a sum over blocks: a thread adds a tile's part to sums in global memory
// (cp.reduce.async.bulk) once all blocks with earlier keys have added theirs. The order of
// additions is fixed and scores are computed once; a launch of its own for the queries would need
// no order, but two products of five once more. Who is waited for has begun, as blocks take their
// numbers from a counter.
#include <kernwright/gradient_part.cuh>
#include <kernwright/gradient_sums.cuh>

using namespace kernwright;

/// Queued: rows of a warpgroup's keys times 64 queries, both along the elements of heads.
template <typename T, int kWave, int kDim, int kQueries>
__device__ __forceinline__ void multiply_rows(unsigned keys, unsigned queries) {
  const unsigned long long a = matrix_descriptor(keys, kKeyColumn);
  const unsigned long long b = matrix_descriptor(queries, kQueries * 128);
#pragma unroll
  for (int k = 0; k < kDim / 16; ++k) {
    const unsigned inside = k % 4 * 32;
    SumProducts<T>::template add<64, kWave, false, false>(
        further(a, k / 4 * kKeyColumn + inside), further(b, k / 4 * (kQueries * 128) + inside),
        k > 0);
  }
  commit_products();
}

/// Queued: weights or changes times 64 queries are added; without `adds` they are the sums.
template <typename T, int kWave, int kDim, int kQueries>
__device__ __forceinline__ void add_rows(const unsigned (&left)[4][4], unsigned queries,
                                         bool adds) {
  const unsigned long long b = matrix_descriptor(queries, kQueries * 128);
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    RowSumProducts<T>::template add<kDim, kWave, true>(left[k], further(b, k * 2048),
                                                       adds || k > 0);
  }
  commit_products();
}

/// Queued: 64 queries' changes by the block's keys, turned, times keys.
template <typename T, int kWave, int kColumns>
__device__ __forceinline__ void multiply_changes(unsigned changes, unsigned keys) {
  const unsigned long long a = matrix_descriptor(changes, kKeyColumn);
  const unsigned long long b = matrix_descriptor(keys, kKeyColumn);
#pragma unroll
  for (int k = 0; k < kKeys / 16; ++k) {
    SumProducts<T>::template add<kColumns, kWave, true, true>(further(a, k * 2048),
                                                              further(b, k * 2048), k > 0);
  }
}

/// The state of a warpgroup's thread.
struct Self {
  int group, warp, lane;
  int key;             // of its first row, the other is 8 behind
  float scale, inner;  // of scores to units of log2; before the cap
};

/// A warp's 16 rows of a gradient through shared memory; rows behind the last key are 0, and are
/// left out behind `stored`.
template <typename T, int kWave, int kDim>
__device__ __forceinline__ void store_gradient(float factor, unsigned char* staging, T* to,
                                               long long apart, int dim, int rows, int stored,
                                               int lane) {
  constexpr int kUnits = (kDim + 63) / 64 * 8;  // of 16 bytes
  const float both[2] = {factor, factor};
  const unsigned kept[2] = {lane / 4 < rows ? ~0u : 0, lane / 4 + 8 < rows ? ~0u : 0};
  SumRows<T>::template store<kWave, kDim / 2, kKeyColumn>(
      shared_address(staging) + swizzled(lane % 16, lane / 16), both, kept);
  __syncwarp();
#pragma unroll 1
  for (int i = lane; i < kWarpKeys * kUnits; i += 32) {
    const int row = i / kUnits, unit = i % kUnits;
    if (row >= stored || unit * 8 >= dim) continue;
    *reinterpret_cast<uint4*>(to + row * apart + unit * 8) =
        *reinterpret_cast<const uint4*>(staging + unit / 8 * kKeyColumn + swizzled(row, unit % 8));
  }
}

/// Terms of scores beside scale, window and lengths: nothing, a cap, or ALiBi and a mask.
enum Extras : int { kPlain = 0, kCapped = 1, kBiased = 2 };

/// A warpgroup's share of a part: 64 keys.
template <typename T, typename Of, Extras kExtras>
struct Deriving {
  using Steps = GradientSteps<T>;
  static constexpr bool kHasCap = kExtras == kCapped;
  static constexpr int kLast = Of::kHalves - 1;
  static constexpr int kHalfBytes = 64 * 128;  // of 64 queries in a column

  const Shared<Of>& shared;
  const AttentionCall& call;
  const Gradients& more;
  const Part<Of>& part;
  Self self;
  int group_key, rows;  // the first key; bytes before the warp's rows in a column of keys
  unsigned keys, values;
  Ring<kStages> ring;
  int set = 0;
  unsigned sums_parity = 1;
  unsigned weights[Of::kHalves][4][4], changes[Of::kHalves][4][4] = {};

  __device__ __forceinline__ Deriving(const Shared<Of>& shared_, const AttentionCall& call_,
                                      const Gradients& more_, const Part<Of>& part_)
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
    const unsigned own = self.group * (kGroupKeys * 128);
    if (kHalf == 0) shared.q_full[ring.stage].wait(ring.parity);
    begin_products();
    multiply_rows<T, kScores, Of::kDim, Of::kQueries>(keys + own, queries);
    if (kHalf == 0) {
      shared.grad_full[ring.stage].wait(ring.parity);
      shared.facts_full[ring.stage].wait(ring.parity);
    }
    begin_products();
    multiply_rows<T, kValueProducts, Of::kValueDim, Of::kQueries>(values + own, grads);
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
      read_sums<kScores>(s);
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
      write_sums<kScores>(s);
    }
    const bool partial = first + 64 > part.sequence.queries ||
                         group_key + kGroupKeys > part.sequence.end_key(call, first) ||
                         group_key < part.sequence.first_key(call, first + 63);
    if (partial) hide_queries(call, part.sequence, self.key, first);
    Steps::template weigh<kHasCap>(weights[kHalf], facts, self.scale);
    const bool adds = !is_first || kHalf > 0;
    begin_products();
    add_rows<T, kValueSums, Of::kValueDim, Of::kQueries>(
        weights[kHalf], shared_address(shared.grads(ring.stage)) + kHalf * kHalfBytes, adds);
    wait_for_products<1>();
    if (kExtras == kBiased || partial) drop_products();
    Steps::change(changes[kHalf], facts + Of::kQueries * 4);
    // NOTE: in front of the products, as ptxas packs between the stores then: 2 % less time on an
    // H200 than behind them.
    const unsigned to = shared_address(shared.changes(set)) + kHalf * kKeyColumn + rows +
                        swizzled(self.lane % 16, self.lane / 16);
#pragma unroll
    for (int k = 0; k < 4; ++k) store_matrices(to ^ k * 32, changes[kHalf][k]);
    begin_products();
    add_rows<T, kKeySums, Of::kDim, Of::kQueries>(
        changes[kHalf], shared_address(shared.queries(ring.stage)) + kHalf * kHalfBytes, adds);
  }

  /// Ends a tile. Of every second one, this warpgroup makes the part of the queries' gradient.
  __device__ __forceinline__ void sum_queries() {
    constexpr int kColumns = Of::kQueries == 128 ? 64 : 128;
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
      // With two sets, this one's last products ended before the other warpgroup's last pass.
      meet(1 + set, 256);
      const unsigned from = shared_address(shared.changes(set));
      begin_products();
      multiply_changes<T, kQuerySums, kColumns>(from, keys);
      if constexpr (kLast > 0) {
        multiply_changes<T, kQuerySums + 1, kColumns>(from + kKeyColumn, keys);
      }
      commit_products();
      wait_for_products<1>();
      keep_weights(changes[kLast]);
      shared.q_empty[ring.stage].arrive();
      wait_for_products<0>();
      shared.sums_empty[self.group].wait(sums_parity);
      sums_parity ^= 1;
      const unsigned to =
          shared_address(shared.sums + self.group * (kSums / 4) + threadIdx.x % 128);
      share_sums<kQuerySums, kColumns / 2>(to);
      if constexpr (kLast > 0) share_sums<kQuerySums + 1, kColumns / 2>(to + kSums * 2);
      show_to_copies();
      give_back(shared.sums_full[self.group], self.lane);
    }
    set ^= 1;
    ring.advance();
  }

  __device__ __forceinline__ void run() {
    if (part.tiles > 0) shared.kv_full->wait(0);
    const int steps = part.tiles * part.group;
    for (int step = 0, tile = part.low + part.tiles, head = 0; step < steps; ++step) {
      if (head == 0) --tile;
      const int first = tile * Of::kQueries;
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
    const int stored = (is_packed<Of>(call.k_starts) ? sequence.keys : call.keys) - first;
    const int left = steps > 0 ? sequence.keys - first : 0;
    const auto place = [&](const HeadStrides& at) {
      return sequence.k_place(at) + part.kv_head * at.head + first * at.token;
    };
    store_gradient<T, kValueSums, Of::kValueDim>(
        1.0f, shared.values + rows, static_cast<T*>(more.dv) + place(more.dv_at), more.dv_at.token,
        call.value_dim, left, stored, self.lane);
    store_gradient<T, kKeySums, Of::kDim>(call.scale, shared.keys + rows,
                                          static_cast<T*>(more.dk) + place(more.dk_at),
                                          more.dk_at.token, call.dim, left, stored, self.lane);
  }
};

/// kThreads threads. Dynamic shared memory: keys, values, stages of queries and of gradients, two
/// sets of changes and of sums, facts of each stage, five barriers for each stage and six, a
/// number.
template <typename T, typename Of, Extras kExtras>
__global__ void __launch_bounds__(kThreads, 1)
    hopper_backward(const __grid_constant__ TensorMap map_q,
                    const __grid_constant__ TensorMap map_grad,
                    const __grid_constant__ TensorMap map_k,
                    const __grid_constant__ TensorMap map_v,
                    const __grid_constant__ AttentionCall call,
                    const __grid_constant__ Gradients more,
                    const __grid_constant__ BackwardPlan plan) {
  extern __shared__ __align__(1024) unsigned char storage[];
  declare_sums<kQuerySums + Of::kHalves, Of::kQueries == 128 ? 32 : 64>();
  const Shared<Of> shared(storage);
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
  // Blocks with the first keys come first: their queries see the most.
  const int number = same(static_cast<int>(*shared.number));
  const int all = plan.section * plan.key_tiles;
  const int section = number / all, inside = number % all;
  const int first = section * plan.section, heads = min(plan.section, plan.heads - first);
  const int flat = first + inside % heads;
  int tile = inside / heads, batch = flat / call.kv_heads;
  if (is_packed<Of>(call.k_starts)) {
    batch = same(sequence_of<kKeys, kThreads>(call.k_starts, call.batches, call.keys, tile));
    if (batch < 0) return;
    tile -= same(min(max(call.k_starts[batch], 0), call.keys) / kKeys + batch);
  }
  const Part<Of> part(call, plan, tile, flat % call.kv_heads, batch);
  if (is_packed<Of>(call.k_starts) && part.first_key >= part.sequence.keys) return;
  if (threadIdx.x < 128) {
    if constexpr (Of::kSmall) asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if constexpr (!Of::kSmall) asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
    const int warp = same(threadIdx.x / 32);
    if (warp == 0) {
      load_part<Of>(shared, maps, call, plan, part);
    } else if (warp == 1) {
      load_facts<Of>(shared, call, more, part);
    } else if (threadIdx.x % 32 == 0) {
      add_sums<Of>(shared, call, plan, part, warp - 2);
    }
  } else {
    if constexpr (Of::kSmall) asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    if constexpr (!Of::kSmall) asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
    Deriving<T, Of, kExtras>(shared, call, more, part).run();
  }
}

/// Before it: delta of each row, the sum of gradient times result, by `kLanes` lanes a row; clears
/// `count` counters.
template <typename T, int kLanes>
__global__ void __launch_bounds__(256)
    sum_rows(const __grid_constant__ AttentionCall call, const __grid_constant__ Gradients more,
             unsigned* __restrict__ counters, long long count) {
  using Eight = Pack<T, 8>;
  const long long thread = blockIdx.x * 256ll + threadIdx.x, row = thread / kLanes;
  for (long long i = thread; i < count; i += gridDim.x * 256ll) counters[i] = 0;
  const int lane = threadIdx.x % kLanes;
  const int batches = call.q_starts != nullptr ? 1 : call.batches;
  const bool has_row = row < static_cast<long long>(batches) * call.heads * call.queries;
  const long long query = row % call.queries, head = row / call.queries % call.heads;
  const long long batch = row / call.queries / call.heads;
  const auto place = [&](const HeadStrides& at) {
    return batch * at.batch + head * at.head + query * at.token;
  };
  float sum = 0;
  if (has_row && lane * 8 < call.value_dim) {
    const T* const out = static_cast<const T*>(call.out) + place(call.out_at);
    const T* const grad = static_cast<const T*>(more.grad) + place(more.grad_at);
    const Eight a = *reinterpret_cast<const Eight*>(out + lane * 8);
    const Eight b = *reinterpret_cast<const Eight*>(grad + lane * 8);
#pragma unroll
    for (int i = 0; i < 8; ++i) sum += to_compute(a.value[i]) * to_compute(b.value[i]);
  }
#pragma unroll
  for (int mask = kLanes / 2; mask > 0; mask /= 2) sum += __shfl_xor_sync(~0u, sum, mask);
  if (has_row && lane == 0) more.delta[place(call.lse_at)] = sum;
}

/// Behind it: sums become the gradient of the queries; tiles to which no block added are 0. A block
/// of 256 threads a tile, those of a head follow each other, heads those of a batch.
template <typename T, typename Of>
__global__ void __launch_bounds__(256) finish_queries(const __grid_constant__ AttentionCall call,
                                                      const __grid_constant__ Gradients more,
                                                      const __grid_constant__ BackwardPlan plan) {
  using Eight = Pack<T, 8>;
  int tile = blockIdx.x % plan.query_tiles, batch = blockIdx.x / plan.query_tiles / call.heads;
  const int head = blockIdx.x / plan.query_tiles % call.heads;
  if (is_packed<Of>(call.q_starts)) {
    batch = sequence_of<Of::kQueries, 256>(call.q_starts, call.batches, call.queries, tile);
    if (batch < 0) return;
    tile -= min(max(call.q_starts[batch], 0), call.queries) / Of::kQueries + batch;
  }
  const Sequence sequence(call, batch, Of::kRagged);
  const int stored = is_packed<Of>(call.q_starts) ? sequence.queries : call.queries;
  if (tile * Of::kQueries >= stored) return;
  const long long index = Part<Of>::tile_of(call, plan, sequence, batch, head) + tile;
  const bool has_sums = tile * Of::kQueries < sequence.queries && plan.counters[1 + index] != 0;
  const float4* const sums = reinterpret_cast<const float4*>(plan.sums + index * kSums);
  T* const to = static_cast<T*>(more.dq) + sequence.q_place(more.dq_at) + head * more.dq_at.head;
  const int group = threadIdx.x / 128, warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int i = half * 4 + lane % 4;  // of 8 columns
    Eight rows[2] = {};
    if (has_sums) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float4 four = sums[(group * 8 + i) * 128 + warp * 32 + lane / 4 * 4 + j];
        rows[0].value[2 * j] = from_compute<T>(four.x * call.scale);
        rows[0].value[2 * j + 1] = from_compute<T>(four.y * call.scale);
        rows[1].value[2 * j] = from_compute<T>(four.z * call.scale);
        rows[1].value[2 * j + 1] = from_compute<T>(four.w * call.scale);
      }
    }
    const int column = i * 8 + (Of::kQueries == 128 ? 0 : group * 64);
    const int first = tile * Of::kQueries + (Of::kQueries == 128 ? group * 64 : 0) + warp * 16;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int query = first + lane / 4 + 8 * r;
      if (query >= stored || column >= call.dim) continue;
      const bool is_known = query < sequence.queries;
      *reinterpret_cast<Eight*>(to + query * more.dq_at.token + column) =
          is_known ? rows[r] : Eight{};
    }
  }
}
