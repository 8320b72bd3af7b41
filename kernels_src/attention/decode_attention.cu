// Attention of a few queries over long contexts: split-K over the context among blocks, and a
// block's part among its warps. The blocks of a cluster reduce the parts in shared memory; without
// clusters the last block of the splits reduces them.
#include <kernwright/decode_block.cuh>
#include <kernwright/overlap.cuh>
#include <kernwright/split_parts.cuh>

using namespace kernwright;

constexpr int kCombineWarps = 4;  // of a block of combine_splits()

/// A warp's tile holds an equal number of bytes for each element size. decode_attention.cpp has an
/// equal table.
template <typename E>
constexpr int kTokens = sizeof(E) == 1 ? 32 : 16;

/// A warp's finds to shared memory: rows of accumulators, one after the other.
template <typename E, int kValueDim>
__device__ __forceinline__ void store_accumulators(float* to, const RunningRows<kValueDim>& rows,
                                                   int r) {
  const int column = threadIdx.x % 4;
  if constexpr (sizeof(E) == 1) {
#pragma unroll
    for (int i = 0; i < kValueDim / 16; ++i) {
      const float(&even)[4] = rows.out[2 * i];
      const float(&odd)[4] = rows.out[2 * i + 1];
      *reinterpret_cast<float4*>(to + 16 * i + 4 * column) =
          make_float4(even[2 * r], odd[2 * r], even[2 * r + 1], odd[2 * r + 1]);
    }
  } else {
#pragma unroll
    for (int i = 0; i < kValueDim / 8; ++i) {
      *reinterpret_cast<float2*>(to + 8 * i + 2 * column) =
          make_float2(rows.out[i][2 * r], rows.out[i][2 * r + 1]);
    }
  }
}

/// The warps' finds, put together: written as the result, or as the part of a split.
template <typename T, typename E, int kValueDim, int kWarps, bool kCluster>
__device__ __forceinline__ void merge_warps(unsigned char* memory, RunningRows<kValueDim>& rows,
                                            bool bad, const AttentionCall& call,
                                            const DecodePlan& plan, const Sequence& sequence,
                                            const Work& work) {
  constexpr int kPitch = kValueDim + 4, kThreads = 32 * kWarps, kPairs = kValueDim / 2;
  float* const accumulators = reinterpret_cast<float*>(memory);
  float* const peaks = accumulators + kWarps * kRows * kPitch;
  float* const totals = peaks + kWarps * kRows;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int valid = valid_rows(sequence, work, plan.group);
  __syncthreads();  // the rings are read no more
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = lane / 4 + 8 * r, place = warp * kRows + row;
    const float total = rows.whole_total(r);
    if (row >= valid) continue;
    if (lane % 4 == 0) {
      peaks[place] = rows.peak[r];
      totals[place] = bad ? not_a_number() : total;
    }
    store_accumulators<E>(accumulators + place * kPitch, rows, r);
  }
  if constexpr (kCluster) wait_for_cluster();  // the other blocks' memory is there
  __syncthreads();
  ClusterParts received{memory + plan.received, call.splits, valid * kPairs};
#pragma unroll 1  // a thread has few of them
  for (int i = threadIdx.x; i < valid * kPairs; i += kThreads) {
    const int row = i / kPairs, column = i % kPairs * 2;
    SplitPart part;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) part.peak = fmaxf(part.peak, peaks[w * kRows + row]);
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      const int place = w * kRows + row;
      part.add(*reinterpret_cast<const float2*>(accumulators + place * kPitch + column),
               peaks[place], totals[place]);
    }
    if constexpr (kCluster) {
      received.send(i, work.split, part);
    } else if (call.splits == 1) {
      store_pair<T>(call, sequence, row_place(call, work, row, plan.group), column, part);
    } else {
      store_part<kValueDim>(call, sequence, row_place(call, work, row, plan.group), work.split,
                            column, part);
    }
  }
  if constexpr (kCluster) {
    release_to_cluster();
    wait_for_cluster();
    const int first = received.first(work.split), count = received.count(work.split);
#pragma unroll 1
    for (int i = threadIdx.x; i < count; i += kThreads) {
      const int item = first + i;
      store_pair<T>(call, sequence, row_place(call, work, item / kPairs, plan.group),
                    item % kPairs * 2, received.combined(i));
    }
  }
}

