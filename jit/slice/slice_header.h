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
/// Defined as well as the first for a text with the name of the words: blocks keep the index and
/// the grid of the launch, and ask in front of each tile.
inline constexpr std::string_view kSliceLoop = "KERNWRIGHT_SLICE_LOOP_";
inline constexpr std::string_view kYieldWordsName = "KERNWRIGHT_YIELD_WORDS";

/// Functions beside kernels see the two objects in shared memory. With SliceForm::in_shared one
/// thread writes them in front of a barrier. Else all threads write them, for functions that are
/// inlined: the compiler then leaves the objects out. Where it does not, that form is of no use.
inline constexpr std::string_view kSliceHeader = R"cuda(#pragma once
#ifdef KERNWRIGHT_SLICE_LOOP_
#define KERNWRIGHT_YIELD_WORDS ::kernwright::YieldWords{kernwright_order, kernwright_next}
#define KERNWRIGHT_SLICE_ (void)kernwright_first, (void)kernwright_grid;
#else
static __shared__ uint3 kernwright_blockIdx, kernwright_gridDim;
namespace kernwright_slices {
__device__ __forceinline__ bool is_first() {
  return (threadIdx.x | threadIdx.y | threadIdx.z) == 0;
}
__device__ __forceinline__ uint3 index_of(uint3 at, const uint3& grid) {
  if (grid.y * grid.z != 1) {
    const unsigned row = at.x / grid.x;
    at.x -= row * grid.x;
    at.y += row;
    const unsigned plane = at.y / grid.y;
    at.y -= plane * grid.y;
    at.z += plane;
  }
#ifdef KERNWRIGHT_SLICE_SHARED_
  if (is_first())
#endif
  {
    ::kernwright_blockIdx = at;
    ::kernwright_gridDim = grid;
  }
#ifdef KERNWRIGHT_SLICE_SHARED_
  __syncthreads();
#endif
  return at;
}
#ifndef KERNWRIGHT_SLICE_YIELDS_
__device__ __forceinline__ uint3 block_index(uint3 at, const uint3& grid) {
  at.x += blockIdx.x;
  return index_of(at, grid);
}
#else
static __shared__ unsigned turn;
__device__ __forceinline__ bool take_block(uint3& at, const uint3& grid,
                                           const volatile unsigned* order, unsigned* next) {
  if (is_first()) turn = *order != 0 ? ~0u : atomicAdd(next, 1);
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
  if (!::kernwright_slices::take_block(kernwright_at, kernwright_grid, kernwright_order, \
                                        kernwright_next)) \
    return;
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
#endif
)cuda";

}  // namespace kernwright
