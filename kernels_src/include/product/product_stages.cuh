// The ring of stages of a product by wgmma: what one warp copies by tensor maps and warpgroups
// multiply. Compute capability 9.0 alone, in code for sm_90a.
#pragma once

#include <kernwright/mbarrier.cuh>
#include <kernwright/product_tiles.cuh>
#include <kernwright/tma.cuh>

namespace kernwright {

constexpr int kLine = 128;         // bytes of a stage along the inner dimension
constexpr int kPart = 64 * kLine;  // bytes of 64 lines
constexpr int kWarpRows = 16;      // rows of a warp's TMA tile of the result
constexpr int kSwizzled = 64;      // columns that a TMA tile of the result has
constexpr int kStagedBytes = kWarpRows * kSwizzled * 2;
// Bytes of stages, their scales and TMA tiles where a warp stages more than two. Barriers and
// tables of groups follow.
constexpr int kMostStaged = 220000;

/// A tile of rows x columns results, computed from a pipeline of `stages` stages. `groups` consumer
/// warpgroups share the rows; with kPingPong each warpgroup has separate tiles, and the warpgroups
/// alternate. `cluster` blocks load the operand with more lines in a tile by multicast: B, with
/// tiles below each other, or A, with tiles beside each other. Or the blocks split the k of one
/// tile (kGathers) and add the accumulators in the cluster.
template <int rows, int columns, int stages, int groups, bool kPingPong, int cluster,
          bool kGathers = false>
struct Tile {
  static constexpr int kRows = rows, kColumns = columns, kStages = stages, kGroups = groups;
  static constexpr int kCluster = kGathers ? 1 : cluster, kParts = cluster / kCluster;
  static constexpr int kThreads = (groups + 1) * 128;
  static constexpr int kSharersA = rows > columns ? kCluster : 1;
  static constexpr int kSharersB = kCluster / kSharersA;
  static constexpr bool kAlternates = kPingPong;
  static constexpr int kGroupRows = kPingPong ? rows : rows / groups;
  static constexpr int kWaves = kGroupRows / 64;  // of 64 rows, of a warpgroup
  static constexpr int kBytesA = rows * kLine;
  static constexpr int kBytesB = (columns + 63) / 64 * kPart;  // turned it comes in whole parts
  static constexpr int kStageBytes = kBytesA + kBytesB;
  static constexpr int kAccumulators = columns / 2;  // of a thread and a wave
  static constexpr int kStagedTiles =
      groups > 2 ? 1 : 2;  // that a warp stages: room for three groups
  // The TMA tiles of products with block scales, as GemmTile::staged_tiles() counts them: up to all
  // of a tile, whose epilogue then waits for no store.
  static constexpr int kAllTiles = kWaves * ((columns + 63) / 64);
  static constexpr int kRoom =
      (kMostStaged - stages * (kStageBytes + rows * 4)) / (groups * 4 * kStagedBytes);
  static constexpr int kFitting = kRoom < kAllTiles ? kRoom : kAllTiles;
  static constexpr int kManyStagedTiles = groups > 2 || kFitting < 2 ? kStagedTiles : kFitting;
  static_assert(!kPingPong || groups == 2);
  static_assert(!kPingPong || !kGathers);
};

/// With split-K in a cluster (Tile::kParts) each block owns the epilogue of some warps.
template <typename TileType>
struct Owners {
  static constexpr int kWarps = TileType::kGroups * 4, kParts = TileType::kParts;
  static constexpr int kMost = (kWarps + kParts - 1) / kParts;  // warps of a block
  static constexpr int kWarpBytes =
      TileType::kWaves * TileType::kAccumulators * 4 * 32;  // of accumulators
  static constexpr int kReceived = (kParts - 1) * kMost * kWarpBytes;
  __device__ __forceinline__ static int owner(int warp) { return warp * kParts / kWarps; }
  __device__ __forceinline__ static int first_warp(int part) {
    return (part * kWarps + kParts - 1) / kParts;
  }
  /// The bytes that the peer blocks send to this block.
  __device__ __forceinline__ static int bytes(int part) {
    return (first_warp(part + 1) - first_warp(part)) * (kParts - 1) * kWarpBytes;
  }
};

/// The dimension along which the operands' elements follow each other: if set, not the inner one.
template <bool kTurnA, bool kTurnB>
struct Layout {
  static constexpr bool kA = kTurnA, kB = kTurnB;
};

/// Sizes of the problem: tiles counted in clusters' rows of tiles. Splits share the inner
/// dimension.
struct Problem {
  int rows, columns;
  int steps, split_steps;  // of kLine bytes
  int row_tiles, column_tiles;
  int group;  // row tiles whose columns are walked together
  int batches, splits;
  int inner_batches;     // products are numbered in two dimensions; of the inner one
  int a_inner, a_outer;  // 0 where one a serves the whole dimension
  int b_inner, b_outer;
  int short_rows, narrow_columns;  // 1 where the last row (column) of tiles comes last
};
template <>
struct ScheduleTraits<Problem> {
  using Type = EdgesLast<Problem>;
  __device__ static const Problem& sizes(const Problem& problem) { return problem; }
};

/// How the result is written.
enum Store {
  kByCopies,    // of TMA tiles, from shared memory; types of 2 and 4 bytes, strides of 16 bytes
  kByElements,  // from shared memory; 16-bit types
  kDirect,      // from registers; types of other sizes, and of 4 bytes in other strides
};

/// A place in the ring of stages, and the parity of the rounds.
template <int kStages>
struct Ring {
  int stage = 0;
  unsigned parity = 0;
  __device__ __forceinline__ void advance() {
    if (++stage == kStages) {
      stage = 0;
      parity ^= 1;
    }
  }
  __device__ __forceinline__ void advance(int steps) {
    const int at = stage + steps;
    parity ^= at / kStages & 1;
    stage = at % kStages;
  }
};

/// Dynamic shared memory: the stages, the staging of each multiplying warp (of two TMA tiles one
/// is filled while one is read), accumulators of the cluster's other blocks, what else a stage has
/// (from a multiple of 128 bytes on, as copies want it), two barriers for each stage and two or
/// three more, the table of groups.
template <typename Work>
struct Shared {
  using TileType = typename Work::Tile;
  static constexpr int kStages = TileType::kStages;
  static constexpr int kWarpStaging =
      Work::kStore == kDirect ? 0 : Work::kStagedTiles * kStagedBytes;
  static constexpr int kBesideStep = (Work::kBytesBeside + 127) / 128 * 128;
  static constexpr int kBesideBytes = (kStages - 1) * kBesideStep + Work::kBytesBeside;
  unsigned char *base, *staging, *received, *beside;
  Mbarrier *full, *empty;
  Mbarrier* order;  // of warpgroups that take turns: a tile's stages have all come

