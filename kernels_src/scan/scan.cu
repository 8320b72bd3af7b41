// Running sums, products and extremes along an axis. The order of all combinations depends on the
// shape alone: equal arrays give equal bits.
#include <kernwright/overlap.cuh>
#include <kernwright/posted.cuh>
#include <kernwright/reduce.cuh>
#include <kernwright/running.cuh>
#include <kernwright/scan_parts.cuh>
#include <kernwright/walk.cuh>

using namespace kernwright;

constexpr int kTileThreads = 512;
constexpr int kRowThreads = 256;
constexpr int kColumnThreads = 128;
/// Elements of a thread of a column in flight at once.
constexpr int kLoads = 4;

/// A warp for each row, chunk after chunk.
template <typename Op, int kPack, int kSteps, typename Index>
__global__ void __launch_bounds__(kRowThreads)
    scan_rows(char* __restrict__ to, const char* __restrict__ from,
              const ScanParameters<Index> plan) {
  pdl_wait_then_launch_small();
  const Index row =
      blockIdx.x * static_cast<Index>(kRowThreads / 32) + static_cast<Index>(threadIdx.x / 32);
  if (row >= plan.rows) return;
  const int lane = threadIdx.x % 32;
  const WalkOffsets<2> at = walk_offsets(plan.kept, row);
  if (plan.initial && lane == 0) store_initial<Op>(to + at.offset[0], plan.to);
  using Piece = Chunk<Op, kPack, kSteps>;
  typename Op::Carry before = to_carry<Op>(Op::none());
  for (Index begin = 0; begin < plan.length; begin += Piece::kElements) {
    Piece piece;
    piece.load(from + at.offset[1], plan.from, begin, plan.length, lane);
    const typename Op::Value total = piece.scan(lane);
    piece.store(to + at.offset[0], plan.to, begin, plan.length, lane, before);
    before = Op::combine(before, to_carry<Op>(total));
  }
}

/// The number of a block, in the order in which blocks start.
__device__ __forceinline__ unsigned take_ticket(unsigned* tickets) {
  __shared__ unsigned given;
  if (threadIdx.x == 0) given = atomicAdd(tickets, 1u);
  __syncthreads();
  return given;
}

/// A block's tile of a row. Each warp has a piece of the tile.
template <typename Op, int kPack, int kSteps, typename Index>
struct Tile {
  static constexpr int kWarps = kTileThreads / 32;
  using Piece = Chunk<Op, kPack, kSteps>;
  unsigned ticket, row, number;  ///< index among all tiles, the row, the index in the row
  int lane, warp;
  WalkOffsets<2> at;
  Index begin;
  Piece piece;

  /// Loads and scans the pieces; what each of them adds up to goes to `totals`, in shared memory.
  __device__ __forceinline__ Tile(unsigned block_number, const char* from,
                                  const ScanParameters<Index>& plan, unsigned tiles,
                                  typename Op::Carry* totals)
      : ticket(block_number), lane(threadIdx.x % 32), warp(threadIdx.x / 32) {
    row = ticket / tiles;
    number = ticket % tiles;
    at = walk_offsets(plan.kept, static_cast<Index>(row));
    begin = (number * static_cast<Index>(kWarps) + warp) * Piece::kElements;
    piece.load(from + at.offset[1], plan.from, begin, plan.length, lane);
    const typename Op::Carry total = to_carry<Op>(piece.scan(lane));
    if (lane == 0) totals[warp] = total;
    __syncthreads();
  }
  /// Stores the results; `before`: of all elements in front of the piece.
  __device__ __forceinline__ void store(char* to, const ScanParameters<Index>& plan,
                                        typename Op::Carry before) {
    if (plan.initial && number == 0 && threadIdx.x == 0)
      store_initial<Op>(to + at.offset[0], plan.to);
    piece.store(to + at.offset[0], plan.to, begin, plan.length, lane, before);
  }
};

// ---- rows of a few tiles; each reads the sums of all tiles before it

