// Products of some rows with quantised weights on Hopper: the weights are the rows of products by
// warpgroups (wgmma) and are decoded in registers, x are their columns in shared memory.
#include <kernwright/cluster_split_k.cuh>
#include <kernwright/packed_wgmma_rows.cuh>
#include <kernwright/unit_weights.cuh>

using namespace kernwright;

// Codes are whole numbers and exact, as in packed_product.cu: the accumulator of a group is
// multiplied with the scale in float32. Formats with minima have whole scales of groups: codes
// become weights in parts of a block's scale, which are rounded to x's type.
//
// A unit is two blocks of k. TMA tiles of x keep the order of k. Either lanes read codes in that
// order of k (Spread), or some warps permute x into the order of lanes.

/// A if kFirst, else B.
template <bool kFirst, typename A, typename B>
struct Either {
  using Type = A;
};
template <typename A, typename B>
struct Either<false, A, B> {
  using Type = B;
};

/// Warps of a block that arrange x.
__device__ constexpr int arrangers(bool spread, int col_tiles) {
  if (spread) return 0;
  return col_tiles == 8 ? 3 : 1;
}

/// Shared memory of a block: stages of a unit of x and of one of the rows of each warp of a team,
/// or later the accumulators of each team; four barriers for each stage, a word that is 0, tables
/// of scales and codes that take one.
template <typename Format, int Warps, int ColTiles, int Stages, int Teams>
struct PackedTiles {
  using Stage = PackedStage<Format>;
  static constexpr int kTeams = Teams;
  /// A team multiplies whole units, not a block of each unit. The team has separate stages, and
  /// keeps one while it begins the next.
  static constexpr bool kWhole = Format::Scales::kUnitScales;
  static_assert(!kWhole || (Stages % Teams == 0 && Stages > Teams));
  static constexpr unsigned kScalesTable = ScalesTable<typename Format::Scales>::kBytes;
  static constexpr int kRows = Warps * 16, kColumns = ColTiles * 8, kPitch = kRows + 4;
  using Unit = ArrangedUnit<kColumns>;
  static constexpr unsigned kBytes = (Unit::kBytes + Warps * Stage::kBytes + 1023) / 1024 * 1024;
  static constexpr unsigned kSumBytes = Teams * kColumns * kPitch * 4;
  static constexpr unsigned kData = Stages * kBytes > kSumBytes ? Stages* kBytes : kSumBytes;
  unsigned char* base;
  Mbarrier *full, *empty;     ///< of weights; of all
  Mbarrier *came, *arranged;  ///< of x, where warps work on it
  unsigned* zero;
  unsigned char *scales, *table, *words;

  __device__ explicit PackedTiles(unsigned char* at)
      : base(at),
        full(reinterpret_cast<Mbarrier*>(at + kData)),
        empty(full + Stages),
        came(empty + Stages),
        arranged(came + Stages),
        zero(reinterpret_cast<unsigned*>(arranged + Stages)),
        scales(reinterpret_cast<unsigned char*>(zero + 4)),
        table(scales + kScalesTable),
        words(table) {}  // no format has both
  __device__ unsigned char* x(int stage) const { return base + stage * kBytes; }
  __device__ unsigned char* weights(int stage, int warp) const {
    return x(stage) + Unit::kBytes + warp * Stage::kBytes;
  }
  __device__ float* accumulators() const { return reinterpret_cast<float*>(base); }
  __device__ static unsigned warp_team(unsigned warp) { return Teams == 1 ? 0 : warp / Warps; }
  /// The bytes of a warp in a stage; `Read`: the format as a reader of codes.
  template <typename Read>
  __device__ PackedArrays arrays(const PackedArrays& weights, int stage, unsigned warp) const {
    return PackedStage<Read>::copied(weights, this->weights(stage, warp % Warps));
  }
};

/// The stage of unit `unit` with the rows of a lane; action() as in PackedStage::each().
template <typename Format, typename Action>
__device__ __forceinline__ void each_unit_array(const PackedArrays& weights, unsigned tile,
                                                unsigned unit, const Action& action) {
  const UInt64 first = static_cast<UInt64>(tile) * weights.blocks + unit * 2;
  PackedStage<Format>::each(weights, first, first / 2, min(2, weights.blocks - unit * 2), action);
}

