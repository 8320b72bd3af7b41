// Attention of a few queries over long contexts: the context is split among blocks, a block's part
// among its warps; the last block of the splits puts their parts together.
#include <kernwright/attention_tile.cuh>
#include <kernwright/reduce.cuh>

using namespace kernwright;

constexpr int kRows = 16;         // queries times heads of one head of keys
constexpr int kTokens = 16;       // of a warp's tile
constexpr int kCombineWarps = 4;  // of a block of combine_splits()

/// A warp's tile of 8-bit elements as one of T.
template <typename T, typename E, int kDim>
__device__ __forceinline__ void widen_tile(unsigned char* to, const unsigned char* from) {
  using Unit = MatrixUnit<T>;
  constexpr int kChunks = kDim / 16;
#pragma unroll
  for (int i = 0; i < kTokens * kChunks / 32; ++i) {
    const int index = threadIdx.x % 32 + 32 * i;
    const int row = index / kChunks, chunk = index % kChunks;
    const auto pack = *reinterpret_cast<const Pack<E, 16>*>(from + 16 * index);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      unsigned pairs[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const E low = pack.value[8 * half + 2 * j], high = pack.value[8 * half + 2 * j + 1];
        pairs[j] =
            Unit::pair(static_cast<float>(to_compute(low)), static_cast<float>(to_compute(high)));
      }
      *reinterpret_cast<uint4*>(to + 16 * swizzled<kDim / 8>(row, 2 * chunk + half)) =
          make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
    }
  }
}

/// A warp's shared memory: `kStages` tiles of keys and values as they are in the cache, and one of
/// each widened where those have 8 bits. C++ has the same in decode_attention.cpp.
template <typename T, typename E, int kDim, int kValueDim, int kStages>
struct WarpMemory {
  static constexpr int kStage = kTokens * (kDim + kValueDim) * sizeof(E);
  static constexpr int kWide = sizeof(E) == 1 ? kTokens * (kDim + kValueDim) * sizeof(T) : 0;
  static constexpr int kBytes = kStage * kStages + kWide;
};

/// The host's part of a launch's plan.
struct DecodePlan {
  unsigned* arrived;  ///< a word for each group of splits
  int group;          ///< heads with common keys
  int flat;           ///< blocks are numbered along x alone, else splits, heads and batches
  int each, more;     ///< steps of a split, splits that have one more; 0 steps: the lengths tell
};

/// A block's part of a batch and head. In the common case it takes no division: divisions would
/// delay the first copies.
struct Work {
  int batch, kv_head, first_row, split;
  unsigned place;  ///< of the group of splits

  __device__ __forceinline__ Work(const AttentionCall& call, const DecodePlan& plan) {
    split = static_cast<int>(blockIdx.x);
    kv_head = static_cast<int>(blockIdx.y);
    batch = static_cast<int>(blockIdx.z);
    first_row = 0;
    place = blockIdx.z * gridDim.y + blockIdx.y;
    if (!plan.flat) return;
    unsigned index = blockIdx.x;
    split = static_cast<int>(index % call.splits);
    index /= call.splits;
    place = index;
    first_row = static_cast<int>(index % call.row_tiles) * kRows;
    index /= call.row_tiles;
    kv_head = static_cast<int>(index % call.kv_heads);
    batch = static_cast<int>(index / call.kv_heads);
  }
};

/// The query of a row; the row's head is the rest.
__device__ __forceinline__ int query_of(const AttentionCall& call, int row, int group) {
  return call.queries == 1 ? row >= group : row / group;
}

/// Begin and end of a split's keys: equal shares of the visible keys, in whole steps.
template <int kStep>
struct Share {
  int first, end;

  __device__ __forceinline__ Share(const AttentionCall& call, const DecodePlan& plan,
                                   const Sequence& sequence, int split, int first_query,
                                   int last_query) {
    const int low = sequence.first_key(call, first_query) / kStep * kStep;
    const int high = sequence.end_key(call, last_query);
    int each = plan.each, more = plan.more;
    if (each == 0) {
      const int steps = high > low ? (high - low + kStep - 1) / kStep : 0;
      each = steps / call.splits;
      more = steps - each * call.splits;
    }
    first = low + (split * each + min(split, more)) * kStep;
    end = min(high, first + (each + (split < more ? 1 : 0)) * kStep);
  }
};

/// The rows' queries as the block's tile; zeros behind the last row and element.
template <typename T, int kDim, int kThreads>
__device__ __forceinline__ void load_queries(unsigned char* tile, const AttentionCall& call,
                                             const Sequence& sequence, const Work& work,
                                             int group) {
  const T* const q = static_cast<const T*>(call.q) + sequence.q_first;
  for (int i = threadIdx.x; i < kRows * kDim / 8; i += kThreads) {
    const int row = work.first_row + i / (kDim / 8), column = i % (kDim / 8) * 8;
    const int query = query_of(call, row, group);
    const int head = work.kv_head * group + row - query * group;
    const T* const from = q + query * call.q_at.token + head * call.q_at.head;
    Pack<T, 8> pack;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const bool valid = query < sequence.queries && column + j < call.dim;
      pack.value[j] = valid ? from[column + j] : T{};
    }
    const int place = swizzled<kDim / 8>(i / (kDim / 8), i % (kDim / 8));
    *reinterpret_cast<Pack<T, 8>*>(tile + 16 * place) = pack;
  }
}