/// A block for each tile of each row; a thread waits for one tile, so a row has at most
/// kTileThreads tiles. With kTogether no block waits for one that has not started: rows of a lone
/// tile, which need no `posts`, or no more blocks than multiprocessors. Tickets would cost an
/// exchange with L2 before the first load.
template <typename Op, int kPack, int kSteps, typename Index, bool kTogether>
__global__ void __launch_bounds__(kTileThreads)
    scan_few_tiles(char* __restrict__ to, const char* __restrict__ from,
                   const ScanParameters<Index> plan, const Posts posts, unsigned tiles) {
  if constexpr (kTogether) pdl_wait_then_launch_small();
  const bool lone = kTogether && tiles == 1;
  using Carry = typename Op::Carry;
  constexpr int kWarps = kTileThreads / 32, kWords = kPostedWords<Carry>;
  __shared__ bool last;
  __shared__ alignas(16) unsigned char memory[2 * kWarps * sizeof(Carry)];
  Carry* const totals = reinterpret_cast<Carry*>(memory);  // of the block's warps
  Carry* const before = totals + kWarps;                   // of 32 tiles each
  Tile<Op, kPack, kSteps, Index> block_tile(kTogether ? blockIdx.x : take_ticket(posts.ticket),
                                            from, plan, tiles, totals);
  const unsigned tile = block_tile.number;
  const int lane = block_tile.lane, warp = block_tile.warp;
  UInt64* const row_values =
      posts.tile_values + static_cast<unsigned long long>(block_tile.ticket - tile) * kWords;
  if (warp == 0 && !lone) {
    const Carry all = warp_carry<Op>(lane < kWarps ? totals[lane] : to_carry<Op>(Op::none()), lane);
    if (lane == 0) post(row_values + tile * kWords, all);
  }
  if (warp * 32 < tile) {
    Carry theirs = to_carry<Op>(Op::none());
    if (threadIdx.x < tile) theirs = take_posted<Carry>(row_values + threadIdx.x * kWords);
    theirs = warp_carry<Op>(theirs, lane);
    if (lane == 0) before[warp] = theirs;
  }
  __syncthreads();
  // No thread of this block waits any more. The count is in flight while results are stored.
  const bool arrived_last = threadIdx.x == 0 && !lone && arrives_last(posts.done, gridDim.x);
  Carry carry = to_carry<Op>(Op::none());
  for (int w = 0; w * 32 < tile; ++w) carry = Op::combine(carry, before[w]);
  for (int w = 0; w < warp; ++w) carry = Op::combine(carry, totals[w]);
  block_tile.store(to, plan, carry);
  if (lone) return;
  if (threadIdx.x == 0) last = arrived_last;
  __syncthreads();
  if (!last) return;
  for (unsigned i = threadIdx.x; i < gridDim.x; i += kTileThreads) {
    clear_posted<Carry>(posts.tile_values + static_cast<unsigned long long>(i) * kWords);
  }
  if (!kTogether && threadIdx.x == 0) *posts.ticket = 0;
}

// ---- long rows: tiles that look back

/// Words exchanged by tiles, all of one scan's launch. 32 tiles of a row are a group. A tile's flag
/// counts from 0: nothing yet, `own`; a group's flag: nothing yet, `total`, `whole`. The last block
/// makes ticket and flags zero for the next launch.
template <typename Carry>
struct Board {
  unsigned* ticket;
  unsigned* done;
  unsigned* flag;        ///< of tiles
  unsigned* group_flag;  ///< behind the flags of tiles
  Carry* tile_values;    ///< of the tile's elements
  Carry* total;          ///< of the group's elements
  Carry* whole;          ///< of all elements of the row up to the group's end
};

/// A fence stands between the last look at flags and the reads of the flagged values: one fence for
/// all looks.
__device__ __forceinline__ unsigned load_flag(const unsigned* flag) {
  unsigned value;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
  return value;
}
__device__ __forceinline__ void store_flag(unsigned* flag, unsigned value) {
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}

/// Past the first-level cache: it may hold earlier values.
template <typename T>
__device__ __forceinline__ T load_shared_value(const T* from) {
  constexpr int kWords = sizeof(T) / 4;
  union Words {
    T value;
    unsigned word[kWords];
    __device__ Words() {}
  } words;
#pragma unroll
  for (int i = 0; i < kWords; ++i) {
    words.word[i] = reinterpret_cast<const volatile unsigned*>(from)[i];
  }
  return words.value;
}

/// The nearest group before `group` whose `whole` is known, once all groups between have a `total`.
/// Tiles of lower numbers started earlier: they do not wait for this tile.
__device__ __forceinline__ unsigned nearest_whole(const unsigned* flags, unsigned group, int lane) {
  long long last = static_cast<long long>(group) - 1;
  for (;;) {
    const long long lane_place = last - lane;
    const unsigned flag = lane_place >= 0 ? load_flag(flags + lane_place) : 1u;
    const unsigned known = __ballot_sync(~0u, flag != 0), whole = __ballot_sync(~0u, flag == 2);
    const unsigned needed = whole != 0 ? whole ^ (whole - 1) : ~0u;
    if ((known & needed) != needed) continue;
    if (whole != 0) return static_cast<unsigned>(last - (__ffs(whole) - 1));
    last -= 32;
  }
}

