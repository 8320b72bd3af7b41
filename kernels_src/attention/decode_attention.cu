// Attention of a few queries over long contexts: the context is split among blocks, a block's part
// among its warps; one more kernel puts the parts of blocks together.
#include <kernwright/attention_tile.cuh>

using namespace kernwright;

constexpr int kWarps = 4;
constexpr int kThreads = 32 * kWarps;
constexpr int kRows = 16;    // queries times heads of one head of keys
constexpr int kTokens = 16;  // of a warp's tile
constexpr int kStep = kWarps * kTokens;

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

struct Work {
  int batch, kv_head, first_row, split;

  __device__ explicit Work(const AttentionCall& call) {
    unsigned index = blockIdx.x;
    split = static_cast<int>(index % call.splits);
    index /= call.splits;
    first_row = static_cast<int>(index % call.row_tiles) * kRows;
    index /= call.row_tiles;
    kv_head = static_cast<int>(index % call.kv_heads);
    batch = static_cast<int>(index / call.kv_heads);
  }
};

/// Where a split's keys begin and end: equal shares of the keys seen, in whole steps.
struct Share {
  int first, end;

  __device__ Share(const AttentionCall& call, const Sequence& sequence, int split, int first_query,
                   int last_query) {
    const int low = sequence.first_key(call, first_query) / kStep * kStep;
    const int high = sequence.end_key(call, last_query);
    const int steps = high > low ? (high - low + kStep - 1) / kStep : 0;
    const int each = (steps + call.splits - 1) / call.splits;
    first = low + min(split * each, steps) * kStep;
    end = min(high, low + min((split + 1) * each, steps) * kStep);
  }
};

/// The rows' queries as the block's tile; zeros behind the last row and element.
template <typename T, int kDim>
__device__ __forceinline__ void load_queries(unsigned char* tile, const AttentionCall& call,
                                             const Sequence& sequence, const Work& work,
                                             int group) {
  const T* const q = static_cast<const T*>(call.q) + sequence.q_first;
  for (int i = threadIdx.x; i < kRows * kDim / 8; i += kThreads) {
    const int row = work.first_row + i / (kDim / 8), column = i % (kDim / 8) * 8;
    const int query = row / group, head = work.kv_head * group + row % group;
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
template <typename T, int kValueDim>
__device__ __forceinline__ void merge_warps(unsigned char* memory, RunningRows<kValueDim>& rows,
                                            bool bad, const AttentionCall& call,
                                            const Sequence& sequence, const Work& work, int group) {
  constexpr int kPitch = kValueDim + 4;
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
    const int query = (work.first_row + row) / group;
    const int head = work.kv_head * group + (work.first_row + row) % group;
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

/// A block: up to 16 rows (queries times heads with common keys), one share of the context.
template <typename T, typename E, int kDim, int kValueDim, int kStages, bool kAsync, bool kExtras>
__global__ void __launch_bounds__(kThreads)
    decode_attention(const __grid_constant__ AttentionCall call) {
  using Memory = WarpMemory<T, E, kDim, kValueDim, kStages>;
  using Keys = TokenCopy<E, kTokens, kDim, kAsync>;
  using Values = TokenCopy<E, kTokens, kValueDim, kAsync>;
  constexpr int kQueryBytes = kRows * kDim * sizeof(T);
  constexpr bool kKeepQueries = kDim <= 128;
  extern __shared__ __align__(128) unsigned char memory[];
  const Work work(call);
  const Sequence sequence(call, work.batch);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int group = call.heads / call.kv_heads;
  const int first_query = work.first_row / group;
  const int last_query = min((work.first_row + kRows - 1) / group, sequence.queries - 1);
  if (first_query >= sequence.queries) return;
  const Share share(call, sequence, work.split, first_query, last_query);
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
#pragma unroll
  for (int stage = 0; stage < kStages; ++stage) {
    if (stage < tiles) start(stage);
    commit_copies();
  }
  load_queries<T, kDim>(memory, call, sequence, work, group);
  ScoreRow rows[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = work.first_row + lane / 4 + 8 * r;
    rows[r].set(call, sequence, work.batch, row / group, work.kv_head * group + row % group);
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
  merge_warps<T, kValueDim>(memory, running[0], bad, call, sequence, work, group);
}

/// One warp a row: the parts of all splits in their order.
template <typename T, int kValueDim>
__global__ void __launch_bounds__(kThreads)
    combine_splits(const __grid_constant__ AttentionCall call) {
  const int lane = threadIdx.x % 32;
  const long long row = static_cast<long long>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (row >= static_cast<long long>(call.batches) * call.heads * call.queries) return;
  const int query = static_cast<int>(row % call.queries);
  const int head = static_cast<int>(row / call.queries % call.heads);
  const int batch = static_cast<int>(row / call.queries / call.heads);
  const Sequence sequence(call, batch);
  if (query >= sequence.queries) return;
  const float2* const parts = reinterpret_cast<const float2*>(call.peaks) + row * call.splits;
  float peak = minus_infinity();
  for (int split = lane; split < call.splits; split += 32) peak = fmaxf(peak, parts[split].x);
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) peak = fmaxf(peak, __shfl_xor_sync(~0u, peak, mask));
  const float base = peak == minus_infinity() ? 0.0f : peak;
  float sums[kValueDim / 32] = {}, total = 0;
#pragma unroll 4
  for (int split = 0; split < call.splits; ++split) {
    const float2 part = parts[split];
    const float factor = power2(part.x - base);
    total += part.y * factor;
    const float* const from = call.partial + (row * call.splits + split) * kValueDim;
#pragma unroll
    for (int i = 0; i < kValueDim / 32; ++i) sums[i] += from[lane + 32 * i] * factor;
  }
  store_row<T, kValueDim>(call, sequence, head, query, sums, peak, total);
}
