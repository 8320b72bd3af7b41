// Evenly spaced numbers.
#include <kernwright/elements.cuh>

using namespace kernwright;

/// Rounded twice, as the host does it: a fused multiplication and addition would differ.
__device__ __forceinline__ double number_at(double start, double step, long long i) {
  return __dadd_rn(start, __dmul_rn(step, static_cast<double>(i)));
}

__device__ __forceinline__ Int64 number_at(Int64 start, Int64 step, long long i) {
  return static_cast<Int64>(static_cast<UInt64>(start) +
                            static_cast<UInt64>(step) * static_cast<UInt64>(i));
}

/// to[i] = start + step * i; with `ends` the last one is `last`.
template <typename To, typename Number>
__global__ void sequence(To* __restrict__ to, Number start, Number step, Number last, bool ends,
                         long long count) {
  const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x; i < count;
       i += stride) {
    const Number number = ends && i == count - 1 ? last : number_at(start, step, i);
    to[i] = Element<To, Number>::apply(number);
  }
}