/// The total of all groups before `group`, by one warp. From the nearest `whole` on, the totals of
/// the groups are added one by one, in one order for all groups: the bits do not depend on the
/// begin.
template <typename Op>
__device__ __forceinline__ typename Op::Carry before_group(const Board<typename Op::Carry>& board,
                                                           unsigned group, int lane) {
  using Carry = typename Op::Carry;
  if (group == 0) return to_carry<Op>(Op::none());
  const unsigned start = nearest_whole(board.group_flag, group, lane);
  __threadfence();
  __syncwarp();
  Carry before = load_shared_value(board.whole + start);
  for (unsigned next = start + 1; next < group; next += 32) {
    const unsigned member = next + lane;
    const Carry total =
        member < group ? load_shared_value(board.total + member) : to_carry<Op>(Op::none());
    for (unsigned j = 0; j < 32 && next + j < group; ++j) {
      before = Op::combine(before, shuffle_from(total, static_cast<int>(j)));
    }
  }
  return before;
}

/// The total of the `count` tiles before this tile in the group, by one warp: a scan of fixed
/// order.
template <typename Op>
__device__ __forceinline__ typename Op::Carry before_in_group(const unsigned* flags,
                                                              const typename Op::Carry* owns,
                                                              int count, int lane) {
  using Carry = typename Op::Carry;
  for (;;) {
    const unsigned flag = lane < count ? load_flag(flags + lane) : 1u;
    if (__all_sync(~0u, flag != 0)) break;
  }
  __threadfence();
  __syncwarp();
  Carry value = lane < count ? load_shared_value(owns + lane) : to_carry<Op>(Op::none());
#pragma unroll
  for (int lanes = 1; lanes < 32; lanes *= 2) {
    const Carry other = shuffle_up(value, lanes);
    if (lane >= lanes) value = Op::combine(other, value);
  }
  return shuffle_from(value, count - 1);
}

/// Publishes the tile's `own` sum and finds the sum before it; one warp. The first tile of a row
/// has nothing before it. (D. Merrill, M. Garland, "Single-pass parallel prefix scan with decoupled
/// look-back", 2016; groups make the way back short, and the order of additions a fixed one.)
template <typename Op>
__device__ __forceinline__ typename Op::Carry publish(const Board<typename Op::Carry>& board,
                                                      unsigned tile, unsigned tiles,
                                                      typename Op::Carry tile_value, int lane) {
  using Carry = typename Op::Carry;
  const unsigned group = tile / 32, first = group * 32;
  const int place = static_cast<int>(tile - first);
  if (lane == 0) {
    board.tile_values[tile] = tile_value;
    store_flag(board.flag + tile, 1);
  }
  Carry inside = to_carry<Op>(Op::none());
  if (place > 0)
    inside = before_in_group<Op>(board.flag + first, board.tile_values + first, place, lane);
  const bool ends_group = place == 31 && tile + 1 < tiles;
  const Carry total = place > 0 ? Op::combine(inside, tile_value) : tile_value;
  // NOTE: the first group has only the state `whole`: later groups look no further back.
  if (ends_group && group > 0 && lane == 0) {
    board.total[group] = total;
    store_flag(board.group_flag + group, 1);
  }
  const Carry before = before_group<Op>(board, group, lane);
  if (ends_group && lane == 0) {
    board.whole[group] = Op::combine(before, total);
    store_flag(board.group_flag + group, 2);
  }
  return Op::combine(before, inside);
}

