// Scans of long rows with overlapped loads, scans and stores. The order of additions depends on the
// shape alone.
#include <kernwright/async_copy.cuh>
#include <kernwright/posted.cuh>
#include <kernwright/reduce.cuh>
#include <kernwright/running.cuh>
#include <kernwright/scan_parts.cuh>
#include <kernwright/walk.cuh>

using namespace kernwright;

constexpr int kThreads = 512;

/// While the other blocks begin.
__device__ __forceinline__ void pause_briefly() {
#if __CUDA_ARCH__ >= 700
  asm volatile("nanosleep.u32 1000;");
#endif
}

/// The sums of the groups of 32 tiles before a tile.
template <typename Carry>
struct Passed {
  unsigned row, group;  ///< groups of the row that `sum` has
  Carry sum;
};

/// Persistent blocks take one tile after another. A block has three stages in shared memory: the
/// first is loaded, the second has been scanned and its sum is posted, the third waits for the
/// prefix and is stored. So a tile's sum is posted long before later tiles need it. Packs have 16
/// bytes, and an element is as large as a combined value.
template <typename Op, int kPack, int kSteps, typename Index>
__global__ void __launch_bounds__(kThreads, 2)
    scan_flow(char* __restrict__ to, const char* __restrict__ from,
              const ScanParameters<Index> plan, const Posts posts, unsigned tiles, unsigned count) {
  using Carry = typename Op::Carry;
  using Value = typename Op::Value;
  using Element = typename Op::Input;
  using Raw = Pack<Element, kPack>;
  using Values = Pack<Value, kPack>;
  using Piece = Chunk<Op, kPack, kSteps>;
  static_assert(sizeof(Raw) == 16 && sizeof(Values) == 16, "values take the places of elements");
  constexpr int kWarps = kThreads / 32, kWords = kPostedWords<Carry>;
  constexpr unsigned kGroupWarps = kWarps - 2;
  __shared__ unsigned given;
  __shared__ alignas(16) unsigned char memory[(5 * kWarps + 1) * sizeof(Carry)];
  extern __shared__ __align__(16) unsigned char flow[];
  Carry* const totals = reinterpret_cast<Carry*>(memory);  // of the block's warps
  Carry* const inside = totals + kWarps;                   // [slot][warp]: of the warps before
  Carry* const groups = inside + 3 * kWarps;               // of groups of tiles
  Carry* const partial = groups + kWarps;                  // of tiles in the group
  Raw* const staged = reinterpret_cast<Raw*>(flow) + threadIdx.x;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const auto tile_begin = [&](unsigned ticket) {
    return (ticket % tiles * static_cast<Index>(kWarps) + warp) * Piece::kElements;
  };
  const auto stage = [&](unsigned ticket, int slot) {
    if (ticket < count) {
      const char* const row =
          from + walk_offsets(plan.kept, static_cast<Index>(ticket / tiles)).offset[1];
      const Index begin = tile_begin(ticket);
#pragma unroll
      for (int k = 0; k < kSteps; ++k) {
        const Index at = begin + k * Piece::kStep + lane * kPack;
        const Element* const place = reinterpret_cast<const Element*>(row) + at;
        Raw* const target = staged + (slot * kSteps + k) * kThreads;
        if (at + kPack <= plan.length) {
          copy_in_background(target, reinterpret_cast<const Raw*>(place));
          continue;
        }
#pragma unroll
        for (int j = 0; j < kPack; ++j) {
          if (at + j < plan.length) target->value[j] = place[j];
        }
      }
    }
    end_copy_group();
  };
  // Scans a loaded tile in place.
  const auto scan = [&](unsigned ticket, int slot) {
    const Index begin = tile_begin(ticket);
    Piece piece;
#pragma unroll
    for (int k = 0; k < kSteps; ++k) {
      const Raw raw = staged[(slot * kSteps + k) * kThreads];
      const Index at = begin + k * Piece::kStep + lane * kPack;
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        piece.value[k][j] = at + j < plan.length ? Op::take(raw.value[j]) : Op::none();
      }
    }
    const Carry total = to_carry<Op>(piece.scan(lane));
#pragma unroll
    for (int k = 0; k < kSteps; ++k) {
      Values values;
#pragma unroll
      for (int j = 0; j < kPack; ++j) values.value[j] = piece.value[k][j];
      *reinterpret_cast<Values*>(staged + (slot * kSteps + k) * kThreads) = values;
    }
    if (lane == 0) totals[warp] = total;
  };
  // Warp 0 computes the prefix of each warp, and posts the tile's sum for later tiles.
  const auto post_tile = [&](unsigned ticket, int slot) {
    Carry value = lane < kWarps ? totals[lane] : to_carry<Op>(Op::none());
#pragma unroll
    for (int lanes = 1; lanes < kWarps; lanes *= 2) {
      const Carry other = shuffle_up(value, lanes);
      if (lane >= lanes) value = Op::combine(other, value);
    }
    const Carry before = shuffle_up(value, 1);
    if (lane < kWarps) {
      inside[slot * kWarps + lane] = lane > 0 ? before : to_carry<Op>(Op::none());
    }
    if (lane == kWarps - 1)
      post(posts.tile_values + static_cast<unsigned long long>(ticket) * kWords, value);
  };
  const auto take = [&] {
    if (threadIdx.x == 0) given = atomicAdd(posts.ticket, 1u);
    __syncthreads();
    const unsigned ticket = given;
    __syncthreads();
    return ticket;
  };
  // Blocks begin one after the other. Their first tiles lie together, so do their second ones.
  unsigned first = take();
  stage(first, 0);
  pause_briefly();
  unsigned second = take();
  stage(second, 1);
  pause_briefly();
  unsigned third = take();
  stage(third, 2);
  int slot = 0;
  wait_for_copy_groups<2>();
  if (first < count) scan(first, 0);
  __syncthreads();
  if (first < count && warp == 0) post_tile(first, 0);
  __syncthreads();
  Passed<Carry> passed = {0, 0, to_carry<Op>(Op::none())};
  while (first < count) {
    const int following = slot == 2 ? 0 : slot + 1;
    unsigned coming = 0;
    if (threadIdx.x == kThreads - 1) coming = atomicAdd(posts.ticket, 1u);
    wait_for_copy_groups<1>();
    if (second < count) scan(second, following);
    __syncthreads();
    if (second < count && warp == 0) post_tile(second, following);
    const unsigned row = first / tiles, tile = first % tiles, group = tile / 32;
    const UInt64* const row_values =
        posts.tile_values + static_cast<unsigned long long>(first - tile) * kWords;
    if (passed.row != row) passed = {row, 0, to_carry<Op>(Op::none())};
    if (warp == kWarps - 1) {
      Carry theirs = to_carry<Op>(Op::none());
      if (lane < static_cast<int>(tile % 32)) {
        theirs = take_posted<Carry>(row_values + (group * 32 + lane) * kWords);
      }
      theirs = warp_carry<Op>(theirs, lane);
      if (lane == 0) *partial = theirs;
    }
    for (;;) {
      const unsigned behind = group - passed.group;
      const unsigned now = behind < kGroupWarps ? behind : kGroupWarps;
      if (warp > 0 && static_cast<unsigned>(warp) <= now) {
        const unsigned member = passed.group + warp - 1;
        Carry theirs = take_posted<Carry>(row_values + (member * 32 + lane) * kWords);
        theirs = warp_carry<Op>(theirs, lane);
        if (lane == 0) groups[warp - 1] = theirs;
      }
      if (threadIdx.x == kThreads - 1) given = coming;
      __syncthreads();
      for (unsigned g = 0; g < now; ++g) passed.sum = Op::combine(passed.sum, groups[g]);
      passed.group += now;
      if (passed.group == group) break;
      __syncthreads();
    }
    const Carry before =
        Op::combine(Op::combine(passed.sum, *partial), inside[slot * kWarps + warp]);
    const WalkOffsets<2> at = walk_offsets(plan.kept, static_cast<Index>(row));
    if (plan.initial && tile == 0 && threadIdx.x == 0)
      store_initial<Op>(to + at.offset[0], plan.to);
    Piece piece;
#pragma unroll
    for (int k = 0; k < kSteps; ++k) {
      const Values values =
          *reinterpret_cast<const Values*>(staged + (slot * kSteps + k) * kThreads);
#pragma unroll
      for (int j = 0; j < kPack; ++j) piece.value[k][j] = values.value[j];
    }
    piece.store(to + at.offset[0], plan.to, tile_begin(first), plan.length, lane, before);
    first = second;
    second = third;
    third = given;
    stage(third, slot);
    slot = following;
  }
  if (!is_last_block(posts.done, gridDim.x)) return;
  for (unsigned i = threadIdx.x; i < count; i += kThreads) {
    clear_posted<Carry>(posts.tile_values + static_cast<unsigned long long>(i) * kWords);
  }
  if (threadIdx.x == 0) *posts.ticket = 0;
}
