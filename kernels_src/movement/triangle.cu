// Triangles of matrices, and matrices of one diagonal.
#include <kernwright/elements.cuh>
#include <kernwright/walk.cuh>

using namespace kernwright;

struct alignas(16) Unit16 {
  unsigned long long low, high;
};

/// Copies rows of `columns` elements, kPack at a time, and sets zero what is above diagonal k
/// (`upper`: below it). `from` walks packs.
template <typename Unit, int kPack, typename Index>
__global__ void triangle(Unit* __restrict__ to, const char* __restrict__ from, const Walk<1> view,
                         long long rows, long long columns, long long k, bool upper, Index count) {
  using Packed = Pack<Unit, kPack>;
  const Index step = static_cast<Index>(gridDim.x) * blockDim.x;
  const Index row_packs = static_cast<Index>(columns / kPack);
  for (Index i = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    const Index line = i / row_packs;
    const long long column = static_cast<long long>(i - line * row_packs) * kPack;
    const long long row = static_cast<long long>(line % static_cast<Index>(rows));
    const long long diagonal = row + k;  // columns up to it are in the lower triangle
    Packed pack = {};
    const bool none = upper ? column + kPack - 1 < diagonal : column > diagonal;
    if (!none) pack = *reinterpret_cast<const Packed*>(from + walk_offsets(view, i).offset[0]);
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      const bool kept = upper ? column + j >= diagonal : column + j <= diagonal;
      if (!kept) pack.value[j] = Unit{};
    }
    reinterpret_cast<Packed*>(to)[i] = pack;
  }
}

/// A matrix with `values` on its diagonal k and zero elsewhere.
template <typename Unit>
__global__ void diagonal_matrix(Unit* __restrict__ to, const char* __restrict__ values,
                                long long stride, long long rows, long long columns, long long k) {
  const long long count = rows * columns;
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  const long long skipped = k < 0 ? -k : 0;  // rows before the first of the diagonal
  for (long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x; i < count;
       i += step) {
    const long long row = i / columns;
    const long long column = i - row * columns;
    Unit value{};
    if (column == row + k) {
      value = *reinterpret_cast<const Unit*>(values + (row - skipped) * stride);
    }
    to[i] = value;
  }
}