/// A block for each tile of each row, in the order in which blocks start.
template <typename Op, int kPack, int kSteps, typename Index>
__global__ void __launch_bounds__(kTileThreads)
    scan_tiles(char* __restrict__ to, const char* __restrict__ from,
               const ScanParameters<Index> plan, const Board<typename Op::Carry> all,
               unsigned tiles) {
  using Carry = typename Op::Carry;
  constexpr int kWarps = kTileThreads / 32;
  __shared__ bool last;
  __shared__ alignas(16) unsigned char memory[(kWarps + 1) * sizeof(Carry)];
  Carry* const carries = reinterpret_cast<Carry*>(memory);
  Tile<Op, kPack, kSteps, Index> block_tile(take_ticket(all.ticket), from, plan, tiles, carries);
  const unsigned row = block_tile.row, tile = block_tile.number, first = row * tiles;
  const int lane = block_tile.lane, warp = block_tile.warp;
  Carry inside = to_carry<Op>(Op::none());
  for (int w = 0; w < warp; ++w) inside = Op::combine(inside, carries[w]);
  if (warp == 0) {
    Carry tile_value = carries[0];
    for (int w = 1; w < kWarps; ++w) tile_value = Op::combine(tile_value, carries[w]);
    const unsigned group = row * ((tiles + 31) / 32);
    const Board<Carry> board = {all.ticket,
                                all.done,
                                all.flag + first,
                                all.group_flag + group,
                                all.tile_values + first,
                                all.total + group,
                                all.whole + group};
    const Carry before = publish<Op>(board, tile, tiles, tile_value, lane);
    if (lane == 0) carries[kWarps] = before;
  }
  __syncthreads();
  // No thread of this block looks back any more. The count is in flight while results are stored.
  const bool arrived_last = threadIdx.x == 0 && arrives_last(all.done, gridDim.x);
  block_tile.store(to, plan, Op::combine(carries[kWarps], inside));
  if (threadIdx.x == 0) last = arrived_last;
  __syncthreads();
  if (!last) return;
  const unsigned flags = gridDim.x + gridDim.x / tiles * ((tiles + 31) / 32);
  for (unsigned i = threadIdx.x; i < flags; i += kTileThreads) store_flag(all.flag + i, 0);
  if (threadIdx.x == 0) store_flag(all.ticket, 0);
}

// ---- columns: the threads are side by side along another axis

enum class Pass { whole, totals, behind };

/// A thread for each segment of kPack columns. The extents of plan.kept are in packs; `apart` is
/// the distance between results of a pack. totals: leaves the segment's sum in `carries`,
/// [segment][column]; behind: goes on from the values there.
template <typename Op, int kPack, typename Index>
__global__ void __launch_bounds__(kColumnThreads)
    scan_columns(char* __restrict__ to, const char* __restrict__ from,
                 typename Op::Carry* __restrict__ carries, const ScanParameters<Index> plan,
                 long long apart, int pass_number) {
  pdl_wait_then_launch_small();
  using Elements = Pack<typename Op::Input, kPack>;
  const Pass pass = static_cast<Pass>(pass_number);
  const Index packs = plan.rows / kPack;
  const Index thread = blockIdx.x * static_cast<Index>(kColumnThreads) + threadIdx.x;
  const Index column = thread % packs, segment = thread / packs;
  if (segment >= plan.segments) return;
  const WalkOffsets<2> at = walk_offsets(plan.kept, column);
  typename Op::Carry* const column_carries = carries + segment * plan.rows + column * kPack;
  typename Op::Carry before[kPack];
#pragma unroll
  for (int j = 0; j < kPack; ++j) {
    before[j] = pass == Pass::behind ? column_carries[j] : to_carry<Op>(Op::none());
    if (plan.initial && segment == 0 && pass != Pass::totals) {
      store_initial<Op>(to + at.offset[0] + j * apart, plan.to);
    }
  }
  const Index begin = segment * plan.segment;
  const Index end = plan.length - begin < plan.segment ? plan.length : begin + plan.segment;
  for (Index i = begin; i < end; i += kLoads) {
    Elements elements[kLoads];
#pragma unroll
    for (int k = 0; k < kLoads; ++k) {
      if (i + k >= end) break;
      elements[k] = *reinterpret_cast<const Elements*>(from + at.offset[1] +
                                                       static_cast<long long>(i + k) * plan.from);
    }
#pragma unroll
    for (int k = 0; k < kLoads; ++k) {
      if (i + k >= end) break;
      char* const place = to + at.offset[0] + static_cast<long long>(i + k) * plan.to;
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        before[j] = Op::combine(before[j], to_carry<Op>(Op::take(elements[k].value[j])));
        if (pass == Pass::totals) continue;
        *reinterpret_cast<typename Op::Output*>(place + j * apart) = finish<Op>(before[j]);
      }
    }
  }
  if (pass != Pass::totals) return;
#pragma unroll
  for (int j = 0; j < kPack; ++j) column_carries[j] = before[j];
}

/// The segments' sums become the sums before each segment.
template <typename Op, typename Index>
__global__ void __launch_bounds__(kColumnThreads)
    scan_carries(typename Op::Carry* carries, Index rows, Index segments) {
  pdl_wait_then_launch_small();
  const Index row = blockIdx.x * static_cast<Index>(kColumnThreads) + threadIdx.x;
  if (row >= rows) return;
  typename Op::Carry before = to_carry<Op>(Op::none());
  for (Index s = 0; s < segments; ++s) {
    const typename Op::Carry tile_value = carries[s * rows + row];
    carries[s * rows + row] = before;
    before = Op::combine(before, tile_value);
  }
}
