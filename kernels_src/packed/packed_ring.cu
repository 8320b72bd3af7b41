// Products of two to eight rows with quantised weights on Hopper.
#include <kernwright/packed_ring.cuh>

using namespace kernwright;

/// k is a multiple of 128 if `Whole`. Dynamic shared memory: the table of NF4, the stages of all
/// warps, two times the sums.
template <typename T, typename Format, typename Act, int Warps, int Stages, bool Whole>
__global__ void __launch_bounds__(Warps * 32, 32 / Warps)
    packed_ring(const __grid_constant__ SkinnyProblem p,
                const __grid_constant__ PackedArrays weights) {
  using Ring = PackedRing<Format, Warps, Stages>;
  constexpr bool kTable = TakesPairTable<typename Format::Codes>::kValue;
  extern __shared__ __align__(128) unsigned char memory[];
  __shared__ Mbarrier full[Warps][Stages];
  unsigned char* const stages = memory + (kTable ? PairTable::kBytes : 0);
  float* const parts = reinterpret_cast<float*>(stages + Warps * Ring::kBytes);
  const unsigned warp = __shfl_sync(~0u, threadIdx.x / 32, 0), lane = threadIdx.x % 32;
  let_next_begin();
  Ring ring;
  ring.start(weights, stages + warp * Ring::kBytes, full[warp], warp, p.n);
  if constexpr (kTable) PairTable::fill<T>(memory);
  wait_for_previous();
  __syncthreads();
  ring.fill(weights);
  PackedWalk<T, Format, 1, 1, kTable> walk;
  walk.start(p, weights);
  walk.table.of_lane = memory + lane * 4;
  unsigned turn = 0;
  for (unsigned tile = blockIdx.x; tile < ring.tiles; tile += gridDim.x, turn ^= 1) {
#pragma unroll
    for (int i = 0; i < 4; ++i) walk.sums[0][0][i] = 0;
#pragma unroll 1
    for (unsigned unit = ring.first; unit < ring.first + ring.count; ++unit) {
      const PackedArrays copied = Ring::Stage::copied(weights, ring.wait());
      Format raw[2][1][2];
#pragma unroll
      for (unsigned u = 0; u < 2; ++u)
#pragma unroll
        for (unsigned half = 0; half < 2; ++half) {
          if (u > 0 && unit * 2 + u >= ring.blocks) continue;
          const PackedPlace place = {u, 0, unit * 2 + u, tile, lane / 4, half};
          raw[u][0][half] = Format::template load<true>(copied, place, lane);
        }
      walk.template multiply_block<Whole>(static_cast<UInt64>(unit) * 256, raw[0]);
      if (unit * 2 + 1 < ring.blocks)
        walk.template multiply_block<Whole>(static_cast<UInt64>(unit) * 256 + 128, raw[1]);
      ring.advance(weights);
    }
    float* const of_tile = parts + turn * Warps * p.m * 16;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const unsigned m = lane % 4 * 2 + i % 2;
      if (m < p.m) of_tile[(warp * p.m + m) * 16 + i / 2 * 8 + lane / 4] = walk.sums[0][0][i];
    }
    add_ring_warps<T, Act, Warps>(p, tile, of_tile);
  }
}
