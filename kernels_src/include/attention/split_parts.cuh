// Partial results of split-K over the context: kept in memory, or sent to the blocks of a cluster.
#pragma once

#include <kernwright/attention.cuh>
#include <kernwright/mbarrier.cuh>
#include <kernwright/tensor_core.cuh>

namespace kernwright {

/// Two columns of a row: accumulators of weights times values and the sum of weights, relative to
/// `peak`.
struct SplitPart {
  float2 sum = {0, 0};
  float peak = minus_infinity(), total = 0;

  /// Adds a part with another peak, not above this one.
  __device__ __forceinline__ void add(float2 sum_, float peak_, float total_) {
    const float factor = power2(peak_ - (peak == minus_infinity() ? 0.0f : peak));
    total += total_ * factor;
    sum.x += sum_.x * factor;
    sum.y += sum_.y * factor;
  }
};

/// All splits' parts of two columns, in the order of the splits. load(split) gives the columns,
/// peak and total; kAhead loads are under way at a time.
template <int kAhead, typename Load>
__device__ __forceinline__ SplitPart combine_parts(int splits, Load load) {
  SplitPart whole;
#pragma unroll 1
  for (int begin = 0; begin < splits; begin += kAhead) {
    float4 parts[kAhead];
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      parts[i] = make_float4(0, 0, minus_infinity(), 0);
      if (begin + i < splits) parts[i] = load(begin + i);
    }
    SplitPart next;
    next.peak = whole.peak;
#pragma unroll
    for (const float4& part : parts) next.peak = fmaxf(next.peak, part.z);
    next.add(whole.sum, whole.peak, whole.total);
#pragma unroll
    for (const float4& part : parts) next.add(make_float2(part.x, part.y), part.z, part.w);
    whole = next;
  }
  return whole;
}

struct RowPlace {
  int head, query;
};

/// Two columns of the result.
template <typename T>
__device__ __forceinline__ void store_pair(const AttentionCall& call, const Sequence& sequence,
                                           RowPlace at, int column, const SplitPart& part) {
  const float scale =
      finish_total(call, sequence, at.head, at.query, part.peak, part.total, column == 0);
  T* const out = static_cast<T*>(call.out) + sequence.out_first + at.query * call.out_at.token +
                 at.head * call.out_at.head + column;
  if (column < call.value_dim) out[0] = from_compute<T>(part.sum.x * scale);
  if (column + 1 < call.value_dim) out[1] = from_compute<T>(part.sum.y * scale);
}

/// The number of a sequence's row among all splits' results: packed sequences have common ones.
__device__ __forceinline__ long long part_place(const AttentionCall& call, const Sequence& sequence,
                                                RowPlace at, int split) {
  return split_place(call, static_cast<int>(sequence.q_batch), at.head,
                     at.query + static_cast<int>(sequence.q_token), split);
}

/// Two columns of a split's part in memory, for load_parts().
template <int kValueDim>
__device__ __forceinline__ void store_part(const AttentionCall& call, const Sequence& sequence,
                                           RowPlace at, int split, int column,
                                           const SplitPart& part) {
  const long long place = part_place(call, sequence, at, split);
  *reinterpret_cast<float2*>(call.partial + place * kValueDim + column) = part.sum;
  if (column == 0) {
    *reinterpret_cast<float2*>(call.peaks + 2 * place) = make_float2(part.peak, part.total);
  }
}

/// Two columns of all splits' parts in memory.
template <int kValueDim>
__device__ __forceinline__ SplitPart load_parts(const AttentionCall& call, const Sequence& sequence,
                                                RowPlace at, int column) {
  constexpr int kAhead = 16;
  const long long first = part_place(call, sequence, at, 0);
  const float* const partials = call.partial + first * kValueDim + column;
  const float2* const totals = reinterpret_cast<const float2*>(call.peaks) + first;
  return combine_parts<kAhead>(call.splits, [&](int split) {
    const float2 sum = *reinterpret_cast<const float2*>(partials + split * kValueDim);
    const float2 total = totals[split];
    return make_float4(sum.x, sum.y, total.x, total.y);
  });
}

constexpr int kMostCluster = 8;  // blocks of any device with clusters

/// Partial results of `items` pairs of columns, each reduced by one block of the cluster: memory
/// for this block's pairs, from all splits. The rank of a block in the cluster is the split.
struct ClusterParts {
  float4* parts;
  int splits, items, each;

  __device__ __forceinline__ ClusterParts(unsigned char* memory, int splits_, int items_)
      : parts(reinterpret_cast<float4*>(memory)),
        splits(splits_),
        items(items_),
        each((items_ + splits_ - 1) / splits_) {}
  /// The first item of a block, and how many it has.
  __device__ __forceinline__ int first(int split) const { return split * each; }
  __device__ __forceinline__ int count(int split) const {
    return max(0, min(each, items - first(split)));
  }
  __device__ __forceinline__ void send(int item, int from, const SplitPart& part) {
    const int to = item / each;
    unsigned there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(there)
                 : "r"(shared_address(parts + from * each + item - to * each)), "r"(to));
    asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(there), "f"(part.sum.x),
                 "f"(part.sum.y), "f"(part.peak), "f"(part.total)
                 : "memory");
  }
  /// A block's own item.
  __device__ __forceinline__ SplitPart combined(int item) const {
    return combine_parts<kMostCluster>(splits,
                                       [&](int split) { return parts[split * each + item]; });
  }
};

}  // namespace kernwright