  __device__ explicit Shared(unsigned char* at)
      : base(at),
        staging(at + kStages * TileType::kStageBytes),
        received(staging + TileType::kGroups * 4 * kWarpStaging),
        beside(received + Owners<TileType>::kReceived),
        full(reinterpret_cast<Mbarrier*>(beside + kBesideBytes)),
        empty(full + kStages),
        order(empty + kStages) {}
  __device__ Mbarrier& all_received() const { return order[2]; }  // of `received`
  __device__ void* table() const { return order + (TileType::kParts > 1 ? 3 : 2); }
  __device__ unsigned char* a(int stage) const { return base + stage * TileType::kStageBytes; }
  __device__ unsigned char* b(int stage) const { return a(stage) + TileType::kBytesA; }
  __device__ unsigned char* more(int stage) const { return beside + stage * kBesideStep; }
};

/// Tensor maps of a and b whose TMA tiles have only the remaining lines of the last tile. Lines of
/// a TMA tile outside of the matrix take longer than lines inside.
struct EdgeMaps {
  TensorMap a, b;
};

/// The tensor maps of a and b.
struct OperandMaps {
  const TensorMap &a, &b;
  const EdgeMaps& edges;
};

/// The first row of this block's tile.
template <typename TileType, typename Schedule>
__device__ __forceinline__ int top_row(const Schedule& schedule, const Place& at, unsigned rank) {
  const int row =
      TileType::kSharersB == 1 ? at.row : at.row * TileType::kCluster + static_cast<int>(rank);
  return schedule.first_row(at) + row * TileType::kRows;
}
/// The number of this block's tile along the columns.
template <typename TileType>
__device__ __forceinline__ int column_tile(const Place& at, unsigned rank) {
  return TileType::kSharersA == 1 ? at.column
                                  : at.column * TileType::kCluster + static_cast<int>(rank);
}

/// The part of k of this block: with split-K in a cluster, the part of its rank.
template <typename TileType, typename Schedule>
__device__ __forceinline__ Depth block_depth(const Schedule& schedule, Place at, unsigned rank,
                                             int elements) {
  if (TileType::kParts > 1) at.split = static_cast<int>(rank);
  return schedule.depth(at, elements);
}

constexpr int kNarrow = 64;  // columns of a narrow tile at an edge

/// The loads of a tile. With kExact, TMA tiles have only lines inside of the matrix, where
/// neighbours lie along k: lines of a stage without a load need no zero fill, as their accumulators
/// are never stored. Otherwise wide tiles of kernels that leave out products (kLeavesOut) load no
/// TMA tile of a warpgroup without rows inside the result, and none behind the columns of a narrow
/// tile.
template <typename Work, bool kExact>
struct TileLoads {
  using TileType = typename Work::Tile;
  static constexpr bool kExactA = kExact && !Work::Order::kA;
  // The first half of a gated tile has columns of the second one behind it.
  static constexpr bool kExactB = kExact && !Work::Order::kB && !Work::Finish::kGated;
  static constexpr bool kLeavesOut = Work::kLeavesOut && TileType::kColumns >= 256;
  static constexpr int kHalf = TileType::kColumns / (Work::Finish::kGated ? 2 : 1);
  // This block's share of the tiles of A and B.
  static constexpr int kShareA = TileType::kRows / TileType::kSharersA;
  static constexpr int kShare = TileType::kColumns / TileType::kSharersB;
  /// Lines of a TMA tile of A and of B: 64 where neighbours lie along them.
  static constexpr int kRows = Work::Order::kA || kLeavesOut ? 64 : kShareA;
  static constexpr int kColumns = kLeavesOut ? 64 : kShare < kHalf ? kShare : kHalf;
  int rows = TileType::kRows, columns = TileType::kColumns;

