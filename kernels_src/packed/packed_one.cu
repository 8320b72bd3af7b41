// Products of one row with quantised weights on Hopper, in pipelines like the ones of
// packed_ring.cu.
#include <kernwright/packed_lanes.cuh>
#include <kernwright/packed_ring.cuh>

using namespace kernwright;

/// `Held`: each warp has at most so many units of k, and their x stays in registers; 0: x is loaded
/// again for each tile. Dynamic shared memory: the table of pairs of codes, the stages of all
/// warps, the accumulators of kKeptTiles. Codes have a table here: packed_whole.cu
/// takes all others but bytes.
template <typename T, typename Format, typename Act, int Warps, int Stages, int Held>
__global__ void __launch_bounds__(Warps * 32, 16 / Warps)
    packed_one(const __grid_constant__ SkinnyProblem p,
               const __grid_constant__ PackedArrays weights) {
  using Ring = PackedRing<Format, Warps, Stages>;
  constexpr int kColumns = Held < 1 ? 1 : Held;
  extern __shared__ __align__(128) unsigned char memory[];
  __shared__ Mbarrier full[Warps][Stages];
  unsigned char* const stages = memory + PairTable::kBytes;
  float* const parts = reinterpret_cast<float*>(stages + Warps * Ring::kBytes);
  const unsigned warp = __shfl_sync(~0u, threadIdx.x / 32, 0), lane = threadIdx.x % 32;
  Ring ring;
  ring.start(weights, stages + warp * Ring::kBytes, full[warp], warp, p.n);
  PairTable::fill<typename Format::Codes>(memory);
  pdl_launch_then_wait();
  ring.fill(weights);
  LaneColumn<T, Format> columns[kColumns];
#pragma unroll
  for (unsigned i = 0; i < Held; ++i) columns[i].load(p, ring.first + i, lane);
  __syncthreads();
  const PairTable table = {memory + lane * 4};
  for (unsigned first = blockIdx.x; first < ring.tiles; first += kKeptTiles * gridDim.x) {
    for (unsigned t = 0; t < kKeptTiles; ++t) {
      const unsigned tile = first + t * gridDim.x;
      if (tile >= ring.tiles) break;
      float rows[2] = {};
      // Units are not multiplied side by side: that would take more registers.
#pragma unroll
      for (unsigned held = 0; held < kColumns; ++held)
#pragma unroll 1
        for (unsigned i = held; i < (Held < 1 ? ring.count : min(held + 1, ring.count)); ++i) {
          auto& column = columns[held];
          if constexpr (Held < 1) column.load(p, ring.first + i, lane);
          const PackedArrays copied = Ring::Stage::copied(weights, ring.wait());
          LaneUnit<T, Format> unit;
          const PackedPlace place = {0, 0, (ring.first + i) * 2, tile, lane / 4, 0};
          unit.load(copied, place, lane, ring.blocks);
          ring.advance(weights);
          unit.multiply(column, lane, table, rows);
        }
      keep_rows(rows, lane, parts + (t * Warps + warp) * 16);
    }
    __syncthreads();
    add_kept_tiles<T, Act, Warps>(p, first, parts);
  }
}
