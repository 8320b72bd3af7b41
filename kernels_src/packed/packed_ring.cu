// Products of 2 to 16 rows with quantised weights on Hopper: blocks are persistent, and the next
// stages are loaded into shared memory during the products. Each warp has a part of k, whose x
// stays in registers.
#include <kernwright/packed_columns.cuh>
#include <kernwright/packed_tiles.cuh>

using namespace kernwright;

/// p.splits blocks of a cluster share k; each warp has up to `Units` units of it. Dynamic shared
/// memory: the table of pairs of codes, TileStages, TileAccumulators, the sums of x.
template <typename T, typename Format, typename Act, int Warps, int Stages, int ColTiles, int Units>
__global__ void __launch_bounds__(Warps * 32, 16 / Warps)
    packed_ring(const __grid_constant__ SkinnyProblem p,
                const __grid_constant__ PackedArrays weights) {
  using Ring = TileStages<Format, Warps * Units, Stages>;
  using Columns = HeldColumns<T, Format, ColTiles, Units>;
  using Accumulators = TileAccumulators<Warps, ColTiles>;
  constexpr bool kTable = TakesPairTable<typename Format::Codes>::kValue;
  extern __shared__ __align__(128) unsigned char memory[];
  __shared__ Mbarrier full[Stages];
  unsigned char* const stages = memory + (kTable ? PairTable::kBytes : 0);
  Accumulators tile_accumulators(reinterpret_cast<float*>(stages + Ring::kBytes));
  const unsigned warp = __shfl_sync(~0u, threadIdx.x / 32, 0), lane = threadIdx.x % 32;
  pdl_launch_dependents();
  Ring ring;
  ring.start(p, weights, stages, full);
  if (threadIdx.x == 0) ring.template fill<false>(weights);
  if constexpr (kTable) PairTable::fill<typename Format::Codes>(memory);
  pdl_launch_then_wait();
  // A warp's units, in the block's part of k.
  const unsigned first = ring.count * warp / Warps, end = ring.count * (warp + 1) / Warps;
  Columns columns;
  columns.lane = lane;
  columns.mask = CodeMask<typename Format::Codes>::kValue * gridDim.z;  // which is 1
  columns.table.lane_table = memory + lane * 4;
  columns.x_sums = reinterpret_cast<typename Columns::Pair*>(tile_accumulators.end(p.splits) +
                                                             warp * Columns::kSums);
  columns.load(p, ring.first + first);
  if (threadIdx.x == 0) ring.template fill<true>(weights);
  if constexpr (Format::kOffset) columns.add();
  __syncthreads();
  for (unsigned tile = blockIdx.x; tile < ring.tiles; tile += gridDim.x) {
    ScalesAhead<Format> ahead[2 * Units];
#pragma unroll
    for (unsigned i = 0; i < 2 * Units; ++i) {
      ahead[i].start(weights, weights.table);
      ahead[i].load(weights, tile, (ring.first + first) * 2 + i);
    }
    const PackedArrays copied = Ring::Stage::copied(weights, ring.wait());
    columns.clear();
#pragma unroll
    for (unsigned i = 0; i < 2 * Units; ++i) {
      const unsigned block = first * 2 + i, at = ring.first * 2 + block;
      if (first + i / 2 >= end || at >= ring.blocks) break;
      Format raw[2];
#pragma unroll
      for (unsigned half = 0; half < 2; ++half)
        raw[half] = ahead[i].format(copied, {block, block / 2, at, tile, lane / 4, half}, lane);
      columns.multiply(raw, i / 2, i % 2);
    }
    tile_accumulators.spread(warp, lane, columns.accumulators);
    __syncthreads();
    ring.advance(weights, tile);
    tile_accumulators.template add<T, Act>(p, tile);
  }
  leave_cluster(p.splits);
}
