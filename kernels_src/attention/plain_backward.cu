// Gradients of attention by plain multiplications in float32: a warp has four rows, of keys or of
// queries, a lane one column of a tile, of the other kind.
#include <kernwright/attention_gradient.cuh>

using namespace kernwright;

constexpr int kWarps = 4;
constexpr int kThreads = 32 * kWarps;
constexpr int kEach = 4;
constexpr int kRows = kWarps * kEach;
constexpr int kColumns = 32;

/// `count` tokens from `first`, kPitch floats apart; missing elements and tokens are 0.
template <int kDim, int kPitch>
__device__ __forceinline__ void load_tokens(float* tile, const float* from, const HeadStrides& at,
                                            int first, int count, int end, int dim) {
  for (int i = threadIdx.x; i < count * kDim; i += kThreads) {
    const int token = first + i / kDim, column = i % kDim;
    tile[i / kDim * kPitch + column] =
        token < end && column < dim ? from[token * at.token + column] : 0.0f;
  }
}

template <int kDim>
__device__ __forceinline__ float axis_product(const float* a, const float* b) {
  float sum = 0;
#pragma unroll 4
  for (int d = 0; d < kDim; d += 4) {
    const float4 x = *reinterpret_cast<const float4*>(a + d);
    const float4 y = *reinterpret_cast<const float4*>(b + d);
    sum += x.x * y.x + x.y * y.y + x.z * y.z + x.w * y.w;
  }
  return sum;
}

template <int kDim, int kValueDim, bool kForKeys>
__global__ void __launch_bounds__(kThreads)
    plain_gradient(const __grid_constant__ AttentionCall call,
                   const __grid_constant__ Gradients more) {
  extern __shared__ __align__(16) float tiles[];
  float* const a = tiles;
  float* const b = a + kRows * kDim;
  float* const x = b + kRows * kValueDim;
  float* const y = x + kColumns * (kDim + 4);
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
  const int columns = high > low ? (high - low + kColumns - 1) / kColumns : 0;
  const int steps = kForKeys ? columns * group : columns;
  const float* const q = static_cast<const float*>(call.q) + sequence.q_first;
  const float* const grad = static_cast<const float*>(more.grad) + sequence.q_place(more.grad_at);
  const float* const k =
      static_cast<const float*>(call.k) + sequence.k_first + kv_head * call.k_at.head;
  const float* const v =
      static_cast<const float*>(call.v) + sequence.v_first + kv_head * call.v_at.head;
  const HeadStrides& a_at = kForKeys ? call.k_at : call.q_at;
  const HeadStrides& b_at = kForKeys ? call.v_at : more.grad_at;
  load_tokens<kDim, kDim>(a, kForKeys ? k : q + row_head * a_at.head, a_at, first_row, kRows,
                          end_row, call.dim);
  load_tokens<kValueDim, kValueDim>(b, kForKeys ? v : grad + row_head * b_at.head, b_at, first_row,
                                    kRows, end_row, call.value_dim);
  QueryFacts facts[kForKeys ? 1 : kEach];
  if constexpr (!kForKeys) {
#pragma unroll
    for (int r = 0; r < kEach; ++r) {
      facts[r].set(call, more, sequence, row_head, first_row + kEach * warp + r);
    }
  }
  float changes[kEach][kDim / 32] = {}, weights[kEach][kForKeys ? kValueDim / 32 : 1] = {};
  for (int n = 0; n < steps; ++n) {
    const int head = kForKeys ? kv_head * group + n / columns : row_head;
    const int first = low + n % columns * kColumns;
    __syncthreads();
    load_tokens<kDim, kDim + 4>(x, kForKeys ? q + head * call.q_at.head : k,
                                kForKeys ? call.q_at : call.k_at, first, kColumns, high, call.dim);
    load_tokens<kValueDim, kValueDim + 4>(y, kForKeys ? grad + head * more.grad_at.head : v,
                                          kForKeys ? more.grad_at : call.v_at, first, kColumns,
                                          high, call.value_dim);
    __syncthreads();
    if constexpr (kForKeys) facts[0].set(call, more, sequence, head, first + lane);
    const ScoreTerms terms(call, batch, head);
    float weight[kEach], change[kEach];
#pragma unroll
    for (int r = 0; r < kEach; ++r) {
      const int row = kEach * warp + r;
      weight[r] = axis_product<kDim>(a + row * kDim, x + lane * (kDim + 4));
      change[r] = axis_product<kValueDim>(b + row * kValueDim, y + lane * (kValueDim + 4));
      const int query = kForKeys ? first + lane : first_row + row;
      const int key = kForKeys ? first_row + row : first + lane;
      turn_products<float, 2>(call, terms, sequence, facts[kForKeys ? 0 : r], batch, head, query,
                              key, weight[r], change[r]);
    }
    for (int t = 0; t < kColumns; ++t) {
#pragma unroll
      for (int r = 0; r < kEach; ++r) {
        const float c = __shfl_sync(~0u, change[r], t), w = __shfl_sync(~0u, weight[r], t);
#pragma unroll
        for (int i = 0; i < kDim / 32; ++i) {
          changes[r][i] += c * x[t * (kDim + 4) + lane + 32 * i];
        }
        if constexpr (kForKeys) {
#pragma unroll
          for (int i = 0; i < kValueDim / 32; ++i) {
            weights[r][i] += w * y[t * (kValueDim + 4) + lane + 32 * i];
          }
        }
      }
    }
  }
  // Rows behind a packed sequence belong to the next sequence; without packing these rows are 0.
  const int stored = packed ? end_row : kForKeys ? call.keys : call.queries;
  const HeadStrides& at = kForKeys ? more.dk_at : more.dq_at;
  float* const to = static_cast<float*>(kForKeys ? more.dk : more.dq) +
                    (kForKeys ? sequence.k_place(at) : sequence.q_place(at)) + row_head * at.head;
  float* const to_v =
      static_cast<float*>(more.dv) + sequence.k_place(more.dv_at) + row_head * more.dv_at.head;
#pragma unroll
  for (int r = 0; r < kEach; ++r) {
    const int row = first_row + kEach * warp + r;
    if (row >= stored) break;
#pragma unroll
    for (int i = 0; i < kDim / 32; ++i) {
      const int column = lane + 32 * i;
      if (column < call.dim) to[row * at.token + column] = changes[r][i] * call.scale;
    }
    if constexpr (kForKeys) {
#pragma unroll
      for (int i = 0; i < kValueDim / 32; ++i) {
        const int column = lane + 32 * i;
        if (column < call.value_dim) to_v[row * more.dv_at.token + column] = weights[r][i];
      }
    }
  }
}
