// Products of some rows with quantised weights on Hopper: the weights are the rows of products by
// warpgroups (wgmma) and are decoded in registers, x are their columns in shared memory.
#include <kernwright/cluster_sums.cuh>
#include <kernwright/packed_wgmma_rows.cuh>

using namespace kernwright;

// Codes are whole numbers and exact, as in packed_product.cu: a group's sum is multiplied with its
// scale in float32. Formats with minima have whole scales of groups, which are multiplied with
// their codes; minima are multiplied with the sums of x by one more step of the tensor cores.
//
// A unit is two blocks of k. arrange_columns() brings x into the order that lanes have decoded
// weights in, swizzled as the products want it, so that a unit is one copy. After the unit come the
// sums of x for each group of 32, where the format has minima.

/// A thread has 32 of k of a row of x, of `p.m` rows and zeros up to a multiple of `Columns`.
template <typename T, int Columns, int Run, bool kSums>
__global__ void __launch_bounds__(128) arrange_columns(const __grid_constant__ SkinnyProblem p,
                                                       UInt8* out, unsigned units, unsigned rows) {
  using Unit = ArrangedUnit<Columns, kSums>;
  const unsigned i = blockIdx.x * 128 + threadIdx.x, parts = units * 8;
  const unsigned row = i / parts, part = i % parts, column = row % Columns;
  wait_for_previous();
  if (row >= rows) return;
  Words words[4];
#pragma unroll
  for (unsigned piece = 0; piece < 4; ++piece) {
    const UInt64 k = static_cast<UInt64>(part) * 32 + piece * 8;
    words[piece] = {};
    if (row < p.m && k < p.k)
      words[piece] =
          *reinterpret_cast<const Words*>(static_cast<const T*>(p.x) + row * p.x_row + k);
  }
  UInt8* const unit = out + (static_cast<UInt64>(row / Columns) * units + part / 8) * Unit::kBytes;
  UInt8* const line = unit + part % 8 / 2 * Unit::kLines + column * kLine;
#pragma unroll
  for (int piece = 0; piece < 4; ++piece) {
    // Pair `piece` of each of four lanes: 4 * lane + piece with runs of eight, else of half a part.
    Words made;
#pragma unroll
    for (int lane = 0; lane < 4; ++lane) {
      const int at = Run == 8 ? lane * 4 + piece : piece / 2 * 8 + lane * 2 + piece % 2;
      made.word[lane] = words[at / 4].word[at % 4];
    }
    const unsigned to = (part % 2 * 4 + piece) ^ (column % 8);
    *reinterpret_cast<Words*>(line + to * 16) = made;
  }
  if constexpr (kSums) {
    float sum = 0;
#pragma unroll
    for (int word = 0; word < 16; ++word) {
      const unsigned pair = words[word / 4].word[word % 4];
      sum +=
          to_compute(T{static_cast<UInt16>(pair)}) + to_compute(T{static_cast<UInt16>(pair >> 16)});
    }
    SumParts<T>::write(unit + Unit::sum_at(part % 8, column), sum);
  }
}

/// Shared memory of a block: stages of a unit of x and of one of the rows of each warp of a team,
/// or later the sums of each team; two barriers for each stage, a word that is 0, the tables of
/// scales and codes that take one.
template <typename Format, int Warps, int ColTiles, int Stages, int Teams>
struct PackedBoxes {
  using Stage = PackedStage<Format>;
  static constexpr bool kSums = Format::Scales::kMinima;
  static constexpr int kTeams = Teams;
  static constexpr unsigned kScalesTable = ScalesTable<typename Format::Scales>::kBytes;
  static constexpr int kRows = Warps * 16, kColumns = ColTiles * 8, kPitch = kRows + 4;
  using Unit = ArrangedUnit<kColumns, kSums>;
  static constexpr unsigned kBytes = (Unit::kBytes + Warps * Stage::kBytes + 1023) / 1024 * 1024;
  static constexpr unsigned kSumBytes = Teams * kColumns * kPitch * 4;
  static constexpr unsigned kData = Stages * kBytes > kSumBytes ? Stages* kBytes : kSumBytes;
  unsigned char* base;
  Mbarrier *full, *empty;
  unsigned* zero;
  unsigned char *scales, *table;

