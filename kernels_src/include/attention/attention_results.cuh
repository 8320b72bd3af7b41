// How a warpgroup's accumulators leave as rows of attention's result. Compute capability 9.0 alone.
#pragma once

#include <kernwright/attention_parts.cuh>
#include <kernwright/attention_rows.cuh>
#include <kernwright/tma.cuh>
#include <kernwright/wgmma_accumulator_rows.cuh>
#include <kernwright/wgmma_row_accumulators.cuh>

namespace kernwright {

/// The waves of accumulators (wgmma_accumulators.cuh): products of queries and keys, of weights and
/// values.
constexpr int kScores = 0, kResult = 1;

/// Writes a warp's rows of the result from the warp's part of the staging buffer, without rows
/// behind the sequence.
template <typename T, typename Config>
__device__ __forceinline__ void copy_rows(const unsigned char* staging, const AttentionCall& call,
                                          const Part& part, int row, int lane) {
  T* const out =
      static_cast<T*>(call.out) + part.q_token * call.out_at.token + part.head * call.out_at.head;
  for (int i = lane; i < kWarpRows * Config::kValueColumns * 8; i += 32) {
    const int r = i / (Config::kValueColumns * 8), unit = i % (Config::kValueColumns * 8);
    if (row + r >= part.queries || unit * 8 >= call.value_dim) continue;
    const unsigned char* from = staging + unit / 8 * (kGroupRows * 128) + swizzled(r, unit % 8);
    *reinterpret_cast<uint4*>(out + (row + r) * call.out_at.token + unit * 8) =
        *reinterpret_cast<const uint4*>(from);
  }
}

/// The factor of a part's values.
template <typename Config>
__device__ __forceinline__ float value_scale(const Part& part) {
  return Config::kSize == 1 ? part.value_scale : 1.0f;
}

/// A warp's 16 rows of a split's partial results, relative to the rows' peaks.
template <typename Config, int lift>
__device__ __forceinline__ void store_accumulators(const float (&out)[Config::kValueDim / 2],
                                                   const Running<lift>& running, float scale,
                                                   const AttentionCall& call, const Part& part,
                                                   int row, int lane) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int query = row + lane / 4 + 8 * r;
    const float total = running.whole_total(r), factor = value_scale<Config>(part);
    if (query >= call.queries) continue;
    const long long at = split_place(call, part.batch, part.head, query, part.split);
    float* const partials = call.partial + at * Config::kValueDim + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < Config::kValueDim / 8; ++i) {
      const float* two = out + 4 * i + 2 * r;
      *reinterpret_cast<float2*>(partials + 8 * i) =
          total == 0 ? make_float2(0, 0) : make_float2(two[0] * factor, two[1] * factor);
    }
    if (lane % 4 == 0) {
      *reinterpret_cast<float2*>(call.peaks + 2 * at) =
          make_float2(running.reference(r, scale), total);
    }
  }
}

/// The logarithm of a row's weights, of base 2 by the special unit: within 2^-22 of it.
template <typename Config>
__device__ __forceinline__ void store_logarithm(const AttentionCall& call, const Part& part,
                                                int query, float peak, float total) {
  long long at = query * call.lse_at.token + part.head * call.lse_at.head;
  at += is_packed<Config>(call.q_starts) ? part.q_token * call.lse_at.token
                                         : part.batch * call.lse_at.batch;
  call.lse[at] = total == 0 ? minus_infinity() : from_log2(peak + __log2f(total));
}

/// Writes a warp's 16 rows of the result and the logarithms, through the stage of the queries,
/// which are no longer needed. The stores may still read the stage after the call.
template <typename T, typename Config, int lift>
__device__ __forceinline__ void store_rows(const Running<lift>& running, float scale,
                                           unsigned char* staging, const TensorMap& map,
                                           const AttentionCall& call, const Part& part, int row,
                                           int lane) {
  const bool packed = is_packed<Config>(call.q_starts);
  const int queries = same_in_warp(part.queries), stored = packed ? queries : call.queries;
  float factors[2];
  bool seen[2];  // else the result is 0: values times no weight may be NaN
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int query = row + lane / 4 + 8 * r;
    float total = running.whole_total(r);
    if (query >= queries) total = 0;
    seen[r] = total != 0;
    float peak = running.reference(r, scale), factor = value_scale<Config>(part);
    if constexpr (Config::kSinks) {
      const float base = seen[r] ? peak : 0.0f;
      if (!seen[r]) peak = minus_infinity();
      add_sink(call.sinks[part.head], peak, total);
      if (peak != minus_infinity()) factor *= power2(base - peak);
    }
    factors[r] = __fdividef(factor, total);
    if (call.lse != nullptr && lane % 4 == 0 && query < stored) {
      store_logarithm<Config>(call, part, query, peak, total);
    }
  }
  const unsigned kept[2] = {seen[0] ? ~0u : 0, seen[1] ? ~0u : 0};
  AccumulatorRows<T>::template store<kResult, Config::kValueDim / 2, kGroupRows * 128>(
      shared_address(staging) + swizzled(lane % 16, lane / 16), factors, kept);
  show_to_copies();
  __syncwarp();
  if (packed && row + kWarpRows > stored) {
    copy_rows<T, Config>(staging, call, part, row, lane);
    __syncwarp();
  } else if (lane == 0 && row < stored) {
    const int y = part.q_token * packed + row;
#pragma unroll
    for (int i = 0; i < Config::kValueColumns; ++i) {
      tma_store(map, staging + i * (kGroupRows * 128), i * kSwizzled, y, part.head, part.out_batch);
    }
    commit_stores();
  }
}

}  // namespace kernwright
