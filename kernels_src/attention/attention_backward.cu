// Gradients of attention on matrix units. Scores are computed once more; one launch has rows of
// keys and walks over queries, for keys and values, another has rows of queries and walks over
// keys. No sum depends on timing.
#include <kernwright/attention_gradient.cuh>
#include <kernwright/attention_tile.cuh>

using namespace kernwright;

constexpr int kWarps = 4;
constexpr int kThreads = 32 * kWarps;
constexpr int kRows = 16 * kWarps;
constexpr int kCopies = 4;  // of a lane without a loop

/// One warp a query and head: delta is the sum of gradient times result.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    gradient_rows(const __grid_constant__ AttentionCall call,
                  const __grid_constant__ Gradients more) {
  const int lane = threadIdx.x % 32;
  const long long row = static_cast<long long>(blockIdx.x) * kWarps + threadIdx.x / 32;
  const int batches = call.q_starts != nullptr ? 1 : call.batches;
  if (row >= static_cast<long long>(batches) * call.heads * call.queries) return;
  const long long query = row % call.queries, head = row / call.queries % call.heads;
  const long long batch = row / call.queries / call.heads;
  const auto place = [&](const HeadStrides& at) {
    return batch * at.batch + head * at.head + query * at.token;
  };
  const T* const out = static_cast<const T*>(call.out) + place(call.out_at);
  const T* const grad = static_cast<const T*>(more.grad) + place(more.grad_at);
  float sum = 0;
  for (int i = lane; i < call.value_dim; i += 32) sum += to_compute(out[i]) * to_compute(grad[i]);
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) sum += __shfl_xor_sync(~0u, sum, mask);
  if (lane == 0) more.delta[place(call.lse_at)] = sum;
}

/// Logarithms from here on leave little of their fraction to the sum of weights.
constexpr float kFarLogarithm = 512;

/// A warp writes `lse` and `bases` of one query and head, with the strides of the call's
/// logarithms. A row far from 0, where a mask holds large numbers for all keys, gets the largest
/// score as the base, and the logarithm of the sum of weights relative to this base. All further
/// rows have no base.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    rebase_rows(const __grid_constant__ AttentionCall call, float* __restrict__ lse,
                float* __restrict__ bases) {
  const int lane = threadIdx.x % 32;
  const long long index = static_cast<long long>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (index >= static_cast<long long>(call.batches) * call.heads * call.queries) return;
  const int query = static_cast<int>(index % call.queries);
  const int head = static_cast<int>(index / call.queries % call.heads);
  const int batch = static_cast<int>(index / call.queries / call.heads);
  const Sequence sequence(call, batch);
  const long long at = sequence.lse_first + query * call.lse_at.token + head * call.lse_at.head;
  float logarithm = call.lse[at], base = 0;
  if (fabsf(logarithm) >= kFarLogarithm && logarithm != minus_infinity()) {
    const int kv_head = head / (call.heads / call.kv_heads);
    const T* const q = static_cast<const T*>(call.q) + sequence.q_first + head * call.q_at.head +
                       query * call.q_at.token;
    const T* const k = static_cast<const T*>(call.k) + sequence.k_first + kv_head * call.k_at.head;
    ScoreRow row;
    row.set(call, sequence, batch, query, head);
    float peak = minus_infinity(), total = 0;
    for (int key = row.low + lane; key < row.high; key += 32) {
      float product = 0;
      for (int i = 0; i < call.dim; ++i) {
        product += to_compute(q[i]) * to_compute(k[key * call.k_at.token + i]);
      }
      const float score = full_score<T>(call, row, product, call.scale, key);
      const float most = fmaxf(peak, score);
      if (most == minus_infinity()) continue;
      total = total * exp2f(peak - most) + exp2f(score - most);
      peak = most;
    }
    base = peak;
#pragma unroll
    for (int mask = 16; mask > 0; mask /= 2) {
      base = fmaxf(base, __shfl_xor_sync(~0u, base, mask));
    }
    if (base == minus_infinity()) base = 0;
    total *= exp2f(peak - base);
#pragma unroll
    for (int mask = 16; mask > 0; mask /= 2) total += __shfl_xor_sync(~0u, total, mask);
    if (call.sinks != nullptr) add_sink(call.sinks[head], base, total);
    logarithm = logf(total);
  }
  if (lane == 0) {
    lse[at] = logarithm;
    bases[at] = base;
  }
}

/// out += left * right: left of 16 rows is in the lanes' registers, right a tile of as many rows as
/// left has columns.
template <typename T, int kColumns, int kTiles>
__device__ __forceinline__ void add_products(float (&out)[kColumns / 8][4],
                                             const float (&left)[kTiles][4], unsigned tile) {
  using Unit = MatrixUnit<T>;
#pragma unroll
  for (int step = 0; step < kTiles / 2; ++step) {
    const float(&a)[4] = left[2 * step];
    const float(&b)[4] = left[2 * step + 1];
    const unsigned packed[4] = {Unit::pair(a[0], a[1]), Unit::pair(a[2], a[3]),
                                Unit::pair(b[0], b[1]), Unit::pair(b[2], b[3])};
#pragma unroll
    for (int i = 0; i < kColumns / 16; ++i) {
      unsigned right[4];
      load_right_transposed<kColumns>(right, tile, step, 16 * i);
      Unit::multiply(out[2 * i], packed, right[0], right[1]);
      Unit::multiply(out[2 * i + 1], packed, right[2], right[3]);
    }
  }
}