  __device__ explicit PackedBoxes(unsigned char* at)
      : base(at),
        full(reinterpret_cast<Mbarrier*>(at + kData)),
        empty(full + Stages),
        zero(reinterpret_cast<unsigned*>(empty + Stages)),
        scales(reinterpret_cast<unsigned char*>(zero + 4)),
        table(scales + kScalesTable) {}
  __device__ unsigned char* x(int stage) const { return base + stage * kBytes; }
  __device__ unsigned char* weights(int stage, int warp) const {
    return x(stage) + Unit::kBytes + warp * Stage::kBytes;
  }
  __device__ float* sums() const { return reinterpret_cast<float*>(base); }
};

/// Units `begin` to `end` of k, by one warp: each lane has the rows of a warp of a team.
template <typename Format, typename Of, int Warps, int Stages>
__device__ __forceinline__ void copy_units(const Of& shared, const PackedArrays& weights,
                                           const UInt8* x, unsigned tile, unsigned begin,
                                           unsigned end) {
  using Stage = PackedStage<Format>;
  const unsigned lane = threadIdx.x % 32;
  const UInt64 block = static_cast<UInt64>(tile) * weights.blocks;
  Ring<Stages> ring;
#pragma unroll 1
  for (unsigned unit = begin; unit < end; ++unit, ring.advance()) {
    Mbarrier& full = shared.full[ring.stage];
    const unsigned some = min(2, weights.blocks - unit * 2);
    const UInt64 first = block + unit * 2;
    shared.empty[ring.stage].wait(ring.parity ^ 1);
    if (lane == 0) {
      unsigned bytes = 0;
      Stage::each(weights, first, first / 2, some,
                  [&](unsigned, const UInt8*, unsigned size) { bytes += size; });
      const unsigned table = unit == begin ? Of::kScalesTable : 0;
      full.arrive_expecting(bytes * Warps + Of::Unit::kBytes + table);
      if (table > 0) copy_bulk(shared.scales, weights.table, table, full);
      copy_bulk(shared.x(ring.stage), x + static_cast<UInt64>(unit) * Of::Unit::kBytes,
                Of::Unit::kBytes, full);
    }
    __syncwarp();
    if (lane < Warps) {
      unsigned char* const here = shared.weights(ring.stage, lane);
      Stage::each(weights, first, first / 2, some,
                  [&](unsigned to, const UInt8* from, unsigned size) {
                    copy_bulk(here + to, from, size, full);
                  });
    }
  }
}

/// The sums of a warp's rows over units `begin` to `end`. Of two teams each has a block of every
/// unit.
template <typename Format, int Stages, typename Of, typename Rows, typename Ahead>
__device__ __forceinline__ void multiply_units(const Of& shared, const PackedArrays& weights,
                                               unsigned warp, unsigned tile, unsigned begin,
                                               unsigned end, Rows& rows, Ahead& ahead) {
  const unsigned lane = threadIdx.x % 32, team = Of::kTeams == 1 ? 0 : warp / (Of::kRows / 16);
  Ring<Stages> ring;
  rows.lane = lane;
  rows.zero_at = shared_address(shared.zero);
  rows.table.of_lane = shared.table + lane * 4;
#pragma unroll
  for (float& sum : rows.sums) sum = 0;
  ahead.start(weights, reinterpret_cast<const float*>(shared.scales));
  ahead.load(weights, tile, begin * 2 + team);
#pragma unroll 1
  for (unsigned unit = begin; unit < end; ++unit, ring.advance()) {
    shared.full[ring.stage].wait(ring.parity);
    const PackedArrays copied =
        PackedStage<Format>::copied(weights, shared.weights(ring.stage, warp % (Of::kRows / 16)));
    const unsigned x = shared_address(shared.x(ring.stage));
#pragma unroll 1
    for (unsigned u = team; u < min(2, weights.blocks - unit * 2); u += Of::kTeams) {
      Format raw[2];
#pragma unroll
      for (unsigned half = 0; half < 2; ++half) {
        const PackedPlace place = {u, 0, unit * 2 + u, tile, lane / 4, half};
        raw[half] = ahead.format(copied, place, lane);
      }
      ahead.load(weights, tile, unit * 2 + u + Of::kTeams);
      rows.multiply(raw, x + u * (2 * Of::Unit::kLines),
                    x + Of::Unit::kProducts + u * Of::Unit::kBlockSums);
    }
    give_back<1>(shared.empty[ring.stage], lane);
  }
  rows.finish(weights);
}

