// Matrix products of 16-bit floats the Hopper way: one warp copies tiles by tensor maps into a ring
// of stages, warpgroups multiply them (wgmma) and finish their sums; blocks stay for many tiles.
#include <kernwright/elements.cuh>
#include <kernwright/mbarrier.cuh>
#include <kernwright/product_epilogue.cuh>
#include <kernwright/product_tiles.cuh>
#include <kernwright/tma.cuh>
#include <kernwright/wgmma.cuh>

using namespace kernwright;

constexpr int kDepth = 64;     // of a stage along the inner dimension: 128 bytes
constexpr int kSwizzled = 64;  // columns that a box of the result has
constexpr int kWarpRows = 16;  // rows of a box of the result: those of a warp
constexpr int kBox = kWarpRows * kSwizzled * 2;

/// rows x columns of the result are made at once from `stages` stages. `groups` warpgroups share
/// the rows; with kTurns each has tiles of its own instead, and they take turns. `cluster` blocks
/// have tiles below each other and share what they load of B.
template <int rows, int columns, int stages, int groups, bool kTurns, int cluster>
struct Tile {
  static constexpr int kRows = rows, kColumns = columns, kStages = stages, kGroups = groups;
  static constexpr int kCluster = cluster, kThreads = (groups + 1) * 128;
  static constexpr bool kAlternates = kTurns;
  static constexpr int kGroupRows = kTurns ? rows : rows / groups;
  static constexpr int kWaves = kGroupRows / 64;  // of 64 rows, of a warpgroup
  static constexpr int kBytesOfA = rows * kDepth * 2, kBytesOfB = columns * kDepth * 2;
  static constexpr int kStageBytes = kBytesOfA + kBytesOfB;
  static constexpr int kSums = columns / 2;  // of a thread and a wave
  static_assert(!kTurns || groups == 2);
};

/// Which dimension of the operands has elements that follow each other: not the inner one, where
/// set.
template <bool kTurnA, bool kTurnB>
struct Layout {
  static constexpr bool kA = kTurnA, kB = kTurnB;
};

/// Sizes of the problem: tiles counted in clusters' rows of tiles. Splits share the inner
/// dimension.
struct Problem {
  int rows, columns;
  int steps, steps_of_split;  // of kDepth
  int row_tiles, column_tiles;
  int group;  // row tiles whose columns are walked together
  int batches, splits;
  int inner_batches;     // products are numbered in two dimensions; of the inner one
  int a_inner, a_outer;  // 0 where all of that dimension have the same a
  int b_inner, b_outer;
};

/// How the result is written.
enum Store {
  kByCopies,    // of boxes, from shared memory; 16-bit types, strides of 16 bytes
  kByElements,  // from shared memory; 16-bit types
  kDirect,      // from registers; float32
};

template <typename T>
constexpr int kStagingOf(int store) {
  return store == kDirect ? 0 : 2 * kBox;  // of a warp: two boxes, one is filled while one is read
}

/// Where sums go: row-major matrices one behind the other, `z` of them before the tile's.
struct Target {
  const TensorMap& map;  // of boxes of the result, where copies write it
  void* out;
  const ProductEpilogueValues& with;
  const Problem& of;
  int end;  // the row behind those that the tile may write

  __device__ long long offset(int z) const {
    return static_cast<long long>(z) * of.rows * of.columns;
  }
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

template <typename In, typename Of, typename Order>
struct Shared {
  static constexpr int kStages = Of::kStages;
  unsigned char* base;
  Mbarrier *full, *empty;
  Mbarrier* turns;  // of warpgroups that take turns: a tile's stages have all come