/// Units `begin` to `end` of k, by one warp: each lane has the rows of a warp of a team.
template <typename Format, typename TilesType, int Warps, int Stages, bool kArranges>
__device__ __forceinline__ void copy_units(const TilesType& shared, const TensorMap& map_x,
                                           const PackedArrays& weights, unsigned first_m,
                                           unsigned tile, unsigned begin, unsigned end) {
  const unsigned lane = threadIdx.x % 32;
  Ring<Stages> ring;
#pragma unroll 1
  for (unsigned unit = begin; unit < end; ++unit, ring.advance()) {
    Mbarrier& full = shared.full[ring.stage];
    Mbarrier& came = kArranges ? shared.came[ring.stage] : full;
    shared.empty[ring.stage].wait(ring.parity ^ 1);
    if (lane == 0) {
      unsigned bytes = 0;
      each_unit_array<Format>(weights, tile, unit,
                              [&](unsigned, const UInt8*, unsigned size) { bytes += size; });
      const unsigned table = unit == begin ? TilesType::kScalesTable : 0;
      if (kArranges) came.arrive_expecting(TilesType::Unit::kBytes);
      full.arrive_expecting(bytes * Warps + table + (kArranges ? 0 : TilesType::Unit::kBytes));
      if (table > 0) copy_bulk(shared.scales, weights.table, table, full);
    }
    __syncwarp();
    if (lane < 4) {
      const int k = static_cast<int>(unit * 256 + lane * 64);
      tma_load(shared.x(ring.stage) + lane * TilesType::Unit::kLines, map_x,
               {k, static_cast<int>(first_m), 0, 0}, came);
    }
    if (lane < Warps) {
      unsigned char* const here = shared.weights(ring.stage, lane);
      each_unit_array<Format>(weights, tile, unit,
                              [&](unsigned to, const UInt8* from, unsigned size) {
                                copy_bulk(here + to, from, size, full);
                              });
    }
  }
}

/// Permutes x of units `begin` to `end`, by warp `part` of the permuting warps.
template <int Run, int Stages, int Parts, typename TilesType>
__device__ __forceinline__ void arrange_units(const TilesType& shared, unsigned part,
                                              unsigned begin, unsigned end) {
  const unsigned lane = threadIdx.x % 32;
  Ring<Stages> ring;
#pragma unroll 1
  for (unsigned unit = begin; unit < end; ++unit, ring.advance()) {
    shared.came[ring.stage].wait(ring.parity);
    arrange_columns<TilesType::kColumns, Run, Parts>(shared.x(ring.stage), part, lane);
    show_to_copies();  // and to the products
    __syncwarp();
    if (lane == 0) shared.arranged[ring.stage].arrive();
  }
}

/// The accumulators of a warp's rows over units `begin` to `end`. Of two teams each has a block of
/// every unit.
template <typename Format, int Stages, bool kArranges, typename TilesType, typename Rows>
__device__ __forceinline__ void multiply_blocks(const TilesType& shared,
                                                const PackedArrays& weights, unsigned warp,
                                                unsigned tile, unsigned begin, unsigned end,
                                                Rows& rows) {
  const unsigned lane = threadIdx.x % 32, team = TilesType::warp_team(warp);
  Ring<Stages> ring;
  ScalesAhead<Format> ahead;
  ahead.start(weights, reinterpret_cast<const float*>(shared.scales));
  ahead.load(weights, tile, begin * 2 + team);
#pragma unroll 1
  for (unsigned unit = begin; unit < end; ++unit, ring.advance()) {
    shared.full[ring.stage].wait(ring.parity);
    if (kArranges) shared.arranged[ring.stage].wait(ring.parity);
    const PackedArrays copied = shared.template arrays<Format>(weights, ring.stage, warp);
    const unsigned x = shared_address(shared.x(ring.stage));
#pragma unroll 1
    for (unsigned u = team; u < min(2, weights.blocks - unit * 2); u += TilesType::kTeams) {
      Format raw[2];
#pragma unroll
      for (unsigned half = 0; half < 2; ++half) {
        const PackedPlace place = {u, 0, unit * 2 + u, tile, lane / 4, half};
        raw[half] = ahead.format(copied, place, lane);
      }
      ahead.load(weights, tile, unit * 2 + u + TilesType::kTeams);
      rows.multiply(raw, x + u * (2 * TilesType::Unit::kLines));
    }
    give_back<1>(shared.empty[ring.stage], lane);
  }
  rows.finish(weights);
}

