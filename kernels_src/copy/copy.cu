// Copies a strided view into another, unit by unit; a unit is 1, 2, 4, 8 or 16 aligned bytes.
#include <kernwright/walk.cuh>

struct alignas(16) Unit16 {
  unsigned long long low, high;
};

/// Each thread reads kUnroll units before it writes them. `Index` holds count plus one grid of
/// threads. The views, target first, do not overlap.
template <typename Unit, typename Index, int kUnroll>
__global__ void strided_copy(char* __restrict__ to, const char* __restrict__ from,
                             const Walk<2> view, Index count) {
  const Index tile = static_cast<Index>(blockDim.x) * kUnroll;
  for (Index first = blockIdx.x * tile + threadIdx.x; first < count; first += gridDim.x * tile) {
    long long target[kUnroll];
    Unit value[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const Index i = first + static_cast<Index>(u) * blockDim.x;
      if (i >= count) break;
      const WalkOffsets<2> at = walk_offsets(view, i);
      target[u] = at.offset[0];
      value[u] = *reinterpret_cast<const Unit*>(from + at.offset[1]);
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      if (first + static_cast<Index>(u) * blockDim.x >= count) break;
      *reinterpret_cast<Unit*>(to + target[u]) = value[u];
    }
  }
}