/// Teams * Warps * 32 threads multiply, 32 copy. A block has 16 rows of the weights for each warp
/// of a team and 8 * ColTiles rows of x; blocks of neighbouring rows of x have the same rows of the
/// weights. The splits of k are one cluster. p.x: what arrange_columns() made.
template <typename T, typename Format, typename Act, int Warps, int ColTiles, int Stages, int Teams>
__global__ void __launch_bounds__(Teams* Warps * 32 + 32, ColTiles == 8 ? 1 : 16 / (Teams * Warps))
    packed_wgmma(const __grid_constant__ SkinnyProblem p,
                 const __grid_constant__ PackedArrays weights) {
  constexpr unsigned kAll = Teams * Warps;
  static_assert(Teams <= 2);  // a unit has two blocks
  using Of = PackedBoxes<Format, Warps, ColTiles, Stages, Teams>;
  extern __shared__ __align__(1024) unsigned char memory[];
  const Of shared(memory);
  const unsigned warp = __shfl_sync(~0u, threadIdx.x / 32, 0), lane = threadIdx.x % 32;
  const unsigned across = (p.m + Of::kColumns - 1) / Of::kColumns;
  const unsigned first_m = blockIdx.x % across * Of::kColumns;
  const unsigned first_n = blockIdx.x / across * Of::kRows;
  const unsigned units = (weights.blocks + 1) / 2, each = (units + p.splits - 1) / p.splits;
  const unsigned begin = min(blockIdx.y * each, units), end = min(begin + each, units);
  // Tiles beyond the last read the last: their sums are not stored.
  const unsigned of_lane = warp < kAll ? warp % Warps : min(lane, Warps - 1);
  const unsigned tile = min(first_n / 16 + of_lane, (p.n - 1) / 16);
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < Stages; ++stage) {
      shared.full[stage].init(1);
      shared.empty[stage].init(kAll);
    }
    *shared.zero = 0;
    Mbarrier::publish();
  }
  if constexpr (TakesPairTable<typename Format::Codes>::kValue) PairTable::fill<T>(shared.table);
  __syncthreads();
  wait_for_previous();
  WgmmaRows<T, Format, Of::kColumns, kAll> rows;
  if (warp == kAll) {
    const UInt8* const x = static_cast<const UInt8*>(p.x) +
                           static_cast<UInt64>(blockIdx.x % across) * units * Of::Unit::kBytes;
    copy_units<Format, Of, Warps, Stages>(shared, weights, x, tile, begin, end);
  } else {
    ScalesAhead<Format> ahead;
    multiply_units<Format, Stages>(shared, weights, warp, tile, begin, end, rows, ahead);
  }
  __syncwarp();
  __syncthreads();  // all have read the stages
  if (warp < kAll) spread_warp_sums(shared, warp, lane, rows.sums);
  finish_cluster<T, Act>(p, 0, first_m, first_n, shared);
  leave_cluster(p.splits);
}