/// Scores of a tile of keys: products with the queries.
template <typename T, typename E, int kDim, int kTiles>
__device__ __forceinline__ void multiply_keys(float (&s)[kTiles][4],
                                              const QueryOperands<kDim>& queries, unsigned keys) {
  if constexpr (sizeof(E) == 1) {
    multiply_key_bytes<E, kDim>(s, queries, keys);
  } else {
    constexpr int kUnrolled = kDim <= 256 ? kDim / 16 : 4;  // more would spill
#pragma unroll kUnrolled
    for (int step = 0; step < kDim / 16; ++step) {
      unsigned left[4], right[4];
      load_right<kDim>(right, keys, 0, step);
      queries.get(left, step);
      MatrixUnit<T>::multiply(s[0], left, right[0], right[1]);
      MatrixUnit<T>::multiply(s[1], left, right[2], right[3]);
    }
  }
}

/// The pipelines of a block's warps lie behind the queries' tile: `kStages` stages of keys and of
/// values for each warp, in the cache's format. The first stages of all warps come first, because a
/// block of short shares has no memory for further stages. kSpaced: the distance between
/// neighbouring tokens is constant.
template <typename E, int kDim, int kValueDim, int kWarps, int kStages, bool kAsync, bool kSpaced>
struct TokenRing {
  static constexpr int kCopies = kTokens<E> * kDim * static_cast<int>(sizeof(E)) / 512;
  using Keys = TokenCopy<E, kTokens<E>, kDim, kAsync, kDim <= 256 ? kCopies : 4>;
  using Values = TokenCopy<E, kTokens<E>, kValueDim, kAsync>;
  static constexpr int kStage = Keys::kBytes + Values::kBytes, kStep = kWarps * kTokens<E>;
  unsigned char* const ring;
  const E *k, *v;
  const int* table;
  const Share<kStep>& share;
  bool bad = false;  ///< a page is none

  __device__ __forceinline__ TokenRing(unsigned char* memory, const AttentionCall& call,
                                       const Sequence& sequence, const Work& work,
                                       const Share<kStep>& share_)
      : ring(memory + threadIdx.x / 32 * kStage),
        k(static_cast<const E*>(call.k) + sequence.k_first + work.kv_head * call.k_at.head),
        v(static_cast<const E*>(call.v) + sequence.v_first + work.kv_head * call.v_at.head),
        table(call.table == nullptr ? nullptr : call.table + work.batch * call.table_row),
        share(share_) {}

  __device__ __forceinline__ int tiles() const {
    return share.end > share.first ? (share.end - share.first + kStep - 1) / kStep : 0;
  }
  /// The first token of the warp's tile.
  __device__ __forceinline__ int first_token(int tile) const {
    return share.first + tile * kStep + static_cast<int>(threadIdx.x) / 32 * kTokens<E>;
  }
  __device__ __forceinline__ unsigned char* stage(int tile) const {
    return ring + tile % kStages * (kWarps * kStage);
  }
  /// Asks for the first tile for the second level of cache. More would delay the queries.
  __device__ __forceinline__ void fetch(const AttentionCall& call) const {
    const int token = first_token(0), there = share.end - token;
    SpacedCopy<E, kTokens<E>, kDim>::fetch(k + token * call.k_at.token, call.k_at.token, call.dim,
                                           there);
    SpacedCopy<E, kTokens<E>, kValueDim>::fetch(v + token * call.v_at.token, call.v_at.token,
                                                call.value_dim, there);
  }
  __device__ __forceinline__ void start(const AttentionCall& call, int tile) {
    if constexpr (kSpaced) {
      const int token = first_token(tile), there = share.end - token;
      SpacedCopy<E, kTokens<E>, kDim>::start(stage(tile), k + token * call.k_at.token,
                                             call.k_at.token, call.dim, there);
      SpacedCopy<E, kTokens<E>, kValueDim>::start(stage(tile) + Keys::kBytes,
                                                  v + token * call.v_at.token, call.v_at.token,
                                                  call.value_dim, there);
      return;
    }
    const int token = first_token(tile) + static_cast<int>(threadIdx.x) % kTokens<E>;
    long long k_offset = kNoRow, v_offset = kNoRow;
    if (token >= share.visible && token < share.end) {
      k_offset = token_offset(call, table, call.k_at, token);
      v_offset = token_offset(call, table, call.v_at, token);
      bad |= k_offset == kNoRow;
    }
    Keys::start(stage(tile), k, k_offset, call.dim);
    Values::start(stage(tile) + Keys::kBytes, v, v_offset, call.value_dim);
  }
};

/// Zeros for the tokens behind packed sequences: a sequence's block has every batches-th of them.
template <typename T>
__device__ __forceinline__ void store_behind(const AttentionCall& call, const Work& work,
                                             int group) {
  if (work.split > 0 || work.first_row > 0) return;
  const Sequence behind(call, call.batches);
  const int pairs = (call.value_dim + 1) / 2;
#pragma unroll 1
  for (int query = work.batch; query < behind.queries; query += call.batches) {
#pragma unroll 1
    for (int i = threadIdx.x; i < group * pairs; i += blockDim.x) {
      const RowPlace at{work.kv_head * group + i / pairs, query};
      store_pair<T>(call, behind, at, i % pairs * 2, SplitPart{});
    }
  }
}

