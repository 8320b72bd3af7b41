// Products of one row with quantised weights: a block has a tile of 16 rows of the weights, and the
// warps share k. The weights go straight into registers.
#include <kernwright/packed_lanes.cuh>
#include <kernwright/packed_ring.cuh>

using namespace kernwright;

/// A warp has `Unroll` consecutive units of k, then units behind the units of all warps. With
/// p.ahead the tile is prefetched into L2 while the previous kernel still runs (PDL). Dynamic
/// shared memory: the table of pairs of codes.
template <typename T, typename Format, typename Act, int Warps, int Unroll>
__global__ void __launch_bounds__(Warps * 32, 32 / (Warps * Unroll))
    packed_row(const __grid_constant__ SkinnyProblem p,
               const __grid_constant__ PackedArrays weights) {
  constexpr bool kTable = TakesPairTable<typename Format::Codes>::kValue;
  extern __shared__ __align__(128) unsigned char memory[];
  __shared__ float parts[Warps * 16];
  const unsigned warp = __shfl_sync(~0u, threadIdx.x / 32, 0), lane = threadIdx.x % 32;
  const unsigned tile = blockIdx.x, blocks = weights.blocks, units = (blocks + 1) / 2;
  const UInt64 block = static_cast<UInt64>(tile) * blocks;
  if (p.ahead > 0 && threadIdx.x == 0) {
    PackedStage<Format>::each(
        weights, block, block / 2, blocks,
        [](unsigned, const UInt8* from, unsigned bytes) { fetch_bulk(from, bytes); });
  }
  if constexpr (kTable) {
    PairTable::fill<typename Format::Codes>(memory);
    __syncthreads();
  }
  pdl_launch_then_wait();
  const unsigned mask = CodeMask<typename Format::Codes>::kValue * p.splits;  // splits is 1
  const PairTable table = {memory + lane * 4};
  float rows[2] = {};
#pragma unroll 1
  for (unsigned first = warp * Unroll; first < units; first += Warps * Unroll) {
    LaneUnit<T, Format> unit[Unroll];
    LaneColumn<T, Format> column[Unroll];
#pragma unroll
    for (int i = 0; i < Unroll; ++i) {
      const unsigned at = min(first + i, units - 1);
      const PackedPlace place = {block + at * 2, block / 2 + at, at * 2, tile, lane / 4, 0};
      unit[i].template load<false>(weights, place, lane, blocks);
    }
    __syncwarp();  // all loads are on their way before the first of them is waited for
#pragma unroll
    for (int i = 0; i < Unroll; ++i) column[i].load(p, first + i, lane);
#pragma unroll
    for (int i = 0; i < Unroll; ++i) {
      if (first + i >= units) break;
      if constexpr (Format::kOffset) column[i].add();
      unit[i].multiply(column[i], lane, mask, table, rows);
    }
  }
  keep_rows(rows, lane, parts + warp * 16);
  add_ring_warps<T, Act, Warps>(p, tile, parts);
}
