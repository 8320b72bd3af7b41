// Copies a strided view into another, unit by unit; a unit is 1, 2, 4, 8 or 16 aligned bytes.
#include <kernwright/strided.cuh>

struct alignas(16) Unit16 {
  unsigned long long low, high;
};

/// `Index` holds count plus one grid of threads. The views do not overlap.
template <typename Unit, typename Index>
__global__ void strided_copy(char* __restrict__ to, const char* __restrict__ from,
                             const StridedPair view, Index count) {
  const Index step = static_cast<Index>(gridDim.x) * blockDim.x;
  for (Index i = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    const StridedOffsets at = strided_offsets(view, i);
    *reinterpret_cast<Unit*>(to + at.to) = *reinterpret_cast<const Unit*>(from + at.from);
  }
}