/// A block: up to 16 rows (queries times heads with common keys), one share of the context. With
/// kCluster the splits are the blocks of a cluster. kWhole: all rows see all keys of caches without
/// pages; a block then begins with few instructions, and prefetches before the kernel ahead ends.
/// kTokenScales: 8-bit elements E have a scale for each token and head.
template <typename T, typename E, int kDim, int kValueDim, int kWarps, int kStages, bool kAsync,
          bool kExtras, bool kWhole, bool kCluster, bool kTokenScales = false>
__global__ void __launch_bounds__(32 * kWarps)
    decode_attention(const __grid_constant__ AttentionCall call,
                     const __grid_constant__ DecodePlan plan) {
  using Fits = SpacedCopy<E, kTokens<E>, kDim>;
  using ValuesFit = SpacedCopy<E, kTokens<E>, kValueDim>;
  constexpr bool kSpaced = kWhole && kAsync && Fits::kFits && ValuesFit::kFits;
  using Ring = TokenRing<E, kDim, kValueDim, kWarps, kStages, kAsync, kSpaced>;
  using Step = Share<Ring::kStep>;
  extern __shared__ __align__(128) unsigned char memory[];
  // Lengths and page tables may be results of the kernel ahead.
  constexpr bool kFetchesAhead = kWhole && !kCluster;
  if constexpr (!kFetchesAhead) pdl_wait_then_launch();
  const Work work(call, plan);
  const Sequence sequence(call, work.batch, !kWhole);
  const int lane = threadIdx.x % 32;
  int first_query = 0, last_query = 0;
  if constexpr (!kWhole) {
    if (call.q_starts != nullptr) store_behind<T>(call, work, plan.group);
    if (call.few_queries > 0 && sequence.queries > call.few_queries) return;
    first_query = row_query(call, work.first_row, plan.group);
    last_query = min(row_query(call, work.first_row + kRows - 1, plan.group), sequence.queries - 1);
    if (first_query >= sequence.queries) return;
  }
  if constexpr (kCluster) arrive_in_cluster();
  const auto find_share = [&] {
    if constexpr (kWhole) return Step(call, plan, work.split);
    return Step(call, plan, sequence, work.split, first_query, last_query);
  };
  const Step share = find_share();
  Ring ring(memory + kRows * kDim * sizeof(T), call, sequence, work, share);
  const int tiles = ring.tiles();
  if constexpr (kFetchesAhead) {
    if constexpr (kSpaced) ring.fetch(call);
    pdl_launch_then_wait();
  }
  using Queries = QueryPacks<T, kDim, 32 * kWarps>;
  __shared__ unsigned most[kRows];
  Queries packs;
  float scale = kExtras ? call.scale : call.scale * kLog2E;
  if (call.k_scales != nullptr) scale *= call.k_scales[work.kv_head];
  ScoreRow rows[2];
  const auto set_rows = [&] {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const RowPlace at = row_place(call, work, lane / 4 + 8 * r, plan.group);
      rows[r].set(call, sequence, work.batch, at.query, at.head);
    }
  };
  if constexpr (!kWhole) {
    packs.get(call, sequence, work, plan.group);
    set_rows();
  }
  QueryOperands<kDim> queries;
  RunningRows<kValueDim> running[1];
  running[0].clear();
