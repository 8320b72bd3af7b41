// The sum of a few values, times a scale; one block, in a fixed order. A kernel in a header: it
// follows another one of the text that includes it, and is compiled with it.
#pragma once

#include <kernwright/elements.cuh>
#include <kernwright/reduce.cuh>

namespace kernwright {

/// `factor` and, unless null, `*scale` multiply the sum.
template <typename F>
__global__ void __launch_bounds__(1024)
    total(const F* __restrict__ values, long long count, const F* __restrict__ scale, F factor,
          F* __restrict__ result) {
  F sum = 0;
#pragma unroll 4
  for (long long i = threadIdx.x; i < count; i += 1024) sum += values[i];
  sum = block_reduce<1024>(sum, Sum(), F(0));
  if (threadIdx.x == 0) *result = sum * factor * (scale == nullptr ? F(1) : *scale);
}

}  // namespace kernwright