/// The warps' finds, put together: written as the result, or as the part of a split.
template <typename T, int kValueDim, int kWarps>
__device__ __forceinline__ void merge_warps(unsigned char* memory, RunningRows<kValueDim>& rows,
                                            bool bad, const AttentionCall& call,
                                            const Sequence& sequence, const Work& work, int group) {
  constexpr int kPitch = kValueDim + 4, kThreads = 32 * kWarps;
  float* const sums = reinterpret_cast<float*>(memory);
  float* const peaks = sums + kWarps * kRows * kPitch;
  float* const totals = peaks + kWarps * kRows;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  __syncthreads();  // the rings are read no more
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = warp * kRows + lane / 4 + 8 * r;
    const float total = rows.whole_total(r);
    if (lane % 4 == 0) {
      peaks[row] = rows.peak[r];
      totals[row] = bad ? not_a_number() : total;
    }
#pragma unroll
    for (int i = 0; i < kValueDim / 8; ++i) {
      *reinterpret_cast<float2*>(sums + row * kPitch + 8 * i + lane % 4 * 2) =
          make_float2(rows.out[i][2 * r], rows.out[i][2 * r + 1]);
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kRows * kValueDim / 2; i += kThreads) {
    const int row = i / (kValueDim / 2), column = i % (kValueDim / 2) * 2;
    const int query = query_of(call, work.first_row + row, group);
    const int head = work.kv_head * group + work.first_row + row - query * group;
    if (query >= sequence.queries) break;
    float peak = minus_infinity(), total = 0;
    float2 sum = make_float2(0, 0);
#pragma unroll
    for (int w = 0; w < kWarps; ++w) peak = fmaxf(peak, peaks[w * kRows + row]);
    const float base = peak == minus_infinity() ? 0.0f : peak;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      const float factor = power2(peaks[w * kRows + row] - base);
      const float2 part =
          *reinterpret_cast<const float2*>(sums + (w * kRows + row) * kPitch + column);
      total += totals[w * kRows + row] * factor;
      sum.x += part.x * factor;
      sum.y += part.y * factor;
    }
    if (call.splits > 1) {
      const long long at = split_place(call, work.batch, head, query, work.split);
      *reinterpret_cast<float2*>(call.partial + at * kValueDim + column) = sum;
      if (column == 0) *reinterpret_cast<float2*>(call.peaks + 2 * at) = make_float2(peak, total);
      continue;
    }
    const float scale = finish_total(call, sequence, head, query, peak, total, column == 0);
    T* const out = static_cast<T*>(call.out) + sequence.out_first + query * call.out_at.token +
                   head * call.out_at.head + column;
    if (column < call.value_dim) out[0] = from_compute<T>(sum.x * scale);
    if (column + 1 < call.value_dim) out[1] = from_compute<T>(sum.y * scale);
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
  float peak = minus_infinity(), total = 0, sums[kValueDim / 32] = {};
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
    for (float& sum : sums) sum *= earlier;
    const int count = min(32, call.splits - begin);
#pragma unroll 8
    for (int i = 0; i < count; ++i) {
      const float factor = __shfl_sync(~0u, weight, i);
#pragma unroll
      for (int j = 0; j < kValueDim / 32; ++j) {
        sums[j] += from[(begin + i) * kValueDim + 32 * j] * factor;
      }
    }
  }
  store_row<T, kValueDim>(call, sequence, head, query, sums, peak, total);
}

/// A block: up to 16 rows (queries times heads with common keys), one share of the context.
template <typename T, typename E, int kDim, int kValueDim, int kWarps, int kStages, bool kAsync,
          bool kExtras>