  __device__ explicit Shared(unsigned char* at, int staging)
      : base(at),
        full(reinterpret_cast<Mbarrier*>(at + kStages * Of::kStageBytes + staging)),
        empty(full + kStages),
        turns(empty + kStages) {}
  __device__ unsigned char* a(int stage) const { return base + stage * Of::kStageBytes; }
  __device__ unsigned char* b(int stage) const { return a(stage) + Of::kBytesOfA; }
};

/// Loads what a tile needs, stage by stage. By one thread. kGated: the first half of B's tile are
/// columns of its first half, the second half those of its second.
template <typename In, typename Of, typename Order, bool kGated>
__device__ __forceinline__ void load_tile(const Shared<In, Of, Order>& shared,
                                          const TensorMap& map_a, const TensorMap& map_b,
                                          const Problem& of, Place at, int row, int begin, int end,
                                          unsigned rank, Ring<Of::kStages>& ring) {
  constexpr int kHalf = Of::kColumns / (kGated ? 2 : 1);
  constexpr int kShare = Of::kColumns / Of::kCluster;  // of B's tile that this block loads
  constexpr int kBoxColumns = kShare < kHalf ? kShare : kHalf;
  constexpr unsigned short kAll = (1 << Of::kCluster) - 1;
  const auto column_of = [&](int place) {
    return at.column * kHalf + place % kHalf + place / kHalf * of.columns;
  };
  const int inner = at.batch % of.inner_batches, outer = at.batch / of.inner_batches;
  const auto load_a = [&](unsigned char* target, int x, int y, Mbarrier& full) {
    load_box(target, map_a, {x, y, inner * of.a_inner, outer * of.a_outer}, full);
  };
  const auto load_b = [&](unsigned char* target, int x, int y, Mbarrier& full) {
    const BoxPlace place{x, y, inner * of.b_inner, outer * of.b_outer};
    if constexpr (Of::kCluster == 1) {
      load_box(target, map_b, place, full);
    } else {
      load_box_for(kAll, target, map_b, place, full);
    }
  };
  for (int step = begin; step < end; ++step, ring.advance()) {
    Mbarrier& full = shared.full[ring.stage];
    shared.empty[ring.stage].wait(ring.parity ^ 1);
    full.arrive_expecting(Of::kStageBytes);
    const int deep = step * kDepth;
    unsigned char* a = shared.a(ring.stage);
    unsigned char* b = shared.b(ring.stage);
    if constexpr (Order::kA) {
#pragma unroll
      for (int i = 0; i < Of::kRows / 64; ++i) {
        load_a(a + i * (64 * kDepth * 2), row + i * 64, deep, full);
      }
    } else {
      load_a(a, deep, row, full);
    }
    if constexpr (Order::kB) {
      const int part = static_cast<int>(rank) * (kDepth / Of::kCluster);
#pragma unroll
      for (int i = 0; i < Of::kColumns / 64; ++i) {
        load_b(b + i * (64 * kDepth * 2) + part * 128, column_of(i * 64), deep + part, full);
      }
    } else {
#pragma unroll
      for (int i = 0; i < kShare / kBoxColumns; ++i) {
        const int part = static_cast<int>(rank) * kShare + i * kBoxColumns;
        load_b(b + part * 128, deep, column_of(part), full);
      }
    }
  }
}

/// Gives a stage back to all that load into it.
template <int kCluster>
__device__ __forceinline__ void give_back(Mbarrier& empty, int lane) {
  if constexpr (kCluster == 1) {
    if (lane == 0) empty.arrive();
  } else {
    if (lane < kCluster) empty.arrive_at(lane);
  }
}

/// The sums of a warpgroup's part of a tile. One stage's products run while the next one's begin.
template <typename In, typename Of, typename Order>
__device__ __forceinline__ void multiply_tile(const Shared<In, Of, Order>& shared, int steps,
                                              int group, int lane, Ring<Of::kStages>& ring,
                                              float (&sums)[Of::kWaves][Of::kSums]) {
  using Step = Products<In, Of::kColumns, Order::kA, Order::kB>;
  constexpr unsigned kAlongA = Order::kA ? 2048 : 32, kAlongB = Order::kB ? 2048 : 32;
  constexpr unsigned kApart = 64 * kDepth * 2;
  const unsigned rows = Of::kAlternates ? 0 : group * Of::kGroupRows * 128;
  int previous = 0;
  for (int step = 0; step < steps; ++step) {
    shared.full[ring.stage].wait(ring.parity);
    const unsigned a = shared_address(shared.a(ring.stage)) + rows;
    const unsigned b = shared_address(shared.b(ring.stage));
    begin_products();
#pragma unroll
    for (int k = 0; k < kDepth / 16; ++k) {
#pragma unroll
      for (int wave = 0; wave < Of::kWaves; ++wave) {
        Step::add(sums[wave], matrix_descriptor(a + wave * kApart + k * kAlongA, kApart),
                  matrix_descriptor(b + k * kAlongB, kApart), step > 0 || k > 0);
      }
    }
    commit_products();
    // The parity of a stage tells two rounds apart, no more: the next tile's come after this one's.
    if (Of::kAlternates && step + 1 == steps && lane == 0) shared.turns[group ^ 1].arrive();
    wait_for_products<1>();
    if (step > 0) give_back<Of::kCluster>(shared.empty[previous], lane);
    previous = ring.stage;
    ring.advance();
  }
  wait_for_products<0>();
#pragma unroll
  for (int wave = 0; wave < Of::kWaves; ++wave) settle(sums[wave]);
  give_back<Of::kCluster>(shared.empty[previous], lane);
}

/// Four 8x8 matrices of a warp's 16-bit pairs, into rows whose addresses the lanes give.
__device__ __forceinline__ void store_matrices(unsigned address, const unsigned (&pairs)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
               "r"(pairs[0]), "r"(pairs[1]), "r"(pairs[2]), "r"(pairs[3])
               : "memory");
}

