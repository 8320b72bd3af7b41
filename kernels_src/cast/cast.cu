// Converts each element of a strided view to another type, by the rules that cast.h states.
#include <kernwright/elements.cuh>
#include <kernwright/walk.cuh>

using namespace kernwright;

/// `Index` holds count plus one grid of threads. The views do not overlap.
template <typename To, typename From, typename Index>
__global__ void cast(char* __restrict__ to, const char* __restrict__ from, const Walk<2> view,
                     Index count) {
  const Index step = static_cast<Index>(gridDim.x) * blockDim.x;
  for (Index i = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    const WalkOffsets<2> at = walk_offsets(view, i);
    const From value = *reinterpret_cast<const From*>(from + at.of[1]);
    *reinterpret_cast<To*>(to + at.of[0]) = Element<To, From>::of(value);
  }
}