#pragma unroll 1  // one copy of the instructions serves the prologue and the mainloop
  for (int tile = -kStages; tile < tiles; ++tile) {
    // Behind all of the first copies the queries would come last.
    if (kWhole && tile == (kStages > 1 ? 1 - kStages : 0)) {
      packs.get(call, sequence, work, plan.group);
    }
    if (tile == 0) {
      if constexpr (kWhole) set_rows();
      packs.template store<E>(memory, most);
      __syncthreads();
      queries.load(memory);
    }
    if (tile >= 0) {
      wait_copies<kStages - 1>();
      __syncwarp();
      const unsigned keys = shared_address(ring.stage(tile)), values = keys + Ring::Keys::kBytes;
      [[maybe_unused]] TokenScales<32> key_scales, value_scales;
      if constexpr (kTokenScales) {
        static_assert(kTokens<E> == 32);
        const long long head_scales =
            sequence.k_batch * call.scales_at.batch + work.kv_head * call.scales_at.head;
        const int first = ring.first_token(tile);
        key_scales.load(call, call.k_token_scales + head_scales, ring.table, first, share.visible,
                        share.end);
        value_scales.load(call, call.v_token_scales + head_scales, ring.table, first, share.visible,
                          share.end);
      }
      float s[1][kTokens<E> / 8][4] = {};
      multiply_keys<T, E, kDim>(s[0], queries, keys);
      if constexpr (Queries::template kScaled<E>) {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          const float down = exact_power2(-query_exponent(most[lane / 4 + 8 * r]));
#pragma unroll
          for (auto& score : s[0]) score[2 * r] *= down, score[2 * r + 1] *= down;
        }
      }
      if constexpr (kTokenScales) key_scales.multiply(s[0], 1.0f);
      finish_scores<T, kExtras>(s[0], call, rows, ring.first_token(tile), scale, true);
      running[0].take(s[0]);
      if constexpr (kTokenScales) value_scales.multiply(s[0], kWeightScale);
      if constexpr (sizeof(E) == 1) {
        add_value_bytes<E, kValueDim>(running[0], s[0], values);
      } else {
        add_values<T, 1, kValueDim>(running, s, values);
      }
      __syncwarp();
    }
    if (tile + kStages < tiles) ring.start(call, tile + kStages);
    commit_copies();
  }
  wait_copies<0>();
  const bool bad = __any_sync(~0u, ring.bad);
  merge_warps<T, E, kValueDim, kWarps, kCluster>(memory, running[0], bad, call, plan, sequence,
                                                 work);
  if constexpr (!kCluster) {
    constexpr int kPairs = kValueDim / 2;
    if (call.splits == 1) return;
    if (!is_last_block(plan.arrived + work.place, static_cast<unsigned>(call.splits))) return;
    const int valid = valid_rows(sequence, work, plan.group);
#pragma unroll 1
    for (int i = threadIdx.x; i < valid * kPairs; i += 32 * kWarps) {
      const RowPlace at = row_place(call, work, i / kPairs, plan.group);
      const int column = i % kPairs * 2;
      store_pair<T>(call, sequence, at, column, load_parts<kValueDim>(call, sequence, at, column));
    }
  }
}

/// One warp's row of the result: the parts of all splits in their order.
template <typename T, int kValueDim>
__device__ __forceinline__ void combine_row(const AttentionCall& call, const Sequence& sequence,
                                            int batch, int head, int query) {
  const int lane = threadIdx.x % 32;
  const long long first = split_place(call, batch, head, query, 0);
  const float2* const parts = reinterpret_cast<const float2*>(call.peaks) + first;
  const float* const from = call.partial + first * kValueDim + lane;
  float peak = minus_infinity(), total = 0, accumulators[kValueDim / 32] = {};
  for (int begin = 0; begin < call.splits; begin += 32) {
    float2 part = make_float2(minus_infinity(), 0);
    if (begin + lane < call.splits) part = parts[begin + lane];
    float most = peak;
    most = fmaxf(most, warp_reduce(part.x, [](float a, float b) { return fmaxf(a, b); }));
    const float base = most == minus_infinity() ? 0.0f : most;
    const float earlier = power2(peak - base), weight = power2(part.x - base);
    peak = most;
    total = total * earlier + warp_reduce(part.y * weight, [](float a, float b) { return a + b; });
#pragma unroll
    for (float& sum : accumulators) sum *= earlier;
    const int count = min(32, call.splits - begin);
#pragma unroll 8
    for (int i = 0; i < count; ++i) {
      const float factor = __shfl_sync(~0u, weight, i);
#pragma unroll
      for (int j = 0; j < kValueDim / 32; ++j) {
        accumulators[j] += from[(begin + i) * kValueDim + 32 * j] * factor;
      }
    }
  }
  store_row<T, kValueDim>(call, sequence, head, query, accumulators, peak, total);
}

/// One warp a row: the parts of all splits in their order.
template <typename T, int kValueDim>
__global__ void __launch_bounds__(32 * kCombineWarps)
    combine_splits(const __grid_constant__ AttentionCall call) {
  pdl_wait_then_launch();
  const long long row = static_cast<long long>(blockIdx.x) * kCombineWarps + threadIdx.x / 32;
  if (row >= static_cast<long long>(call.batches) * call.heads * call.queries) return;
  const int query = static_cast<int>(row % call.queries);
  const int head = static_cast<int>(row / call.queries % call.heads);
  const int batch = static_cast<int>(row / call.queries / call.heads);
  const Sequence sequence(call, batch);
  if (query >= sequence.queries) return;
  combine_row<T, kValueDim>(call, sequence, batch, head, query);
}