template <typename Out>
__device__ __forceinline__ unsigned pair_of(float low, float high) {
  return from_compute<Out>(low).bits | static_cast<unsigned>(from_compute<Out>(high).bits) << 16;
}

/// Bytes of a box of staging: rows of 128 bytes whose 16-byte units are swizzled.
__device__ __forceinline__ int swizzled(int row, int unit) {
  return row * 128 + ((unit ^ row) & 7) * 16;
}

/// A warp brings a box of c, or writes one of the result: what lies inside the matrix at `data`.
/// kPacked: its rows are whole units of 16 bytes.
template <typename Out, bool kLoads, bool kPacked>
__device__ __forceinline__ void move_box(unsigned char* box, Out* data, int row, int column,
                                         const Problem& of, int end, int lane) {
  const long long stride = of.columns;
  const bool whole = column + kSwizzled <= of.columns && of.columns % 8 == 0 &&
                     reinterpret_cast<unsigned long long>(data) % 16 == 0;
  if (kPacked || whole) {
#pragma unroll
    for (int i = 0; i < kWarpRows / 4; ++i) {
      const int r = i * 4 + lane / 8, unit = lane % 8;
      uint4* inside = reinterpret_cast<uint4*>(box + swizzled(r, unit));
      if (row + r >= end || (kPacked && column + unit * 8 >= of.columns)) continue;
      uint4* outside = reinterpret_cast<uint4*>(data + (row + r) * stride + column + unit * 8);
      if (kLoads) {
        *inside = *outside;
      } else {
        *outside = *inside;
      }
    }
  } else if constexpr (!kPacked) {
#pragma unroll 4
    for (int i = 0; i < kWarpRows * 2; ++i) {
      const int r = i / 2, c = i % 2 * 32 + lane;
      Out* inside = reinterpret_cast<Out*>(box + swizzled(r, c / 8)) + c % 8;
      if (row + r >= end || column + c >= of.columns) continue;
      Out* outside = data + (row + r) * stride + column + c;
      if (kLoads) {
        *inside = *outside;
      } else {
        *outside = *inside;
      }
    }
  }
}

/// Columns of the result that a tile makes, and from a sum to that of its second half.
template <typename Of, typename Finish>
__device__ constexpr int columns_of() {
  return Of::kColumns / (Finish::kGated ? 2 : 1);
}
template <typename Of, typename Finish>
__device__ constexpr int paired() {
  return Finish::kGated ? Of::kSums / 2 : 0;
}

/// The sums of a thread of a box as pairs of 16-bit numbers: 8 columns, then 8 rows apart. `box`
/// holds c. The sums of the second half of a gated tile are kPaired behind.
template <typename Out, typename Finish, int kPaired>
__device__ __forceinline__ void finish_box(const float* sums, const unsigned char* box,
                                           const Target& to, int row, int column, int lane,
                                           unsigned (&pairs)[kSwizzled / 8][2]) {
#pragma unroll
  for (int i = 0; i < kSwizzled / 8; ++i) {
    const int at = column + i * 8 + lane % 4 * 2;
    const auto bias = Finish::biases(to.with, at, to.of.columns);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float c[2] = {};
      if constexpr (Finish::kHasC) {
        const int r = lane / 4 + half * 8;
        const Out* two = reinterpret_cast<const Out*>(box + swizzled(r, i)) + lane % 4 * 2;
        if (row + r < to.end) {
          if (at < to.of.columns) c[0] = to_compute(two[0]);
          if (at + 1 < to.of.columns) c[1] = to_compute(two[1]);
        }
      }
      const float* sum = sums + i * 4 + half * 2;
      const auto end = [&](int k) {
        return Finish::finish(to.with, sum[k], sum[k + kPaired], bias, k, c[k]);
      };
      pairs[i][half] = pair_of<Out>(end(0), end(1));
    }
  }
}

