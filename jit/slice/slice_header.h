// The device header in front of a sliced text, and the words that the text gets from it.
#pragma once

#include <string_view>

namespace kernwright {

inline constexpr std::string_view kSliceHeaderName = "kernwright/slices.cuh";
/// Stands behind the opening brace of each kernel.
inline constexpr std::string_view kSliceBegin = "KERNWRIGHT_SLICE_";
/// Defined for SliceForm::yields and SliceForm::in_shared.
inline constexpr std::string_view kSliceYields = "KERNWRIGHT_SLICE_YIELDS_";
inline constexpr std::string_view kSliceShared = "KERNWRIGHT_SLICE_SHARED_";

/// The two objects in shared memory are what functions beside kernels see. All threads of a block
/// write the same values, each before it reads them, so no barrier is needed. The compiler leaves
/// them out where it inlines all readers.
inline constexpr std::string_view kSliceHeader = R"cuda(#pragma once
static __shared__ uint3 kernwright_blockIdx, kernwright_gridDim;
namespace kernwright_slices {
__device__ __forceinline__ uint3 index_of(uint3 at, const uint3& grid) {
  if (grid.y * grid.z != 1) {
    const unsigned row = at.x / grid.x;
    at.x -= row * grid.x;
    at.y += row;
    const unsigned plane = at.y / grid.y;
    at.y -= plane * grid.y;
    at.z += plane;
  }
  ::kernwright_blockIdx = at;
  ::kernwright_gridDim = grid;
  return at;
}
#ifndef KERNWRIGHT_SLICE_YIELDS_
__device__ __forceinline__ uint3 block_index(uint3 at, const uint3& grid) {
  at.x += blockIdx.x;
  return index_of(at, grid);
}
#else
static __shared__ unsigned turn;
__device__ __forceinline__ bool take_block(uint3& at, const uint3& grid, unsigned* words) {
  if ((threadIdx.x | threadIdx.y | threadIdx.z) == 0) {
    turn = *static_cast<volatile unsigned*>(words) != 0 ? ~0u : atomicAdd(words + 1, 1);
  }
  __syncthreads();
  const unsigned taken = turn;
  if (taken >= grid.x * grid.y * grid.z) return false;
  at.x += taken;
  at = index_of(at, grid);
  return true;
}
#endif
}  // namespace kernwright_slices
#ifdef KERNWRIGHT_SLICE_YIELDS_
#define KERNWRIGHT_SLICE_INDEX_ \
  uint3 kernwright_at = kernwright_first; \
  if (!::kernwright_slices::take_block(kernwright_at, kernwright_grid, kernwright_words)) return;
#else
#define KERNWRIGHT_SLICE_INDEX_ \
  const uint3 kernwright_at = ::kernwright_slices::block_index(kernwright_first, kernwright_grid);
#endif
#ifdef KERNWRIGHT_SLICE_SHARED_
#define KERNWRIGHT_SLICE_ KERNWRIGHT_SLICE_INDEX_ (void)kernwright_at;
#else
#define KERNWRIGHT_SLICE_ \
  KERNWRIGHT_SLICE_INDEX_ \
  const uint3 kernwright_blockIdx = kernwright_at; \
  const dim3 kernwright_gridDim(kernwright_grid.x, kernwright_grid.y, kernwright_grid.z); \
  (void)kernwright_blockIdx; \
  (void)kernwright_gridDim;
#endif
#define blockIdx kernwright_blockIdx
#define gridDim kernwright_gridDim
)cuda";

}  // namespace kernwright