__global__ void __launch_bounds__(32 * kWarps)
    decode_attention(const __grid_constant__ AttentionCall call,
                     const __grid_constant__ DecodePlan plan) {
  using Memory = WarpMemory<T, E, kDim, kValueDim, kStages>;
  using Keys = TokenCopy<E, kTokens, kDim, kAsync>;
  using Values = TokenCopy<E, kTokens, kValueDim, kAsync>;
  constexpr int kStep = kWarps * kTokens;
  constexpr int kQueryBytes = kRows * kDim * sizeof(T);
  constexpr bool kKeepQueries = kDim <= 128;
  extern __shared__ __align__(128) unsigned char memory[];
  const Work work(call, plan);
  const Sequence sequence(call, work.batch);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int group = plan.group;
  const int first_query = query_of(call, work.first_row, group);
  const int last_query =
      min(query_of(call, work.first_row + kRows - 1, group), sequence.queries - 1);
  if (first_query >= sequence.queries) return;
  const Share<kStep> share(call, plan, sequence, work.split, first_query, last_query);
  unsigned char* const ring = memory + kQueryBytes + warp * Memory::kBytes;
  const E* const k =
      static_cast<const E*>(call.k) + sequence.k_first + work.kv_head * call.k_at.head;
  const E* const v =
      static_cast<const E*>(call.v) + sequence.v_first + work.kv_head * call.v_at.head;
  const int* const table =
      call.table == nullptr ? nullptr : call.table + work.batch * call.table_row;
  bool bad = false;
  const auto start = [&](int tile) {
    const int token = share.first + tile * kStep + warp * kTokens + lane % kTokens;
    long long k_offset = kNoRow, v_offset = kNoRow;
    if (token < share.end) {
      k_offset = token_offset(call, table, call.k_at, token);
      v_offset = token_offset(call, table, call.v_at, token);
      bad |= k_offset == kNoRow;
    }
    unsigned char* const to = ring + tile % kStages * Memory::kStage;
    Keys::start(to, k, k_offset, call.dim);
    Values::start(to + Keys::kBytes, v, v_offset, call.value_dim);
  };
  const int tiles = share.end > share.first ? (share.end - share.first + kStep - 1) / kStep : 0;
#pragma unroll 1  // fewer instructions to fetch before the first copy
  for (int stage = 0; stage < kStages; ++stage) {
    if (stage < tiles) start(stage);
    commit_copies();
  }
  load_queries<T, kDim, 32 * kWarps>(memory, call, sequence, work, group);
  ScoreRow rows[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = work.first_row + lane / 4 + 8 * r;
    const int query = query_of(call, row, group);
    rows[r].set(call, sequence, work.batch, query, work.kv_head * group + row - query * group);
  }
  float scale = kExtras ? call.scale : call.scale * kLog2E;
  if (call.k_scales != nullptr) scale *= call.k_scales[work.kv_head];
  __syncthreads();
  const unsigned queries = shared_address(memory);
  unsigned left[kKeepQueries ? kDim / 16 : 1][4];
  if constexpr (kKeepQueries) {
#pragma unroll
    for (int step = 0; step < kDim / 16; ++step) load_left<kDim>(left[step], queries, 0, step);
  }
  RunningRows<kValueDim> running[1];
  running[0].clear();
  for (int tile = 0; tile < tiles; ++tile) {
    wait_copies<kStages - 1>();
    __syncwarp();
    unsigned char* const stage = ring + tile % kStages * Memory::kStage;
    unsigned keys = shared_address(stage), values = keys + Keys::kBytes;
    if constexpr (sizeof(E) == 1) {
      unsigned char* const wide = ring + kStages * Memory::kStage;
      widen_tile<T, E, kDim>(wide, stage);
      widen_tile<T, E, kValueDim>(wide + kTokens * kDim * sizeof(T), stage + Keys::kBytes);
      __syncwarp();
      keys = shared_address(wide);
      values = keys + kTokens * kDim * sizeof(T);
    }
    float s[1][2][4] = {};
#pragma unroll
    for (int step = 0; step < kDim / 16; ++step) {
      unsigned right[4];
      load_right<kDim>(right, keys, 0, step);
      if constexpr (!kKeepQueries) load_left<kDim>(left[0], queries, 0, step);
      MatrixUnit<T>::multiply(s[0][0], left[kKeepQueries ? step : 0], right[0], right[1]);
      MatrixUnit<T>::multiply(s[0][1], left[kKeepQueries ? step : 0], right[2], right[3]);
    }
    finish_scores<T, kExtras>(s[0], call, rows, share.first + tile * kStep + warp * kTokens, scale,
                              true);
    running[0].take(s[0]);
    add_values<T, 1, kValueDim>(running, s, values);
    __syncwarp();
    if (tile + kStages < tiles) start(tile + kStages);
    commit_copies();
  }
  wait_copies<0>();
  bad = __any_sync(~0u, bad);
  merge_warps<T, kValueDim, kWarps>(memory, running[0], bad, call, sequence, work, group);
  if (call.splits == 1) return;
  if (!is_last_block(plan.arrived + work.place, static_cast<unsigned>(call.splits))) return;
  for (int r = warp; r < kRows; r += kWarps) {
    const int query = query_of(call, work.first_row + r, group);
    if (query >= sequence.queries) break;
    combine_row<T, kValueDim>(call, sequence, work.batch,
                              work.kv_head * group + work.first_row + r - query * group, query);
  }
}

/// One warp a row: the parts of all splits in their order.
template <typename T, int kValueDim>
__global__ void __launch_bounds__(32 * kCombineWarps)
    combine_splits(const __grid_constant__ AttentionCall call) {
  const int lane = threadIdx.x % 32;
  const long long row = static_cast<long long>(blockIdx.x) * kCombineWarps + threadIdx.x / 32;
  if (row >= static_cast<long long>(call.batches) * call.heads * call.queries) return;
  const int query = static_cast<int>(row % call.queries);
  const int head = static_cast<int>(row / call.queries % call.heads);
  const int batch = static_cast<int>(row / call.queries / call.heads);
  const Sequence sequence(call, batch);
  if (query >= sequence.queries) return;
  combine_row<T, kValueDim>(call, sequence, batch, head, query);
}