/// A warp's 16 rows from `row` on, box by box through shared memory. Two boxes take turns. kRagged:
/// behind the tile's rows are others, which copies of boxes would overwrite.
template <typename Of, typename Out, Store kStore, typename Finish, bool kRagged>
__device__ __forceinline__ void store_rows(const float (&sums)[Of::kSums], unsigned char* staging,
                                           const Target& to, int row, int first_column, int z,
                                           int lane, int& turn) {
#pragma unroll
  for (int chunk = 0; chunk < columns_of<Of, Finish>() / kSwizzled; ++chunk) {
    const int column = first_column + chunk * kSwizzled;
    unsigned char* box = staging + turn * kBox;
    turn ^= 1;
    if (kStore == kByCopies && lane == 0) wait_for_reads_of_stores<1>();
    __syncwarp();
    if constexpr (Finish::kHasC) {
      Out* c = static_cast<Out*>(const_cast<void*>(to.with.c)) + to.offset(z);
      move_box<Out, true, false>(box, c, row, column, to.of, to.end, lane);
      __syncwarp();
    }
    unsigned pairs[kSwizzled / 8][2];
    finish_box<Out, Finish, paired<Of, Finish>()>(sums + chunk * (kSwizzled / 2), box, to, row,
                                                  column, lane, pairs);
    if constexpr (Finish::kHasC) __syncwarp();
#pragma unroll
    for (int i = 0; i < kSwizzled / 8; i += 2) {
      const unsigned four[4] = {pairs[i][0], pairs[i][1], pairs[i + 1][0], pairs[i + 1][1]};
      store_matrices(shared_address(box + swizzled(lane % 16, i + lane / 16)), four);
    }
    const bool copied = kStore == kByCopies && (!kRagged || row + kWarpRows <= to.end);
    if (copied) show_to_copies();
    __syncwarp();
    if (!copied) {
      move_box<Out, false, kStore == kByCopies>(box, static_cast<Out*>(to.out) + to.offset(z), row,
                                                column, to.of, to.end, lane);
    }
    if (kStore == kByCopies && lane == 0) {
      if (copied && row < to.end && column < to.of.columns) {
        store_box(to.map, box, column, row, z);
      }
      commit_stores();  // also of nothing: the waits count groups
    }
  }
}

/// The same in float32 from registers: four threads write 32 bytes of a row.
template <typename Of, typename Finish>
__device__ __forceinline__ void store_floats(const float (&sums)[Of::kSums], const Target& to,
                                             int row, int first_column, int z, int lane) {
  const int columns = to.of.columns;
  const bool by_two = columns % 2 == 0;
  float* out = static_cast<float*>(to.out) + to.offset(z);
  const float* added = static_cast<const float*>(to.with.c) + to.offset(z);
#pragma unroll
  for (int i = 0; i < columns_of<Of, Finish>() / 8; ++i) {
    const int column = first_column + i * 8 + lane % 4 * 2;
    if (column >= columns) continue;
    const bool second = column + 1 < columns;
    const auto bias = Finish::biases(to.with, column, columns);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int r = row + lane / 4 + half * 8;
      if (r >= to.end) continue;
      const long long at = static_cast<long long>(r) * columns + column;
      float c[2] = {};
      if constexpr (Finish::kHasC) {
        c[0] = added[at];
        if (second) c[1] = added[at + 1];
      }
      const float* sum = &sums[i * 4 + half * 2];
      const auto end = [&](int k) {
        return Finish::finish(to.with, sum[k], sum[k + paired<Of, Finish>()], bias, k, c[k]);
      };
      const float low = end(0), high = end(1);
      if (by_two && second) {
        *reinterpret_cast<float2*>(out + at) = make_float2(low, high);
      } else {
        out[at] = low;
        if (second) out[at + 1] = high;
      }
    }
  }
}

/// The first row of this block's tile.
template <typename Of, typename Schedule>
__device__ __forceinline__ int top_row(const Schedule& schedule, const Place& at, unsigned rank) {
  return schedule.first_row(at) + (at.row * Of::kCluster + static_cast<int>(rank)) * Of::kRows;
}

/// A warpgroup that multiplies, tile after tile.
template <typename In, typename Out, typename Of, typename Order, Store kStore, typename Finish,
          typename Schedule>
