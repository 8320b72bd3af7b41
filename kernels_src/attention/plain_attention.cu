// Attention by plain multiplications in float32: a warp has four rows, a lane a key of a tile for
// the scores, columns of the values for the accumulators.
#include <kernwright/attention.cuh>

using namespace kernwright;

constexpr int kWarps = 4;
constexpr int kThreads = 32 * kWarps;
constexpr int kEach = 4;  // rows of a warp
constexpr int kRows = kWarps * kEach;
constexpr int kTokens = 32;

/// A tile of `kCount` tokens, kPitch floats apart; elements behind `dim` and missing tokens are 0.
/// offset(token) is that of a token's first element, or kNoRow.
template <int kCount, int kDim, int kPitch, typename Offset>
__device__ __forceinline__ void load_tile(float* tile, const float* from, int dim, Offset offset) {
  for (int i = threadIdx.x; i < kCount * kDim; i += kThreads) {
    const int token = i / kDim, column = i % kDim;
    const long long at = offset(token);
    tile[token * kPitch + column] = at != kNoRow && column < dim ? from[at + column] : 0.0f;
  }
}

template <int kDim, int kValueDim>
__global__ void __launch_bounds__(kThreads)
    plain_attention(const __grid_constant__ AttentionCall call) {
  constexpr int kKeyPitch = kDim + 4;
  extern __shared__ __align__(16) float tiles[];
  float* const queries = tiles;
  float* const keys = queries + kRows * kDim;
  float* const values = keys + kTokens * kKeyPitch;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int group = call.heads / call.kv_heads;
  unsigned index = blockIdx.x;
  const int split = static_cast<int>(index % call.splits);
  index /= call.splits;
  const int tile = static_cast<int>(index % call.row_tiles);
  index /= call.row_tiles;
  const int kv_head = static_cast<int>(index % call.kv_heads);
  int batch = static_cast<int>(index / call.kv_heads), first_row = tile * kRows;
  if (PackedTile::are_used(call)) {
    const PackedTile packed(call, tile, kRows, group);
    batch = packed.batch;
    first_row = packed.first_row;
  }
  const Sequence sequence(call, batch);
  if (call.q_starts != nullptr && (first_row < 0 || first_row / group >= sequence.queries)) return;
  const int first_query = first_row / group;
  const int last_query = min((first_row + kRows - 1) / group, sequence.queries - 1);
  const int visible = sequence.first_key(call, first_query);
  const int low = visible / kTokens * kTokens;
  const int high = sequence.end_key(call, last_query);
  const int steps = high > low ? (high - low + kTokens - 1) / kTokens : 0;
  const int each = (steps + call.splits - 1) / call.splits;
  const int begin = low + min(split * each, steps) * kTokens;
  const int end = min(high, low + min((split + 1) * each, steps) * kTokens);
  const float* const q = static_cast<const float*>(call.q) + sequence.q_first;
  load_tile<kRows, kDim, kDim>(queries, q, call.dim, [&](int i) {
    const int query = (first_row + i) / group, head = kv_head * group + (first_row + i) % group;
    return query < sequence.queries ? query * call.q_at.token + head * call.q_at.head : kNoRow;
  });
  ScoreRow rows[kEach];
  for (int r = 0; r < kEach; ++r) {
    const int row = first_row + warp * kEach + r;
    rows[r].set(call, sequence, batch, row / group, kv_head * group + row % group);
  }
  const float* const k =
      static_cast<const float*>(call.k) + sequence.k_first + kv_head * call.k_at.head;
  const float* const v =
      static_cast<const float*>(call.v) + sequence.v_first + kv_head * call.v_at.head;
  const int* const table = call.table == nullptr ? nullptr : call.table + batch * call.table_row;
  bool bad = false;
  float accumulators[kEach][kValueDim / 32] = {}, peak[kEach], total[kEach] = {};
  for (int r = 0; r < kEach; ++r) peak[r] = minus_infinity();
  for (int token = begin; token < end; token += kTokens) {
    __syncthreads();
    const auto offset_in = [&](const HeadStrides& at) {
      return [&](int i) {
        if (token + i < visible || token + i >= end) return kNoRow;
        const long long offset = token_offset(call, table, at, token + i);
        bad |= offset == kNoRow;
        return offset;
      };
    };
    load_tile<kTokens, kDim, kKeyPitch>(keys, k, call.dim, offset_in(call.k_at));
    load_tile<kTokens, kValueDim, kValueDim>(values, v, call.value_dim, offset_in(call.v_at));
    __syncthreads();
    float score[kEach] = {};
#pragma unroll 4
    for (int d = 0; d < kDim; d += 4) {
      const float4 key = *reinterpret_cast<const float4*>(keys + lane * kKeyPitch + d);
#pragma unroll
      for (int r = 0; r < kEach; ++r) {
        const float4 query =
            *reinterpret_cast<const float4*>(queries + (warp * kEach + r) * kDim + d);
        score[r] += query.x * key.x + query.y * key.y + query.z * key.z + query.w * key.w;
      }
    }
#pragma unroll
    for (int r = 0; r < kEach; ++r) {
      const int key = token + lane;
      score[r] = full_score<float>(call, rows[r], score[r], call.scale, key);
      float most = fmaxf(peak[r], score[r]);
#pragma unroll
      for (int mask = 16; mask > 0; mask /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, mask));
      const float base = most == minus_infinity() ? 0.0f : most;
      const float factor = exp2f(peak[r] - base);
      peak[r] = most;
      score[r] = exp2f(score[r] - base);
      total[r] = total[r] * factor + score[r];
      if (call.drop_below != 0) {
        const float2 factors = kept(call, batch, rows[r].head, rows[r].query, key / 2);
        score[r] *= key % 2 ? factors.y : factors.x;
      }
#pragma unroll
      for (int i = 0; i < kValueDim / 32; ++i) accumulators[r][i] *= factor;
    }
    for (int t = 0; t < kTokens; ++t) {
      float weight[kEach];
#pragma unroll
      for (int r = 0; r < kEach; ++r) weight[r] = __shfl_sync(~0u, score[r], t);
#pragma unroll
      for (int i = 0; i < kValueDim / 32; ++i) {
        const float value = values[t * kValueDim + lane + 32 * i];
#pragma unroll
        for (int r = 0; r < kEach; ++r) accumulators[r][i] += weight[r] * value;
      }
    }
  }
  bad = __syncthreads_or(bad);
#pragma unroll
  for (int r = 0; r < kEach; ++r) {
    float sum = total[r];
#pragma unroll
    for (int mask = 16; mask > 0; mask /= 2) sum += __shfl_xor_sync(~0u, sum, mask);
    if (bad) sum = not_a_number();
    // Rows behind a packed sequence belong to the next sequence; without packing these rows are 0.
    const int stored = call.q_starts != nullptr ? sequence.queries : call.queries;
    if (rows[r].query >= stored) break;
    if (call.splits > 1) {
      store_split<kValueDim>(call, batch, rows[r], split, accumulators[r], peak[r], sum);
    } else {
      store_row<float, kValueDim>(call, sequence, rows[r].head, rows[r].query, accumulators[r],
                                  peak[r], sum);
    }
  }
}