  /// The result has that many rows and columns from the tile's first ones on.
  __device__ TileLoads(int rows_inside, int columns_inside) {
    constexpr int kUnitRows = TileType::kGroupRows;
    if (kExactA) {
      rows = min(rows, max(rows_inside, 0));
    } else if (kLeavesOut) {
      rows = min(rows, (max(rows_inside, 0) + kUnitRows - 1) / kUnitRows * kUnitRows);
    }
    if (kExactB) {
      columns = min(columns, max(columns_inside, 0));
    } else if (kLeavesOut && !Work::Finish::kGated && columns_inside <= kNarrow) {
      columns = kNarrow;
    }
  }
  /// The bytes of a stage.
  __device__ int bytes() const {
    constexpr int kAll = Work::Order::kB ? TileType::kBytesB : TileType::kColumns * kLine;
    return rows * kLine + (columns < TileType::kColumns ? columns * kLine : kAll) +
           Work::kBytesBeside;
  }
};

/// The consumer warpgroups zero the lines of stages that no load fills for the last tiles, before
/// they meet: the tensor cores read initialised memory. Returns whether loads of peer blocks or for
/// further tiles may fill these lines, too: then such loads must wait.
template <typename Work>
__device__ __forceinline__ bool clear_edges(const Shared<Work>& shared, const Problem& problem) {
  using TileType = typename Work::Tile;
  using Loads = TileLoads<Work, true>;
  bool meets = false;
  const auto clear = [&](unsigned char* from, int lines, int tiles, int extent) {
    const int first = max(lines - (tiles * lines - extent), 0);
    const int units = (lines - first) * (kLine / 16);
    if (units == 0) return;
    meets |= TileType::kCluster > 1 || extent > lines;
    if (threadIdx.x < 128) return;
#pragma unroll 1
    for (int stage = 0; stage < TileType::kStages; ++stage, from += TileType::kStageBytes) {
#pragma unroll 1  // few; compile time grows with the code
      for (int i = threadIdx.x - 128; i < units; i += TileType::kGroups * 128) {
        *reinterpret_cast<uint4*>(from + first * kLine + i * 16) = uint4{};
      }
    }
    show_to_copies();  // and to products
  };
  if (Loads::kExactA)
    clear(shared.a(0), TileType::kRows, problem.row_tiles * TileType::kSharersB, problem.rows);
  if (Loads::kExactB) {
    clear(shared.b(0), TileType::kColumns, problem.column_tiles * TileType::kSharersA,
          problem.columns);
  }
  return meets;
}

/// Loads the operands of a tile from `row` on, stage by stage of `part`; the result's rows end
/// before `end`. One thread calls it. In a gated product the first half of B's tile has columns of
/// the first half of B, the second half columns of the second half.
template <bool kExact, typename Work>
__device__ __forceinline__ void load_tile(const Work& work, const Shared<Work>& shared,
                                          const OperandMaps& maps, const Problem& problem, Place at,
                                          int row, int end, const Depth& part, unsigned rank,
                                          Ring<Work::Tile::kStages>& ring) {
  using TileType = typename Work::Tile;
  using Order = typename Work::Order;
  using Loads = TileLoads<Work, kExact>;
  constexpr int kDepth = kLine / static_cast<int>(sizeof(typename Work::In));
  constexpr unsigned short kAll = (1 << TileType::kCluster) - 1;
  const int column = column_tile<TileType>(at, rank) * Loads::kHalf;
  const Loads loads(end - row, problem.columns - column);
  const int bytes = loads.bytes();
  const auto b_column = [&](int place) {
    return column + place % Loads::kHalf + place / Loads::kHalf * problem.columns;
  };
  const int outer = at.batch == 0 ? 0 : at.batch / problem.inner_batches;
  const int inner = at.batch - outer * problem.inner_batches;
  const auto load_a = [&](const TensorMap& map, unsigned char* target, int x, int y,
                          Mbarrier& full) {
    const TmaPlace place{x, y, inner * problem.a_inner, outer * problem.a_outer};
    if constexpr (TileType::kSharersA == 1) {
      tma_load(target, map, place, full);
    } else {
      tma_load_multicast(kAll, target, map, place, full);
    }
  };
  const auto load_b = [&](const TensorMap& map, unsigned char* target, int x, int y,
                          Mbarrier& full) {
    const TmaPlace place{x, y, inner * problem.b_inner, outer * problem.b_outer};
    if constexpr (TileType::kSharersB == 1) {
      tma_load(target, map, place, full);
    } else {
      tma_load_multicast(kAll, target, map, place, full);
    }
  };
  const int rank_a = TileType::kSharersA == 1 ? 0 : static_cast<int>(rank);
  const int rank_b = TileType::kSharersB == 1 ? 0 : static_cast<int>(rank);
  constexpr int kAtOnce = TileType::kRows * TileType::kColumns <= 64 * 128 ? 4 : 1;  // short steps
#pragma unroll kAtOnce
  for (int step = 0; step < part.steps; ++step, ring.advance()) {
    Mbarrier& full = shared.full[ring.stage];
    shared.empty[ring.stage].wait(ring.parity ^ 1);
    full.arrive_expecting(bytes);
    const int deep = part.begin + step * kDepth;
    unsigned char* a = shared.a(ring.stage);
    unsigned char* b = shared.b(ring.stage);
    constexpr int kLoadsA = (Order::kA ? TileType::kRows : Loads::kShareA) / Loads::kRows;
    constexpr int kUnroll = Loads::kLeavesOut ? 1 : kLoadsA;  // few registers
    const int lines_a = rank_a * (kDepth / TileType::kSharersA);
#pragma unroll kUnroll
    for (int i = 0; i < kLoadsA; ++i) {
      const int from = Order::kA ? i * Loads::kRows : rank_a * Loads::kShareA + i * Loads::kRows;
      if (from >= loads.rows) break;
      if constexpr (Order::kA) {
        load_a(maps.a, a + (from + lines_a) * kLine, row + from, deep + lines_a, full);
      } else {
        const bool whole = !kExact || from + Loads::kRows <= loads.rows;
        load_a(whole ? maps.a : maps.edges.a, a + from * kLine, deep, row + from, full);
      }
    }
    if constexpr (Order::kB) {
      const int lines = rank_b * (kDepth / TileType::kSharersB);
#pragma unroll
      for (int i = 0; i < TileType::kBytesB / kPart; ++i) {
        if (i * 64 >= loads.columns) break;
        load_b(maps.b, b + i * kPart + lines * kLine, b_column(i * 64), deep + lines, full);
      }
    } else {
#pragma unroll
      for (int i = 0; i < Loads::kShare / Loads::kColumns; ++i) {
        const int place = rank_b * Loads::kShare + i * Loads::kColumns;
        if (place >= loads.columns) break;
        const bool whole = !Loads::kExactB || place + Loads::kColumns <= loads.columns;
        load_b(whole ? maps.b : maps.edges.b, b + place * kLine, deep, b_column(place), full);
      }
    }
    work.load_beside(shared.more(ring.stage), row, deep / kDepth, full);
  }
}

/// Waits until the consumers have released all stages: peer blocks of the cluster arrive at this
/// block's barriers during their mainloop, so this block must not end before.
template <typename Work>
__device__ __forceinline__ void wait_for_all_stages(const Shared<Work>& shared,
                                                    Ring<Work::Tile::kStages>& ring) {
#pragma unroll 1
  for (int i = 0; i < Work::Tile::kStages; ++i, ring.advance()) {
    shared.empty[ring.stage].wait(ring.parity ^ 1);
  }
}

/// Gives a stage back to all that load into it.
template <int kCluster>
__device__ __forceinline__ void give_back(Mbarrier& empty, int lane) {
  __syncwarp();  // the other lanes have read, too
  if constexpr (kCluster == 1) {
    if (lane == 0) empty.arrive();
  } else {
    if (lane < kCluster) empty.arrive_at(lane);
  }
}

}  // namespace kernwright
