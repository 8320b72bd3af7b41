// Products of one row with quantised weights on Hopper, as products of whole numbers: a block
// stays on each multiprocessor, and copies of what comes next are on their way to shared memory.
#include <kernwright/packed_digits.cuh>
#include <kernwright/packed_ring.cuh>

using namespace kernwright;

/// Each warp has a part of k, and computes the digits of its x with the first tile. Dynamic shared
/// memory: the stages of all warps, the accumulators of kKeptTiles, zeros, the digits.
template <typename T, typename Format, typename Act, int Warps, int Stages>
__global__ void __launch_bounds__(Warps * 32)
    packed_whole(const __grid_constant__ SkinnyProblem p,
                 const __grid_constant__ PackedArrays weights) {
  using Ring = PackedRing<Format, Warps, Stages>;
  using Digits = XDigits<T, Format>;
  extern __shared__ __align__(128) unsigned char memory[];
  __shared__ Mbarrier full[Warps][Stages];
  float* const parts = reinterpret_cast<float*>(memory + Warps * Ring::kBytes);
  unsigned char* const zeros = reinterpret_cast<unsigned char*>(parts + kKeptTiles * Warps * 16);
  const unsigned warp = __shfl_sync(~0u, threadIdx.x / 32, 0), lane = threadIdx.x % 32;
  Ring ring;
  ring.start(weights, memory + warp * Ring::kBytes, full[warp], warp, p.n);
  Digits::clear(zeros);
  __syncthreads();
  pdl_launch_then_wait();
  typename Digits::Column next;
  next.load(p, ring.first, lane);
  ring.fill(weights);
  unsigned char* const digits = zeros + Digits::kZeros + ring.first * Digits::kBytes;
  const typename Digits::Bytes bytes(*reinterpret_cast<const unsigned*>(zeros + lane * 4));
  for (unsigned first = blockIdx.x; first < ring.tiles; first += kKeptTiles * gridDim.x) {
    for (unsigned t = 0; t < kKeptTiles; ++t) {
      const unsigned tile = first + t * gridDim.x;
      if (tile >= ring.tiles) break;
      float rows[2] = {};
#pragma unroll 1
      for (unsigned i = 0; i < ring.count; ++i) {
        if (tile == blockIdx.x) {  // while copies are on their way
          const typename Digits::Column column = next;
          next.load(p, ring.first + i + 1, lane);
          Digits::make(column, lane, digits + i * Digits::kBytes);
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
    add_kept_tiles<T, Act, Warps>(p, first, parts);
  }
}