/// The mainloop for formats whose units have one scale. Each of two teams has every second unit.
template <typename Format, int Stages, bool kArranges, typename TilesType, typename Rows>
__device__ __forceinline__ void multiply_units(const TilesType& shared, const PackedArrays& weights,
                                               unsigned warp, unsigned begin, unsigned end,
                                               Rows& rows) {
  const unsigned lane = threadIdx.x % 32, team = TilesType::warp_team(warp);
  Ring<Stages> ring;
  ring.advance(static_cast<int>(team));
  rows.words.memory = shared.words + warp * rows.words.kBytes;
  PackedArrays copied;
  unsigned unit = begin + team;
  const auto begin_unit = [&] {
    if (unit >= end) return;
    shared.full[ring.stage].wait(ring.parity);
    copied = shared.template arrays<Format>(weights, ring.stage, warp);
    rows.begin(copied);
  };
  begin_unit();
#pragma unroll 1
  while (unit < end) {
    const int stage = ring.stage;
    if (kArranges) shared.arranged[stage].wait(ring.parity);
    rows.multiply(copied, shared_address(shared.x(stage)), [&] {
      unit += TilesType::kTeams;
      ring.advance(TilesType::kTeams);
      begin_unit();
    });
    give_back<1>(shared.empty[stage], lane);
  }
}

/// Teams * Warps * 32 threads are consumers, 32 the producer, further warps permute x. A block has
/// 16 rows of the weights for each warp of a team and 8 * ColTiles rows of x; blocks of
/// neighbouring rows of x read equal rows of the weights. Split-K is in one cluster.
template <typename T, typename Format, typename Act, int Warps, int ColTiles, int Stages, int Teams,
          bool Spread>
__global__ void __launch_bounds__((Teams * Warps + 1 + arrangers(Spread, ColTiles)) * 32,
                                  ColTiles == 8 ? 1 : 16 / (Teams * Warps))
    packed_wgmma(const __grid_constant__ TensorMap map_x, const __grid_constant__ SkinnyProblem p,
                 const __grid_constant__ PackedArrays weights) {
  constexpr unsigned kAll = Teams * Warps, kParts = arrangers(Spread, ColTiles);
  static_assert(Teams <= 2);  // a unit has two blocks
  using TilesType = PackedTiles<Format, Warps, ColTiles, Stages, Teams>;
  using Read = typename Either<Spread, SpreadFormat<Format>, Itself<Format>>::Type::Type;
  extern __shared__ __align__(1024) unsigned char memory[];
  const TilesType shared(memory);
  const unsigned warp = __shfl_sync(~0u, threadIdx.x / 32, 0), lane = threadIdx.x % 32;
  const unsigned across = (p.m + TilesType::kColumns - 1) / TilesType::kColumns;
  const unsigned first_m = blockIdx.x % across * TilesType::kColumns;
  const unsigned first_n = blockIdx.x / across * TilesType::kRows;
  const unsigned units = (weights.blocks + 1) / 2, each = (units + p.splits - 1) / p.splits;
  const unsigned begin = min(blockIdx.y * each, units), end = min(begin + each, units);
  // Tiles beyond the last read the last: their accumulators are not stored.
  const unsigned tile_lane = warp < kAll ? warp % Warps : min(lane, Warps - 1);
  const unsigned tile = min(first_n / 16 + tile_lane, (p.n - 1) / 16);
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < Stages; ++stage) {
      shared.full[stage].init(1);
      shared.empty[stage].init(TilesType::kWhole ? Warps : kAll);
      if constexpr (kParts > 0) {
        shared.came[stage].init(1);
        shared.arranged[stage].init(kParts);
      }
    }
    *shared.zero = 0;
    Mbarrier::publish();
  } else if (threadIdx.x == kAll * 32) {
    prefetch(map_x);
  }
  if constexpr (TakesPairTable<typename Format::Codes>::kValue)
    PairTable::fill<typename Format::Codes>(shared.table);
  __syncthreads();
  pdl_launch_then_wait();
  using Rows = typename Either<TilesType::kWhole, UnitRows<T, Read, TilesType::kColumns>,
                               WgmmaRows<T, Read, TilesType::kColumns, kAll>>::Type;
  Rows rows;
  if (warp == kAll) {
    copy_units<Format, TilesType, Warps, Stages, (kParts > 0)>(shared, map_x, weights, first_m,
                                                               tile, begin, end);
  } else if (warp > kAll) {
    if constexpr (kParts > 0)
      arrange_units<Format::kRun, Stages, kParts>(shared, warp - kAll - 1, begin, end);
  } else {
    rows.start(lane, shared.zero, shared.table + lane * 4);
    if constexpr (TilesType::kWhole) {
      multiply_units<Read, Stages, (kParts > 0)>(shared, weights, warp, begin, end, rows);
    } else {
      multiply_blocks<Read, Stages, (kParts > 0)>(shared, weights, warp, tile, begin, end, rows);
    }
  }
  __syncwarp();
  __syncthreads();  // all have read the stages
  if (warp < kAll) spread_warp(shared, warp, lane, rows.accumulators);
  finish_cluster<T, Act>(p, 0, first_m, first_n, shared);
  leave_cluster(p.splits);
}
