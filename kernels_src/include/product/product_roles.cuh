// The blocks of a product by wgmma: one warp copies, warpgroups multiply and end their sums.
// Compute capability 9.0 alone, in code for sm_90a.
#pragma once

#include <kernwright/product_store.cuh>
#include <kernwright/wgmma_sums.cuh>

namespace kernwright {

/// The parts of a product. A kernel's own struct adds four: kBytesBeside of a stage, load_beside(),
/// which loads them, multiply_tile(), which sums a warpgroup's part of a tile, and kLeavesOut: it
/// leaves out products of tiles at edges as TileBoxes does loads.
template <typename InType, typename OutType, typename OfType, typename OrderType, Store store,
          typename FinishType>
struct ProductTypes {
  using In = InType;
  using Out = OutType;
  using Of = OfType;
  using Order = OrderType;
  using Finish = FinishType;
  using Sum = typename SumOf<In>::Type;
  using Sums = Sum[Of::kWaves][Of::kSums];
  static constexpr Store kStore = store;
};

/// A thread of a warpgroup that multiplies.
struct Multiplier {
  int group, warp, lane;
};

/// A tile's part of the inner dimension, in steps, and the elements of the last one. The group's
/// rows and the tile's columns that lie inside the result, or more; no rows: 0 or less. The first
/// of those rows. The number of the product in its batch, or of the group of rows.
struct Part {
  int begin, steps, last, rows, columns, top, batch;
};

/// A warpgroup that multiplies, tile after tile.
template <typename Work, typename Schedule>
__device__ __forceinline__ void multiply(const Work& work, const Shared<Work>& shared,
                                         const Result& result, const Schedule& schedule,
                                         unsigned rank, int first, int apart, int tiles) {
  using Of = typename Work::Of;
  using Finish = typename Work::Finish;
  constexpr int kDepth = kLine / static_cast<int>(sizeof(typename Work::In));
  const Problem& of = schedule.of;
  const int thread = threadIdx.x - 128;
  const Multiplier self{thread / 128, thread / 32 % 4, thread % 32};
  unsigned char* staging = shared.staging + thread / 32 * Shared<Work>::kStagingOfWarp;
  Ring<Of::kStages> ring;
  int turn = 0, number = 0;
  for (int tile = first; tile < tiles; tile += apart, ++number) {
    const Place at = schedule.place(tile);
    Depth deep = schedule.depth(at, kDepth);
    asm volatile("" : "+r"(deep.steps));  // else the compiler makes it anew in each step
    if (Of::kAlternates && number % 2 != self.group) {
      ring.advance(deep.steps);
      continue;
    }
    if (Of::kAlternates) shared.order[self.group].wait((number / 2 + self.group + 1) & 1);
    typename Work::Sums sums;
    const int column = at.column * kColumnsOf<Of, Finish>;
    const int group_top =
        top_row<Of>(schedule, at, rank) + (Of::kAlternates ? 0 : self.group * Of::kGroupRows);
    Part part{deep.begin / kDepth, deep.steps, kDepth, schedule.end_row(at) - group_top,
              of.columns - column, group_top, at.batch};
    if (Schedule::kInside) {
      part.last = schedule.end_depth(at, 0) - deep.begin - (deep.steps - 1) * kDepth;
    }
    work.multiply_tile(shared, part, column, self, ring, sums);
    const int z = schedule.matrix(at);
    const int top = group_top + self.warp * kWarpRows;
    ProductEpilogueValues ending = result.with;
    if (Schedule::kGrouped) ending = epilogue_of_batch<Finish>(ending, at.batch, of.columns);
    const Target to{result.map, result.out, ending, of, schedule.end_row(at)};
    const TileFactors<Of, Finish> scales(ending, of, top, column, self.lane);
    if constexpr (Work::kStore == kDirect) {
#pragma unroll
      for (int wave = 0; wave < Of::kWaves; ++wave) {
        store_direct<Of, typename Work::Out, Finish>(sums[wave], to, scales, wave, top + wave * 64,
                                                     column, z, self.lane);
      }
    } else if constexpr (sizeof(typename Work::Out) == 4) {
      static_assert(!Schedule::kGrouped);  // its boxes would reach the next group's rows
#pragma unroll
      for (int wave = 0; wave < Of::kWaves; ++wave) {
        store_wide_rows<Of, typename Work::Out, Finish>(
            sums[wave], staging, to, scales, wave, top + wave * 64, column, z, self.lane, turn);
      }
    } else {
      store_rows<Of, typename Work::Out, Work::kStore, Schedule::kGrouped, Finish>(
          sums, staging, to, scales, top, column, z, self.lane, turn);
    }
  }
  if (Work::kStore == kByCopies && self.lane == 0) wait_for_reads_of_stores<0>();
}

/// All of a kernel. Of::kThreads threads; blocks in clusters of Of::kCluster. `given`: a Problem,
/// or one of groups (product_tiles.cuh).
template <typename Work, typename Given>
__device__ __forceinline__ void run_product(const Work& work, unsigned char* storage,
                                            const OperandMaps& maps, const Result& result,
                                            const Given& given) {
  using Of = typename Work::Of;
  const Shared<Work> shared(storage);
  const Problem& of = ScheduleOf<Given>::sizes(given);
  const typename ScheduleOf<Given>::Type schedule(given, shared.table());
  const unsigned rank = Of::kCluster == 1 ? 0 : cluster_rank();
  if (threadIdx.x == 0) {
    prefetch(maps.a);
    prefetch(maps.b);
    if (Work::kStore == kByCopies) prefetch(result.map);
    constexpr int kTakers = (Of::kAlternates ? 1 : Of::kGroups) * 4 * Of::kCluster;
    for (int stage = 0; stage < Of::kStages; ++stage) {
      shared.full[stage].init(1);
      shared.empty[stage].init(kTakers);
    }
    if constexpr (Of::kAlternates) {
      for (int group = 0; group < 2; ++group) shared.order[group].init(4);
    }
    Mbarrier::publish();
  }
  if (threadIdx.x / 32 == 1) schedule.prepare(Of::kRows * Of::kCluster);
  // The copying warp made the barriers, so it begins before the others have seen them.
  constexpr bool kBegins = Of::kCluster == 1 && !ScheduleOf<Given>::Type::kPrepares;
  if constexpr (kBegins) {
    constexpr int kMeeting = 3, kThreads = 32 + Of::kGroups * 128;
    __syncwarp();
    if (threadIdx.x < 32) {
      asm volatile("bar.arrive %0, %1;" ::"n"(kMeeting), "n"(kThreads) : "memory");
    } else if (threadIdx.x >= 128) {
      asm volatile("bar.sync %0, %1;" ::"n"(kMeeting), "n"(kThreads) : "memory");
    }
  } else if constexpr (Of::kCluster == 1) {
    __syncthreads();
  } else {
    cluster_sync();
  }
  const int first = blockIdx.x / Of::kCluster, apart = gridDim.x / Of::kCluster;
  const int tiles = schedule.count();
  if (threadIdx.x < 128) {
    if constexpr (Of::kGroups == 2) asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if constexpr (Of::kGroups == 3) asm volatile("setmaxnreg.dec.sync.aligned.u32 32;");
    if (threadIdx.x == 0) {
      Ring<Of::kStages> ring;
      for (int tile = first; tile < tiles; tile += apart) {
        const Place at = schedule.place(tile);
        constexpr int kDepth = kLine / static_cast<int>(sizeof(typename Work::In));
        load_tile(work, shared, maps, of, at, top_row<Of>(schedule, at, rank), schedule.end_row(at),
                  schedule.depth(at, kDepth), rank, ring);
      }
    }
  } else {
    if constexpr (Of::kGroups == 2) asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    if constexpr (Of::kGroups == 3) asm volatile("setmaxnreg.inc.sync.aligned.u32 160;");
    multiply(work, shared, result, schedule, rank, first, apart, tiles);
  }
  // The other blocks of the cluster arrive here as long as they multiply.
  if constexpr (Of::kCluster > 1) cluster_sync();
}

}  // namespace kernwright
