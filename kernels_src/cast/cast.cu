// Converts each element of a strided view to another type, by the rules that cast.h states.
#include <kernwright/elements.cuh>
#include <kernwright/strided.cuh>

using namespace kernwright;

/// `Index` holds count plus one grid of threads. The views do not overlap.
template <typename To, typename From, typename Index>
__global__ void cast(char* __restrict__ to, const char* __restrict__ from, const StridedPair view,
                     Index count) {
  const Index step = static_cast<Index>(gridDim.x) * blockDim.x;
  for (Index i = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    const StridedOffsets at = strided_offsets(view, i);
    const From value = *reinterpret_cast<const From*>(from + at.from);
    *reinterpret_cast<To*>(to + at.to) = Element<To, From>::of(value);
  }
}