/// s = rows * columns^T, over kDim elements.
template <typename T, int kDim, int kTiles>
__device__ __forceinline__ void multiply_tiles(float (&s)[kTiles][4], unsigned rows, int first_row,
                                               unsigned columns) {
  constexpr int kUnrolled = kDim > 128 ? 4 : kDim / 16;  // four are a row's 128 bytes
#pragma unroll kUnrolled
  for (int step = 0; step < kDim / 16; ++step) {
    unsigned left[4];
    load_left<kDim>(left, rows, first_row, step);
#pragma unroll
    for (int i = 0; i < kTiles / 2; ++i) {
      unsigned right[4];
      load_right<kDim>(right, columns, 16 * i, step);
      MatrixUnit<T>::multiply(s[2 * i], left, right[0], right[1]);
      MatrixUnit<T>::multiply(s[2 * i + 1], left, right[2], right[3]);
    }
  }
}

/// kPairs: rows lie at multiples of 16 bytes, and are whole units of them.
template <typename T, int kDim, bool kPairs>
__device__ __forceinline__ void store_gradient(T* to, const HeadStrides& at, int first_row,
                                               int end_row, int dim, float scale,
                                               const float (&accumulators)[kDim / 8][4]) {
  const int lane = threadIdx.x % 32, first = lane % 4 * 2;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = first_row + lane / 4 + 8 * r;
    if (row >= end_row) continue;
    T* const elements = to + row * at.token + first;
#pragma unroll
    for (int i = 0; i < kDim / 8; ++i) {
      const float a = accumulators[i][2 * r] * scale, b = accumulators[i][2 * r + 1] * scale;
      if constexpr (kPairs) {
        if (8 * i < dim) *reinterpret_cast<unsigned*>(elements + 8 * i) = MatrixUnit<T>::pair(a, b);
      } else {
        if (8 * i + first < dim) elements[8 * i] = from_compute<T>(a);
        if (8 * i + first + 1 < dim) elements[8 * i + 1] = from_compute<T>(b);
      }
    }
  }
}

/// A tile has 64 rows of keys (kForKeys) or of queries. kAccumulators selects the accumulators: 1
/// for products with changes of scores (gradients of keys, of queries), 2 for products with weights
/// (gradient of values), 3 for both.
template <typename T, int kDim, int kValueDim, int kColumns, int kStages, bool kForKeys,
          int kAccumulators, bool kAsync, int kExtras>
