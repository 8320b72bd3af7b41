// Products of one row with quantised weights on Hopper, as products of whole numbers: a block
// stays on each multiprocessor, and copies of what comes next are on their way to shared memory.
#include <kernwright/packed_digits.cuh>
#include <kernwright/packed_ring.cuh>
#include <kernwright/row_norm.cuh>

using namespace kernwright;

/// Each warp has a part of k, and computes the digits of its x with the first tile. Dynamic shared
/// memory: the stages of all warps, the accumulators of kKeptTiles, zeros, the digits.
template <typename T, typename Format, typename Act, int Warps, int Stages, bool Normed = false,
          bool Gated = false>
__global__ void __launch_bounds__(Warps * 32, Normed)
    packed_whole(const __grid_constant__ SkinnyProblem p,
                 const __grid_constant__ PackedArrays weights) {
  using Ring = PackedRing<Format, Warps, Stages, Gated>;
  using Digits = XDigits<T, Format>;
  extern __shared__ __align__(128) unsigned char memory[];
  __shared__ Mbarrier full[Warps][Stages];
  __shared__ float squares[Warps];
  float* const parts = reinterpret_cast<float*>(memory + Warps * Ring::kBytes);
  unsigned char* const zeros = reinterpret_cast<unsigned char*>(parts + kKeptTiles * Warps * 16);
  const unsigned warp = __shfl_sync(~0u, threadIdx.x / 32, 0), lane = threadIdx.x % 32;
  Ring ring;
  ring.start(weights, memory + warp * Ring::kBytes, full[warp], warp, p.n);
  Digits::clear(zeros);
  RowNorm<T, Normed> norm;
  norm.fetch(p);
  __syncthreads();
  pdl_launch_then_wait();
  typename Digits::Column next, next_norm;
  next.load(p, ring.first, lane);
  if (Normed) next_norm.load(p.norm, p.k, ring.first, lane);
  ring.fill(weights);
  unsigned char* const digits = zeros + Digits::kZeros + ring.first * Digits::kBytes;
  const typename Digits::Bytes bytes(*reinterpret_cast<const unsigned*>(zeros + lane * 4));
  constexpr unsigned kEach = Gated ? 2 : 1;
  const unsigned tiles = ring.tiles / kEach;
  for (unsigned first = blockIdx.x; first < tiles; first += kKeptTiles / kEach * gridDim.x) {
    for (unsigned t = 0; t < kKeptTiles; ++t) {
      unsigned tile = first + t / kEach * gridDim.x;
      if (tile >= tiles) break;
      if (Gated && t % 2 == 1) tile += tiles;
      float rows[2] = {};
#pragma unroll 1
      for (unsigned i = 0; i < ring.count; ++i) {
        if (tile == blockIdx.x) {  // while copies are on their way
          float x[8], weights[8];
          Digits::spread(next, x);
          next.load(p, ring.first + i + 1, lane);
          if constexpr (Normed) {
            Digits::spread(next_norm, weights);
            next_norm.load(p.norm, p.k, ring.first + i + 1, lane);
            norm.weigh(weights, x);
          }
          Digits::make(x, lane, digits + i * Digits::kBytes);
          __syncwarp();
        }
        const PackedArrays copied = Ring::Stage::copied(weights, ring.wait());
        DigitUnit<T, Format> unit;
        const PackedPlace place = {0, 0, (ring.first + i) * 2, tile, lane / 4, 0};
        unit.load(copied, place, lane, ring.blocks);
        ring.advance(weights);
        unit.multiply(bytes, digits + i * Digits::kBytes, zeros, lane, rows);
      }
      keep_rows(rows, lane, parts + (t * Warps + warp) * 16);
    }
    if (first == blockIdx.x) norm.keep(squares);
    __syncthreads();
    add_kept_tiles<T, Act, Warps, Gated>(p, first, parts, norm.factor(p, squares));
  }
}