__device__ __forceinline__ void multiply(const Shared<In, Of, Order>& shared, const TensorMap& map,
                                         void* out, const ProductEpilogueValues& with,
                                         const Schedule& schedule, unsigned rank, int first,
                                         int apart, int tiles) {
  const Problem& of = schedule.of;
  const int thread = threadIdx.x - 128, group = thread / 128, lane = thread % 32;
  const int warp = thread / 32 % 4;
  unsigned char* staging =
      shared.base + Of::kStages * Of::kStageBytes + thread / 32 * kStagingOf<Out>(kStore);
  Ring<Of::kStages> ring;
  int turn = 0, number = 0;
  for (int tile = first; tile < tiles; tile += apart, ++number) {
    const Place at = schedule.place(tile);
    const int begin = at.split * of.steps_of_split;
    const int steps = min(of.steps_of_split, of.steps - begin);
    if (Of::kAlternates && number % 2 != group) {
      ring.advance(steps);
      continue;
    }
    if (Of::kAlternates) shared.turns[group].wait((number / 2 + group + 1) & 1);
    float sums[Of::kWaves][Of::kSums];
    multiply_tile<In, Of, Order>(shared, steps, group, lane, ring, sums);
    const int z = schedule.matrix(at);
    const int top = top_row<Of>(schedule, at, rank) +
                    (Of::kAlternates ? 0 : group * Of::kGroupRows) + warp * kWarpRows;
    ProductEpilogueValues ending = with;
    if (Schedule::kGrouped) ending.bias = Finish::bias_of(with, at.batch, of.columns);
    const Target to{map, out, ending, of, schedule.end_row(at)};
#pragma unroll
    for (int wave = 0; wave < Of::kWaves; ++wave) {
      if constexpr (kStore == kDirect) {
        store_floats<Of, Finish>(sums[wave], to, top + wave * 64,
                                 at.column * columns_of<Of, Finish>(), z, lane);
      } else {
        store_rows<Of, Out, kStore, Finish, Schedule::kGrouped>(
            sums[wave], staging, to, top + wave * 64, at.column * columns_of<Of, Finish>(), z, lane,
            turn);
      }
    }
  }
  if (kStore == kByCopies && lane == 0) wait_for_reads_of_stores<0>();
}

/// Of::kThreads threads; blocks in clusters of Of::kCluster. Dynamic shared memory: the stages, the
/// staging of each multiplying warp, two barriers for each stage and two more, and the table of a
/// Grouped<Problem>.
template <typename In, typename Out, typename Of, typename Order, Store kStore, typename Finish,
          typename Work = Problem>
__global__ void __launch_bounds__(Of::kThreads, 1)
    gemm(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
         const __grid_constant__ TensorMap map_out, void* out, const ProductEpilogueValues with,
         const Work work) {
  extern __shared__ __align__(1024) unsigned char storage[];
  const Shared<In, Of, Order> shared(storage, Of::kGroups * 4 * kStagingOf<Out>(kStore));
  const Problem& of = ScheduleOf<Work>::sizes(work);
  const typename ScheduleOf<Work>::Type schedule(work, shared.turns + 2);
  const unsigned rank = Of::kCluster == 1 ? 0 : cluster_rank();
  if (threadIdx.x == 0) {
    prefetch(map_a);
    prefetch(map_b);
    if (kStore == kByCopies) prefetch(map_out);
    constexpr int kTakers = (Of::kAlternates ? 1 : Of::kGroups) * 4 * Of::kCluster;
    for (int stage = 0; stage < Of::kStages; ++stage) {
      shared.full[stage].init(1);
      shared.empty[stage].init(kTakers);
    }
    if constexpr (Of::kAlternates) {
      for (int group = 0; group < 2; ++group) shared.turns[group].init(4);
    }
    Mbarrier::publish();
  }
  if (threadIdx.x / 32 == 1) schedule.prepare(Of::kRows * Of::kCluster);
  if constexpr (Of::kCluster == 1) {
    __syncthreads();
  } else {
    cluster_sync();
  }
  const int first = blockIdx.x / Of::kCluster, apart = gridDim.x / Of::kCluster;
  const int tiles = schedule.count();
  if (threadIdx.x < 128) {
    if constexpr (Of::kGroups > 1) asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 0) {
      Ring<Of::kStages> ring;
      for (int tile = first; tile < tiles; tile += apart) {
        const Place at = schedule.place(tile);
        const int begin = at.split * of.steps_of_split;
        load_tile<In, Of, Order, Finish::kGated>(
            shared, map_a, map_b, of, at, top_row<Of>(schedule, at, rank), begin,
            min(begin + of.steps_of_split, of.steps), rank, ring);
      }
    }
  } else {
    if constexpr (Of::kGroups > 1) asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    multiply<In, Out, Of, Order, kStore, Finish>(shared, map_out, out, with, schedule, rank, first,
                                                 apart, tiles);
  }
  // The other blocks of the cluster arrive here as long as they multiply.
  if constexpr (Of::kCluster > 1) cluster_sync();
}