__global__ void __launch_bounds__(kThreads)
    attention_gradient(const __grid_constant__ AttentionCall call,
                       const __grid_constant__ Gradients more) {
  constexpr int kShare = kColumns / kWarps;
  constexpr int kRowBytes = kRows * kDim * sizeof(T);
  constexpr int kColumnBytes = kColumns * kDim * sizeof(T);
  constexpr int kStage = kColumns * (kDim + kValueDim) * sizeof(T);
  extern __shared__ __align__(128) unsigned char memory[];
  unsigned char* const ring = memory + kRowBytes + kRows * kValueDim * sizeof(T);
  QueryFacts* const facts = reinterpret_cast<QueryFacts*>(ring + kStages * kStage);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int group = call.heads / call.kv_heads;
  unsigned index = blockIdx.x;
  const int first_row = static_cast<int>(index % call.row_tiles) * kRows;
  index /= call.row_tiles;
  const int row_heads = kForKeys ? call.kv_heads : call.heads;
  const int row_head = static_cast<int>(index % row_heads);
  const int batch = static_cast<int>(index / row_heads);
  const int kv_head = kForKeys ? row_head : row_head / group;
  const Sequence sequence(call, batch);
  const int end_row = kForKeys ? sequence.keys : sequence.queries;
  const bool packed = call.q_starts != nullptr;
  if (packed && first_row >= end_row) return;
  int low, high;
  find_columns<kForKeys>(call, sequence, first_row, min(first_row + kRows, end_row), low, high);
  low = low / kColumns * kColumns;
  const int tiles = high > low ? (high - low + kColumns - 1) / kColumns : 0;
  const int steps = kForKeys ? tiles * group : tiles;
  const T* const q = static_cast<const T*>(call.q) + sequence.q_first;
  const T* const grad = static_cast<const T*>(more.grad) + sequence.q_place(more.grad_at);
  const T* const k = static_cast<const T*>(call.k) + sequence.k_first + kv_head * call.k_at.head;
  const T* const v = static_cast<const T*>(call.v) + sequence.v_first + kv_head * call.v_at.head;
  const auto column_head = [&](int n) { return kForKeys ? kv_head * group + n / tiles : row_head; };
  const auto start = [&](int n) {
    const int head = column_head(n), first = low + n % tiles * kColumns;
    const int token = first + warp * kShare + lane % kShare;
    const bool valid = token < high;
    unsigned char* const to = ring + n % kStages * kStage;
    const HeadStrides& x_at = kForKeys ? call.q_at : call.k_at;
    const HeadStrides& y_at = kForKeys ? more.grad_at : call.v_at;
    TokenCopy<T, kShare, kDim, kAsync, kCopies>::start(
        to + warp * kShare * kDim * sizeof(T), kForKeys ? q + head * x_at.head : k,
        valid ? token * x_at.token : kNoRow, call.dim);
    TokenCopy<T, kShare, kValueDim, kAsync, kCopies>::start(
        to + kColumnBytes + warp * kShare * kValueDim * sizeof(T),
        kForKeys ? grad + head * y_at.head : v, valid ? token * y_at.token : kNoRow,
        call.value_dim);
    if (kForKeys && threadIdx.x < kColumns) {
      facts[n % kStages * kColumns + threadIdx.x].set(call, more, sequence, head,
                                                      first + threadIdx.x);
    }
  };
  const int warp_row = first_row + 16 * warp, warp_line = warp_row + lane % 16;
  {
    const HeadStrides& a_at = kForKeys ? call.k_at : call.q_at;
    const HeadStrides& b_at = kForKeys ? call.v_at : more.grad_at;
    TokenCopy<T, 16, kDim, kAsync, kCopies>::start(
        memory + 16 * warp * kDim * sizeof(T), kForKeys ? k : q + row_head * a_at.head,
        warp_line < end_row ? warp_line * a_at.token : kNoRow, call.dim);
    TokenCopy<T, 16, kValueDim, kAsync, kCopies>::start(
        memory + kRowBytes + 16 * warp * kValueDim * sizeof(T),
        kForKeys ? v : grad + row_head * b_at.head,
        warp_line < end_row ? warp_line * b_at.token : kNoRow, call.value_dim);
    if (!kForKeys && threadIdx.x < kRows) {
      facts[threadIdx.x].set(call, more, sequence, row_head, first_row + threadIdx.x);
    }
  }
  if (kStages == 2 && steps > 0) start(0);
  commit_copies();
  const unsigned a = shared_address(memory), b = a + kRowBytes;
  float changes[kAccumulators & 1 ? kDim / 8 : 1][4] = {};
  float weights[kAccumulators & 2 ? kValueDim / 8 : 1][4] = {};
  for (int n = 0; n < steps; ++n) {
    if constexpr (kStages == 1) {
      __syncthreads();
      start(n);
      commit_copies();
    }
    wait_copies<0>();
    __syncthreads();
    if (kStages == 2 && n + 1 < steps) start(n + 1);
    commit_copies();
    const unsigned x = shared_address(ring + n % kStages * kStage), y = x + kColumnBytes;
    float s[kColumns / 8][4] = {}, d[kColumns / 8][4] = {};
    multiply_tiles<T, kDim>(s, a, 16 * warp, x);
    multiply_tiles<T, kValueDim>(d, b, 16 * warp, y);
    const int head = column_head(n), first = low + n % tiles * kColumns;
    const ScoreTerms terms(call, batch, head);
#pragma unroll
    for (int i = 0; i < kColumns / 8; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int row = 16 * warp + lane / 4 + 8 * (j / 2), column = 8 * i + lane % 4 * 2 + j % 2;
        const QueryFacts& query_facts = facts[kForKeys ? n % kStages * kColumns + column : row];
        const int query = kForKeys ? first + column : first_row + row;
        const int key = kForKeys ? first_row + row : first + column;
        turn_products<T, kExtras>(call, terms, sequence, query_facts, batch, head, query, key,
                                  s[i][j], d[i][j]);
      }
    }
    if constexpr ((kAccumulators & 2) != 0) add_products<T, kValueDim>(weights, s, y);
    if constexpr ((kAccumulators & 1) != 0) add_products<T, kDim>(changes, d, x);
  }
  wait_copies<0>();
  // Rows behind a packed sequence belong to the next sequence; without packing these rows are 0.
  const int stored = packed ? end_row : kForKeys ? call.keys : call.queries;
  if constexpr ((kAccumulators & 1) != 0) {
    const HeadStrides& at = kForKeys ? more.dk_at : more.dq_at;
    T* const to = static_cast<T*>(kForKeys ? more.dk : more.dq) +
                  (kForKeys ? sequence.k_place(at) : sequence.q_place(at)) + row_head * at.head;
    store_gradient<T, kDim, kAsync>(to, at, warp_row, stored, call.dim, call.scale, changes);
  }
  if constexpr ((kAccumulators & 2) != 0) {
    T* const to =
        static_cast<T*>(more.dv) + sequence.k_place(more.dv_at) + row_head * more.dv_at.head;
    store_gradient<T, kValueDim, kAsync>(to, more.dv_at, warp_row, stored, call.value_dim, 1.0f,
                                         weights);
  }
}
