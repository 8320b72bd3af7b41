// The blocks of a product by wgmma: one warp copies, warpgroups multiply and run the epilogue.
// Compute capability 9.0 alone, in code for sm_90a.
#pragma once

#include <kernwright/overlap.cuh>
#include <kernwright/product_store.cuh>
#include <kernwright/wgmma_accumulators.cuh>
#include <kernwright/yield.cuh>

namespace kernwright {

/// The parts of a product. A kernel's own struct adds four: kBytesBeside of a stage, load_beside(),
/// which loads them, multiply_tile(), which adds up a warpgroup's part of a tile, and kLeavesOut:
/// it leaves out products of tiles at edges as TileLoads does loads.
template <typename InType, typename OutType, typename TileType, typename OrderType, Store store,
          typename FinishType>
struct ProductTypes {
  using In = InType;
  using Out = OutType;
  using Tile = TileType;
  using Order = OrderType;
  using Finish = FinishType;
  using Accumulator = typename ProductAccumulator<In>::Type;
  using Accumulators = Accumulator[TileType::kWaves][TileType::kAccumulators];
  struct Kept {};  // from tile to tile, by a thread
  static constexpr Store kStore = store;
  static constexpr int kStagedTiles = TileType::kStagedTiles;
  static constexpr bool kStagesAll = false;   // all TMA tiles of the result, if they fit
  static constexpr bool kTakesAlpha = false;  // multiply_tile() multiplies by it
  static constexpr bool kPlansAhead = false;  // and asks for the next tile
  static constexpr bool kStays = false;  // accumulators are in registers of their own to the end
};

/// A thread of a warpgroup that multiplies.
struct Multiplier {
  int group, warp, lane;
};

/// A tile's part of k, in steps, and the elements of the last step. The group's rows and the tile's
/// columns inside the result, or more; no rows: 0 or less. The first of these rows. The number of
/// the product in its batch, or of the group of rows.
struct Part {
  int begin, steps, last, rows, columns, top, batch;
};

/// Split-K in a cluster: a warp sends its accumulators to the block with the epilogue, or adds the
/// received ones in the order of the blocks. Returns whether the warp has the full accumulators.
/// The order of additions is fixed.
template <typename Work>
__device__ __forceinline__ bool reduce_split_k(const Shared<Work>& shared, int part, int warp,
                                               int lane,
                                               typename Work::Accumulators& accumulators) {
  using TileType = typename Work::Tile;
  using Owned = Owners<TileType>;
  const int owner = Owned::owner(warp), place = warp - Owned::first_warp(owner);
  unsigned char* received = shared.received + place * Owned::kWarpBytes + lane * 16;
  constexpr int kNext = Owned::kMost * Owned::kWarpBytes;  // to what the next block sends
  wait_for_cluster();
  if (owner != part) {
    const unsigned to =
        address_in_block(shared_address(received), owner) + (part - (part > owner ? 1 : 0)) * kNext;
    const unsigned full = address_in_block(shared_address(&shared.all_received()), owner);
#pragma unroll
    for (int i = 0; i < TileType::kWaves * TileType::kAccumulators; i += 4) {
      unsigned four[4];
#pragma unroll
      for (int k = 0; k < 4; ++k)
        memcpy(&four[k],
               &accumulators[i / TileType::kAccumulators][i % TileType::kAccumulators + k], 4);
      send_four(to + i * 128, four, full);
    }
    return false;
  }
  shared.all_received().wait(0);
#pragma unroll 1
  for (int from = 0; from + 1 < TileType::kParts; ++from, received += kNext) {
#pragma unroll
    for (int i = 0; i < TileType::kWaves * TileType::kAccumulators; i += 4) {
      const auto four =
          *reinterpret_cast<const Pack<typename Work::Accumulator, 4>*>(received + i * 128);
#pragma unroll
      for (int k = 0; k < 4; ++k)
        accumulators[i / TileType::kAccumulators][i % TileType::kAccumulators + k] += four.value[k];
    }
  }
  return true;
}

/// Whether blocks take tiles dynamically: tiles at the ends of groups take less time.
template <typename TileType, typename Schedule>
constexpr bool kDeals =
    !kYields && Schedule::kGrouped && TileType::kCluster == 1 && !TileType::kAlternates;

/// The tiles of a kernel that yields. The producer is at most the stages and two tiles in front of
/// any warpgroup, and one more that takes turns with another.
template <typename TileType>
using Tickets = YieldTickets<TileType::kCluster, TileType::kStages + 3>;

constexpr int kFetchedSteps = 3;

/// The first steps of b's tile to the second level of cache, before the kernel in front has ended.
/// By one thread. More steps would delay the loads that follow.
template <typename Work, typename Schedule>
__device__ __forceinline__ void fetch_columns(const OperandMaps& maps, const Schedule& schedule,
                                              unsigned rank) {
  using TileType = typename Work::Tile;
  constexpr int kDepth = kLine / static_cast<int>(sizeof(typename Work::In));
  const Place at = schedule.place(blockIdx.x / TileType::kParts);
  const Depth deep = block_depth<TileType>(schedule, at, rank, kDepth);
  for (int step = 0; step < min(kFetchedSteps, deep.steps); ++step) {
    tma_prefetch(maps.b, {deep.begin + step * kDepth, at.column * TileType::kColumns, 0, 0});
  }
}

/// Whether lines behind the last lines of a tile lie outside of the matrix. Behind a group's rows
/// lie the rows of the next group.
template <typename Schedule>
constexpr bool kHasEdges = !Schedule::kGrouped && !Schedule::kInside;

/// A tile of this block: its position, its part of k in elements, its first column.
struct PlannedTile {
  Place at;
  Depth deep;
  int column;
  bool exists;
};

/// A warpgroup that multiplies, tile after tile.
template <typename Work, typename Schedule>
__device__ __forceinline__ void multiply(const Work& work, const Shared<Work>& shared,
                                         const Result& result, const Schedule& schedule,
                                         unsigned rank, int first, int apart, int tiles,
                                         const Tickets<typename Work::Tile>& tickets) {
  using TileType = typename Work::Tile;
  using Finish = typename Work::Finish;
  constexpr int kDepth = kLine / static_cast<int>(sizeof(typename Work::In));
  const Problem& problem = schedule.sizes;
  const int thread = threadIdx.x - 128;
  const Multiplier self{thread / 128, thread / 32 % 4, thread % 32};
  unsigned char* staging = shared.staging + thread / 32 * Shared<Work>::kWarpStaging;
  const float one = one_scale<Finish>(result.epilogue);
  Ring<TileType::kStages> ring;
  int turn = 0, number = 0;
  const auto has = [&](int& tile) {
    if constexpr (kYields) {
      tile = tickets.read(number);
      return tile < tiles;
    } else if constexpr (kDeals<TileType, Schedule>) {
      shared.full[ring.stage].wait(ring.parity);
      tile = schedule.dealt[ring.stage];
      return tile >= 0;
    } else {
      return tile < tiles;
    }
  };
  const auto plan = [&](int tile) {
    const Place at = schedule.place(tile);
    return PlannedTile{at, block_depth<TileType>(schedule, at, rank, kDepth),
                       column_tile<TileType>(at, rank) * kResultColumns<TileType, Finish>, true};
  };
  // Divisions take time, which products hide.
  constexpr bool kAhead =
      Work::kPlansAhead && !kDeals<TileType, Schedule> && !TileType::kAlternates && !kYields;
  PlannedTile next{};
  typename Work::Kept kept{};
  for (int tile = first; has(tile); tile += apart, ++number) {
    const PlannedTile now = kAhead && number > 0 ? next : plan(tile);
    const Place at = now.at;
    Depth deep = now.deep;
    asm volatile("" : "+r"(deep.steps));  // else the compiler makes it anew in each step
    if (TileType::kAlternates && number % 2 != self.group) {
      ring.advance(deep.steps);
      continue;
    }
    if (TileType::kAlternates) shared.order[self.group].wait((number / 2 + self.group + 1) & 1);
    typename Work::Accumulators accumulators;
    const int column = now.column;
    const int group_top = top_row<TileType>(schedule, at, rank) +
                          (TileType::kAlternates ? 0 : self.group * TileType::kGroupRows);
    Part part{deep.begin / kDepth,      deep.steps, kDepth,  schedule.end_row(at) - group_top,
              problem.columns - column, group_top,  at.batch};
    if (Schedule::kInside) {
      part.last = schedule.end_depth(at, 0) - deep.begin - (deep.steps - 1) * kDepth;
    }
    if constexpr (Work::kPlansAhead) {
      work.multiply_tile(shared, part, column, self, ring, accumulators, kept, [&] {
        next = kAhead && tile + apart < tiles ? plan(tile + apart) : PlannedTile{};
        return next;
      });
    } else {
      work.multiply_tile(shared, part, column, self, ring, accumulators);
    }
    if constexpr (TileType::kParts > 1) {
      if (!reduce_split_k(shared, static_cast<int>(rank), thread / 32, self.lane, accumulators))
        break;
    }
    const int z = schedule.matrix(at);
    const int top = group_top + self.warp * kWarpRows;
    TileEpilogueValues ending = result.epilogue;
    if (Work::kTakesAlpha) ending.alpha = 1;
    if (Schedule::kGrouped) ending = batch_epilogue<Finish>(ending, at.batch, problem.columns);
    const Target to{result.map, result.out, ending, problem, schedule.end_row(at)};
    const TileFactors<TileType, Finish> scales(ending, problem, top, column, self.lane, one);
    if constexpr (Work::kStore == kDirect) {
#pragma unroll
      for (int wave = 0; wave < TileType::kWaves; ++wave) {
        store_direct<TileType, typename Work::Out, Finish>(accumulators[wave], to, scales, wave,
                                                           top + wave * 64, column, z, self.lane);
      }
    } else if constexpr (sizeof(typename Work::Out) == 4) {
      static_assert(!Schedule::kGrouped);  // its TMA tiles would reach the next group
#pragma unroll
      for (int wave = 0; wave < TileType::kWaves; ++wave) {
        store_wide_rows<TileType, typename Work::Out, Finish>(accumulators[wave], staging, to,
                                                              scales, wave, top + wave * 64, column,
                                                              z, self.lane, turn);
      }
    } else if constexpr (kStoresAll<Work>) {
      store_all_rows<TileType, typename Work::Out, Schedule::kGrouped, Finish>(
          accumulators, staging, to, scales, top, column, z, self.lane);
    } else {
      store_rows<TileType, typename Work::Out, Work::kStore, Schedule::kGrouped, Finish,
                 Work::kStays>(accumulators, staging, to, scales, top, column, z, self.lane, turn);
    }
  }
  if (kStoresAll<Work> ? is_elected() : Work::kStore == kByCopies && self.lane == 0) {
    wait_for_store_reads<0>();
  }
}

/// All of a kernel. TileType::kThreads threads; blocks in clusters of TileType::kCluster. `given`:
/// a Problem, or one of groups (product_tiles.cuh). `words`: of a kernel that yields.
template <typename Work, typename Given>
__device__ __forceinline__ void run_product(const Work& work, unsigned char* storage,
                                            const OperandMaps& maps, const Result& result,
                                            const Given& given, const YieldWords& words) {
  static_assert(!kYields || Work::Tile::kParts == 1);  // its blocks have one tile each
  using TileType = typename Work::Tile;
  const Shared<Work> shared(storage);
  const Problem& problem = ScheduleTraits<Given>::sizes(given);
  const typename ScheduleTraits<Given>::Type schedule(given, shared.table());
  const unsigned rank = TileType::kCluster * TileType::kParts == 1 ? 0 : cluster_rank();
  const Tickets<TileType> tickets;
  if (threadIdx.x == 0) {
    tickets.init();
    prefetch(maps.a);
    prefetch(maps.b);
    if (Work::kStore == kByCopies) prefetch(result.map);
    constexpr int kTakers =
        (TileType::kAlternates ? 1 : TileType::kGroups) * 4 * TileType::kCluster;
    for (int stage = 0; stage < TileType::kStages; ++stage) {
      shared.full[stage].init(1);
      shared.empty[stage].init(kTakers);
    }
    if constexpr (TileType::kAlternates) {
      for (int group = 0; group < 2; ++group) shared.order[group].init(4);
    }
    if constexpr (TileType::kParts > 1) {
      shared.all_received().init(1);
      Mbarrier::publish();
      shared.all_received().arrive_expecting(Owners<TileType>::bytes(static_cast<int>(rank)));
    } else {
      Mbarrier::publish();
    }
  }
  if constexpr (TileType::kParts > 1) arrive_in_cluster();
  constexpr bool kPrepares = ScheduleTraits<Given>::Type::kPrepares;
  // Measured with up to 64 rows, where most time goes into reading b.
  constexpr bool kFetches = TileType::kParts > 1 && TileType::kRows == 64 && !kPrepares &&
                            !Work::Order::kB && !Work::Finish::kGated &&
                            sizeof(typename Work::In) == 2;
  if constexpr (kFetches) {
    if (threadIdx.x == 32 && problem.row_tiles == 1 && problem.batches == 1) {
      fetch_columns<Work>(maps, schedule, rank);
    }
  }
  if constexpr (kPrepares) {
    pdl_wait();
    if (threadIdx.x / 32 == 1) schedule.prepare(TileType::kRows * TileType::kSharersB);
  }
  bool meets = false;
  if constexpr (kHasEdges<typename ScheduleTraits<Given>::Type>) {
    meets = clear_edges(shared, problem);
    if (TileType::kCluster == 1 && meets) __syncthreads();
  }
  // The producer warp initialised the barriers, so it begins before all warps have seen them.
  constexpr bool kBegins = TileType::kCluster == 1 && !kPrepares;
  if constexpr (kBegins) {
    constexpr int kMeeting = 3, kThreads = 32 + TileType::kGroups * 128;
    __syncwarp();
    if (threadIdx.x < 32) {
      asm volatile("bar.arrive %0, %1;" ::"n"(kMeeting), "n"(kThreads) : "memory");
    } else if (threadIdx.x >= 128) {
      asm volatile("bar.sync %0, %1;" ::"n"(kMeeting), "n"(kThreads) : "memory");
    }
  } else if constexpr (TileType::kCluster == 1) {
    __syncthreads();
  } else if constexpr (kPrepares) {
    cluster_sync();
  } else {
    if (meets) {
      release_to_cluster();
    } else {
      arrive_in_cluster();
    }
    wait_for_cluster();
  }
  constexpr int kBlocks = TileType::kCluster * TileType::kParts;
  const int first = blockIdx.x / kBlocks, apart = gridDim.x / kBlocks;
  const int tiles = schedule.count();
  if (threadIdx.x < 128) {
    if constexpr (TileType::kGroups == 2) asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if constexpr (TileType::kGroups == 3) asm volatile("setmaxnreg.dec.sync.aligned.u32 32;");
    if (__shfl_sync(~0u, threadIdx.x / 32, 0) == 0 && is_elected()) {
      Ring<TileType::kStages> ring;
      constexpr bool kAsks = kDeals<TileType, typename ScheduleTraits<Given>::Type>;
      int next = 0, number = 0;
      const auto following = [&](int tile) {
        if constexpr (kYields) {
          return tickets.take(words, tiles, rank, number++);
        } else {
          return kAsks ? next : tile + apart;
        }
      };
      if constexpr (kYields) pdl_wait();  // for the words
      for (int tile = kYields ? following(0) : first; tile < tiles; tile = following(tile)) {
        if constexpr (kAsks) {
          next = apart + schedule.take(tiles);
          shared.empty[ring.stage].wait(ring.parity ^ 1);
          schedule.dealt[ring.stage] = tile;
        }
        const Place at = schedule.place(tile);
        pdl_wait();
        constexpr int kDepth = kLine / static_cast<int>(sizeof(typename Work::In));
        constexpr bool kExact = kHasEdges<typename ScheduleTraits<Given>::Type>;
        load_tile<kExact>(work, shared, maps, problem, at, top_row<TileType>(schedule, at, rank),
                          schedule.end_row(at), block_depth<TileType>(schedule, at, rank, kDepth),
                          rank, ring);
      }
      pdl_launch_dependents();  // not before: it would take the places that this one leaves free
      if constexpr (TileType::kCluster > 1) wait_for_all_stages(shared, ring);
      if constexpr (kAsks) {
        shared.empty[ring.stage].wait(ring.parity ^ 1);
        schedule.dealt[ring.stage] = -1;
        shared.full[ring.stage].arrive();
      }
    }
    if constexpr (TileType::kParts > 1) wait_for_cluster();
  } else {
    if constexpr (TileType::kGroups == 2) asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    if constexpr (TileType::kGroups == 3) asm volatile("setmaxnreg.inc.sync.aligned.u32 160;");
    pdl_wait();
    multiply(work, shared, result, schedule, rank, first, apart, tiles, tickets);
  }
}

}  // namespace kernwright
