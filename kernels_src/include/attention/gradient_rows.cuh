// The kernels around attention's gradients on Hopper: deltas of rows before, and after them the
// conversion of accumulators to the gradient of the queries.
#pragma once

#include <kernwright/gradient_part.cuh>

namespace kernwright {

/// Before it: delta of each row, the sum of gradient times result, by `kLanes` lanes a row; clears
/// `count` counters. A block has rows of one head: heads are contiguous, then batches.
template <typename T, int kLanes>
__global__ void __launch_bounds__(256)
    sum_rows(const __grid_constant__ AttentionCall call, const __grid_constant__ Gradients more,
             unsigned* __restrict__ counters, long long count) {
  using Eight = Pack<T, 8>;
  constexpr int kRows = 256 / kLanes;
  const long long thread = blockIdx.x * 256ll + threadIdx.x;
  for (long long i = thread; i < count; i += gridDim.x * 256ll) counters[i] = 0;
  const int lane = threadIdx.x % kLanes, blocks = (call.queries + kRows - 1) / kRows;
  const int query = static_cast<int>(blockIdx.x % blocks) * kRows + threadIdx.x / kLanes;
  const int head = blockIdx.x / blocks % call.heads;
  const long long batch = blockIdx.x / blocks / call.heads;
  const bool has_row = query < call.queries;
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

/// The last kernel: accumulators become the gradient of the queries; tiles to which no block added
/// are 0. A block of 256 threads takes a tile; the tiles of a head are contiguous, then the heads
/// of a batch.
template <typename T, typename Config>
__global__ void __launch_bounds__(256) finish_queries(const __grid_constant__ AttentionCall call,
                                                      const __grid_constant__ Gradients more,
                                                      const __grid_constant__ BackwardPlan plan) {
  using Eight = Pack<T, 8>;
  int tile = blockIdx.x % plan.query_tiles, batch = blockIdx.x / plan.query_tiles / call.heads;
  const int head = blockIdx.x / plan.query_tiles % call.heads;
  if (is_packed<Config>(call.q_starts)) {
    batch = find_sequence<Config::kQueries, 256>(call.q_starts, call.batches, call.queries, tile);
    if (batch < 0) return;
    tile -= min(max(call.q_starts[batch], 0), call.queries) / Config::kQueries + batch;
  }
  const Sequence sequence(call, batch, Config::kRagged);
  const int stored = is_packed<Config>(call.q_starts) ? sequence.queries : call.queries;
  if (tile * Config::kQueries >= stored) return;
  const long long index = Part<Config>::first_tile_index(call, plan, sequence, batch, head) + tile;
  const bool has_accumulators =
      tile * Config::kQueries < sequence.queries && plan.counters[1 + index] != 0;
  const float4* const accumulators =
      reinterpret_cast<const float4*>(plan.accumulators + index * Config::kAccumulators);
  T* const to = static_cast<T*>(more.dq) + sequence.q_place(more.dq_at) + head * more.dq_at.head;
  const int group = threadIdx.x / 128, warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
#pragma unroll
  for (int step = 0; step < Config::kAccumulators / 4096; ++step) {
    // 64 queries take eight columns each.
    const int column = (Config::kQueries == 128 ? step * 4 : step * 8 + group * 4) + lane % 4;
    const int half = Config::kQueries == 128 ? group : 0;
    Eight rows[2] = {};
    if (has_accumulators) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float4 four = accumulators[(half * 8 + column) * 128 + warp * 32 + lane / 4 * 4 + j];
        rows[0].value[2 * j] = from_compute<T>(four.x * call.scale);
        rows[0].value[2 * j + 1] = from_compute<T>(four.y * call.scale);
        rows[1].value[2 * j] = from_compute<T>(four.z * call.scale);
        rows[1].value[2 * j + 1] = from_compute<T>(four.w * call.scale);
      }
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int query = tile * Config::kQueries + half * 64 + warp * 16 + lane / 4 + 8 * r;
      if (query >= stored || column * 8 >= call.dim) continue;
      const bool is_known = query < sequence.queries;
      *reinterpret_cast<Eight*>(to + query * more.dq_at.token + column * 8) =
          is_known ? rows[r] : Eight{};
    }
  }
}

}  // namespace kernwright
