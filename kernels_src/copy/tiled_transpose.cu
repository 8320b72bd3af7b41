// Copies a view with another innermost axis in the source. Tiles go through shared memory, so both
// sides are read and written along their own lines.
#include <kernwright/elements.cuh>

using namespace kernwright;

struct alignas(16) Unit16 {
  unsigned long long low, high;
};

constexpr int kRestDims = 6;
constexpr int kThreads = 256;

/// x runs along the source's line (`from_x` is its stride), y along the target's; units and
/// strides in bytes. The rest is numbered by tiles: z, the innermost dimension first.
struct TiledView {
  long long x_extent, y_extent;
  long long to_x, to_y, from_x, from_y;
  long long extent[kRestDims], to[kRestDims], from[kRestDims];
  unsigned x_tiles, y_tiles;
  int ndim;
};

/// kPack units are moved at once: then kPack divides both extents and all is aligned for it.
template <typename Unit, int kTile, int kPack>
__global__ void __launch_bounds__(kThreads)
    tiled_transpose(char* __restrict__ to, const char* __restrict__ from, const TiledView view) {
  using Packed = Pack<Unit, kPack>;
  constexpr int kLanes = kTile / kPack;      // threads for a line of a tile
  constexpr int kLines = kThreads / kLanes;  // lines that all threads take at once
  constexpr int kRounds = kTile / kLines;
  __shared__ alignas(16) unsigned char memory[kTile * (kTile + 1) * sizeof(Unit)];
  Unit(*const tile)[kTile + 1] = reinterpret_cast<Unit(*)[kTile + 1]>(memory);

  unsigned block = blockIdx.x;
  const long long x0 = static_cast<long long>(block % view.x_tiles) * kTile;
  block /= view.x_tiles;
  const long long y0 = static_cast<long long>(block % view.y_tiles) * kTile;
  block /= view.y_tiles;
#pragma unroll
  for (int d = 0; d < kRestDims; ++d) {
    if (d >= view.ndim) break;
    const unsigned rest = block / static_cast<unsigned>(view.extent[d]);
    const long long within = block - rest * static_cast<unsigned>(view.extent[d]);
    to += within * view.to[d];
    from += within * view.from[d];
    block = rest;
  }
  const int lane = threadIdx.x % kLanes * kPack, line = threadIdx.x / kLanes;
#pragma unroll 8
  for (int r = 0; r < kRounds; ++r) {
    const int y = line + r * kLines;
    if (x0 + lane >= view.x_extent || y0 + y >= view.y_extent) continue;
    const Packed pack =
        *reinterpret_cast<const Packed*>(from + (x0 + lane) * view.from_x + (y0 + y) * view.from_y);
#pragma unroll
    for (int k = 0; k < kPack; ++k) tile[y][lane + k] = pack.value[k];
  }
  __syncthreads();
#pragma unroll 8
  for (int r = 0; r < kRounds; ++r) {
    const int x = line + r * kLines;
    if (x0 + x >= view.x_extent || y0 + lane >= view.y_extent) continue;
    Packed pack;
#pragma unroll
    for (int k = 0; k < kPack; ++k) pack.value[k] = tile[lane + k][x];
    *reinterpret_cast<Packed*>(to + (x0 + x) * view.to_x + (y0 + lane) * view.to_y) = pack;
  }
}
