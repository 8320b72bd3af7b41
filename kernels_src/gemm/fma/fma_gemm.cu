// Matrix products of float32 and float64 by fused multiply-adds, exact to a rounding each: threads
// copy tiles into a ring of stages without waiting, and hold a part of the result in registers.
#include <kernwright/elements.cuh>
#include <kernwright/product_epilogue.cuh>
#include <kernwright/product_tiles.cuh>
#include <kernwright/tensor_core.cuh>

using namespace kernwright;

constexpr int kMaxBatchDims = 6;
constexpr int kLanesDown = 4, kLanesAcross = 8;  // of a warp
constexpr int kRun = 8;                          // steps of a line copied by neighbouring threads

/// rows x columns of the result are made by a block whose threads have thread_rows x thread_columns
/// each. `depth`: steps of the inner dimension in a stage. Of 32 steps two slices of the threads
/// sum half each, so that small tiles have enough warps.
template <typename T, int rows, int columns, int thread_rows, int thread_columns, int depth,
          int stages>
struct Tile {
  static constexpr int kRows = rows, kColumns = columns, kDepth = depth, kStages = stages;
  static constexpr int kThreadRows = thread_rows, kThreadColumns = thread_columns;
  static constexpr int kWarpRows = thread_rows * kLanesDown;
  static constexpr int kWarpColumns = thread_columns * kLanesAcross;
  static constexpr int kWarpsAcross = columns / kWarpColumns;
  static constexpr int kSlices = depth == 32 ? 2 : 1, kSteps = depth / kSlices;
  static constexpr int kWarps = rows / kWarpRows * kWarpsAcross;  // of a slice
  static constexpr int kThreads = kWarps * kSlices * 32;
  static constexpr int kPack = 16 / sizeof(T);  // of accesses of 16 bytes
  // Elements of a step; copies of single elements along the steps meet different banks.
  static constexpr int kLineA = rows + kPack, kLineB = columns + kPack;
  static constexpr int kStage = depth * (kLineA + kLineB);
  static constexpr bool kFew = thread_rows * thread_columns * sizeof(T) <= 256;
  static constexpr int kBlocks = (kFew ? 512 : 256) / kThreads;  // on one multiprocessor
};

/// How an operand is copied. The lines of an operand are the rows of a and the columns of b.
enum Way {
  kPacks,   // 16 bytes of neighbouring lines at once
  kAcross,  // neighbouring threads have neighbouring lines
  kAlong    // neighbouring threads have neighbouring steps of a line
};

/// Bytes between lines, and between steps of the inner dimension.
struct Side {
  const unsigned char* data;
  long long line, step;
};

/// The dimensions in front, the innermost first, with strides in bytes.
struct Batch {
  long long extent[kMaxBatchDims], a[kMaxBatchDims], b[kMaxBatchDims];
  int ndim;
};

struct Problem {
  int rows, columns;
  int steps, split_steps;  // of one element of the inner dimension
  int row_tiles, column_tiles;
  int group;  // row tiles whose columns are walked together
  int batches, splits;
  int packs;  // rows of the result and of c begin at multiples of a pack
};

/// The first `bytes` of kBytes to shared memory, zeros behind them, without waiting.
template <int kBytes>
__device__ __forceinline__ void copy_part(unsigned to, const void* from, int bytes) {
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(kBytes),
                 "r"(bytes)
                 : "memory");
  }
}

/// A thread's part of one operand's stages, each kDepth steps of kLines lines, kLine elements
/// apart.
template <typename T, int kLines, int kLine, int kDepth, int kThreads, Way kWay>
struct Copier {
  static constexpr int kSize = sizeof(T), kPack = kWay == kPacks ? 16 / kSize : 1;
  // Threads are neighbours along the fast extent; the slow one is walked kApart at a time.
  static constexpr int kFast = kWay == kAlong ? kRun : kLines / kPack;
  static constexpr int kSlow = kWay == kAlong ? kLines : kDepth;
  static constexpr int kApart = kThreads / kFast, kCopies = (kSlow + kApart - 1) / kApart;
  static constexpr int kRuns = kWay == kAlong ? kDepth / kRun : 1;
  static constexpr int kCopyLine = kWay == kAlong ? 1 : kLine;
  static_assert(kThreads % kFast == 0 && kDepth % kRun == 0 && kCopies <= 32);
  const unsigned char* from;
  long long apart, run, stage;  // bytes
  int left;                     // steps from the thread's first on
  int bytes;                    // of the thread's lines, along the fast extent
  unsigned inside;              // a bit for each line, along the slow extent
  unsigned to;

  __device__ Copier(const Side& side, long long line, int lines, int step, int steps) {
    const int fast = threadIdx.x % kFast, slow = threadIdx.x / kFast;
    const int thread_line = kWay == kAlong ? slow : fast * kPack;
    const int thread_step = kWay == kAlong ? fast : slow;
    from = side.data + (line + thread_line) * side.line +
           (step + static_cast<long long>(thread_step)) * side.step;
    apart = kApart * (kWay == kAlong ? side.line : side.step);
    run = kRun * side.step;
    stage = kDepth * side.step;
    left = steps - thread_step;
    bytes = min(max(lines - thread_line, 0), kPack) * kSize;
    inside = 0;
#pragma unroll
    for (int i = 0; i < kCopies; ++i) inside |= (thread_line + i * kApart < lines ? 1u : 0u) << i;
    to = (thread_step * kLine + thread_line) * kSize;
  }
  /// The next stage, to shared memory at `tile`; zeros behind the end. kWhole: all of a stage is
  /// there, or nothing.
  template <bool kWhole>
  __device__ __forceinline__ void load(unsigned tile) {
    constexpr int kAll = kPack * kSize;
#pragma unroll
    for (int j = 0; j < kRuns; ++j) {
#pragma unroll
      for (int i = 0; i < kCopies; ++i) {
        if (kSlow % kApart != 0 && threadIdx.x / kFast + i * kApart >= kSlow) break;
        const unsigned at = tile + to + (j * kRun * kLine + i * kApart * kCopyLine) * kSize;
        const int step = kWay == kAlong ? j * kRun : i * kApart;
        int size = bytes;
        if constexpr (kWhole) {
          size = left > 0 ? kAll : 0;
        } else if constexpr (kWay == kAlong) {
          size = step < left && (inside >> i & 1) ? kAll : 0;
        } else {
          size = step < left ? bytes : 0;
        }
        copy_part<kAll>(at, from + j * run + i * apart, size);
      }
    }
    from += stage;
    left -= kDepth;
  }
};

__device__ __forceinline__ void move_to(const Batch& batch, long long index, Side& a, Side& b) {
#pragma unroll 1  // divisions are long
  for (int d = 0; d < batch.ndim; ++d) {
    const long long at = index % batch.extent[d];
    index /= batch.extent[d];
    a.data += at * batch.a[d];
    b.data += at * batch.b[d];
  }
}

/// kCount elements of a step: packs at distances of kLanes packs.
template <int kCount, int kLanes, typename T>
__device__ __forceinline__ void load_part(T (&to)[kCount], const T* from) {
  constexpr int kPack = 16 / sizeof(T);
#pragma unroll
  for (int g = 0; g < kCount / kPack; ++g) {
    const Pack<T, kPack> some = *reinterpret_cast<const Pack<T, kPack>*>(from + g * kLanes * kPack);
#pragma unroll
    for (int i = 0; i < kPack; ++i) to[g * kPack + i] = some.value[i];
  }
}

__device__ __forceinline__ float multiply_add(float x, float y, float sum) {
  return fmaf(x, y, sum);
}
__device__ __forceinline__ double multiply_add(double x, double y, double sum) {
  return fma(x, y, sum);
}

template <typename Out, typename Finish>
__device__ __forceinline__ Out finished(const TileEpilogueValues& epilogue, float sum,
                                        const Biases& bias, int k, float c) {
  return ended_as<Out>(Finish::finish(epilogue, sum, 0, bias, k, c));
}
/// Nothing follows accumulators of float64.
template <typename Out, typename Finish>
__device__ __forceinline__ Out finished(const TileEpilogueValues&, double sum, const Biases&, int,
                                        float) {
  return static_cast<Out>(sum);
}

/// A pack of neighbouring columns of a row; there are `many`.
template <typename Out, typename Finish, int kPack, typename T>
__device__ __forceinline__ void store_pack(const T* accumulators, Out* out, const Out* c,
                                           const TileEpilogueValues& epilogue,
                                           const Biases (&bias)[kPack / 2], int many, bool whole) {
  Pack<Out, kPack> result, added;
  if constexpr (Finish::kHasC) {
    if (whole) added = *reinterpret_cast<const Pack<Out, kPack>*>(c);
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      if (!whole && i < many) added.value[i] = c[i];
    }
  }
#pragma unroll
  for (int i = 0; i < kPack; ++i) {
    float more = 0;
    if constexpr (Finish::kHasC) {
      if (i < many) more = to_compute(added.value[i]);
    }
    result.value[i] = finished<Out, Finish>(epilogue, accumulators[i], bias[i / 2], i % 2, more);
  }
  if (whole) {
    *reinterpret_cast<Pack<Out, kPack>*>(out) = result;
    return;
  }
#pragma unroll
  for (int i = 0; i < kPack; ++i) {
    if (i < many) out[i] = result.value[i];
  }
}

/// Stores a thread's accumulators in rows kFirst to kEnd, before row `end` of the result; the first
/// element is at `row` and `column`. kWhole: all elements are in the result, which takes packs.
template <typename Out, typename Finish, typename Tiling, bool kWhole, int kFirst, int kEnd,
          typename T>
__device__ __forceinline__ void store_fragments(
    const T (&accumulators)[Tiling::kThreadRows][Tiling::kThreadColumns], Out* out, const Out* c,
    const TileEpilogueValues& epilogue, const Problem& problem, int end, int row, int column) {
  constexpr int kPack = Tiling::kPack;
#pragma unroll
  for (int j = 0; j < Tiling::kThreadColumns; j += kPack) {
    const int at_column = column + j * kLanesAcross;
    const int many = kWhole ? kPack : problem.columns - at_column;
    if (many <= 0) break;
    Biases bias[kPack / 2];
#pragma unroll
    for (int p = 0; p < kPack / 2; ++p) {
      bias[p] = Finish::biases(epilogue, at_column + 2 * p, problem.columns);
    }
#pragma unroll
    for (int i = kFirst; i < kEnd; ++i) {
      const int at_row = row + i / kPack * kPack * kLanesDown + i % kPack;
      if (!kWhole && at_row >= end) break;
      const long long index = static_cast<long long>(at_row) * problem.columns + at_column;
      store_pack<Out, Finish, kPack>(&accumulators[i][j], out + index, c + index, epilogue, bias,
                                     many, kWhole || problem.packs != 0);
    }
  }
}

/// Adds the accumulators of two slices: each thread gives half of its rows, here from kFirst on, to
/// a partner through shared memory, and keeps the second half. Single elements are stored: packs
/// would tie accumulators to neighbouring registers, whose reads collide with the fragments of y in
/// the loop.
template <typename Tiling, int kFirst, typename T>
__device__ __forceinline__ void give_half(
    const T (&accumulators)[Tiling::kThreadRows][Tiling::kThreadColumns], T* shared) {
  constexpr int kApart = Tiling::kWarps * 32, kColumns = Tiling::kThreadColumns;
  static_assert(Tiling::kRows * Tiling::kColumns <= Tiling::kStages * Tiling::kStage);
#pragma unroll
  for (int i = kFirst; i < kFirst + Tiling::kThreadRows / 2; ++i) {
#pragma unroll
    for (int j = 0; j < kColumns; ++j) shared[(i * kColumns + j) * kApart] = accumulators[i][j];
  }
}

/// Adds what the other slice gave to the half from kFirst on.
template <typename Tiling, int kFirst, typename T>
__device__ __forceinline__ void take_half(
    T (&accumulators)[Tiling::kThreadRows][Tiling::kThreadColumns], const T* shared) {
  constexpr int kApart = Tiling::kWarps * 32, kColumns = Tiling::kThreadColumns;
#pragma unroll
  for (int i = kFirst; i < kFirst + Tiling::kThreadRows / 2; ++i) {
#pragma unroll
    for (int j = 0; j < kColumns; ++j) accumulators[i][j] += shared[(i * kColumns + j) * kApart];
  }
}

/// Launched with Tiling::kThreads threads, a block for each tile. kWhole: no tile or stage is cut
/// off, and rows of c begin at multiples of a pack; products of groups are never whole. Dynamic
/// shared memory has the stages and, for groups, their table. Groups may have fewer tiles than
/// there are blocks; a block without a tile ends at once.
template <typename T, typename Out, typename Tiling, Way kWayA, Way kWayB, bool kWhole,
          typename Finish, typename Work = Problem>
__global__ void __launch_bounds__(Tiling::kThreads, Tiling::kBlocks)
    fma_gemm(Side a, Side b, const Batch batch, void* out, const TileEpilogueValues epilogue,
             const Work work) {
  extern __shared__ __align__(16) unsigned char storage[];
  constexpr int kStageBytes = Tiling::kStage * sizeof(T);
  using Schedule = typename ScheduleTraits<Work>::Type;
  const Problem& problem = ScheduleTraits<Work>::sizes(work);
  const Schedule schedule(work, storage + Tiling::kStages * kStageBytes);
  if constexpr (Schedule::kPrepares) {
    if (threadIdx.x < 32) schedule.prepare(Tiling::kRows);
    __syncthreads();
    if (static_cast<int>(blockIdx.x) >= schedule.count()) return;
  }
  const Place place = schedule.place(static_cast<int>(blockIdx.x));
  const auto [first, inner] = schedule.depth(place, 1);
  const int end = schedule.end_row(place);
  const int row = schedule.first_row(place) + place.row * Tiling::kRows;
  const int column = place.column * Tiling::kColumns;
  move_to(batch, place.batch, a, b);
  Copier<T, Tiling::kRows, Tiling::kLineA, Tiling::kDepth, Tiling::kThreads, kWayA> copy_a(
      a, row, end - row, first, inner);
  Copier<T, Tiling::kColumns, Tiling::kLineB, Tiling::kDepth, Tiling::kThreads, kWayB> copy_b(
      b, column, problem.columns - column, first, inner);
  const unsigned stages = shared_address(storage);
  // Stages behind the last are zeros: no step is a special case.
  const auto load = [&](unsigned stage) {
    copy_a.template load<kWhole>(stages + stage);
    copy_b.template load<kWhole>(stages + stage + Tiling::kDepth * Tiling::kLineA * sizeof(T));
    commit_copies();
  };
#pragma unroll
  for (int stage = 0; stage < Tiling::kStages - 1; ++stage) load(stage * kStageBytes);
  const int warp = threadIdx.x / 32 % Tiling::kWarps, lane = threadIdx.x % 32;
  const int slice = threadIdx.x / 32 / Tiling::kWarps;
  // Neighbouring lanes read equal parts of a, lanes two apart equal parts of b: a load of 16 bytes
  // a lane takes half the time.
  const int lane_row = (lane >> 1 & 1) | (lane >> 3 & 2);
  const int lane_column = (lane & 1) | (lane >> 1 & 6);
  const int thread_row = warp / Tiling::kWarpsAcross * Tiling::kWarpRows + lane_row * Tiling::kPack;
  const int thread_column =
      warp % Tiling::kWarpsAcross * Tiling::kWarpColumns + lane_column * Tiling::kPack;
  const int thread_step = slice * Tiling::kSteps;
  const unsigned char* const left =
      storage + (thread_step * Tiling::kLineA + thread_row) * sizeof(T);
  const unsigned char* const right =
      storage +
      (Tiling::kDepth * Tiling::kLineA + thread_step * Tiling::kLineB + thread_column) * sizeof(T);
  T x[2][Tiling::kThreadRows], y[2][Tiling::kThreadColumns];
  T accumulators[Tiling::kThreadRows][Tiling::kThreadColumns] = {};
  const auto fetch = [&](int slot, unsigned stage, int k) {
    load_part<Tiling::kThreadRows, kLanesDown>(
        x[slot], reinterpret_cast<const T*>(left + stage) + k * Tiling::kLineA);
    load_part<Tiling::kThreadColumns, kLanesAcross>(
        y[slot], reinterpret_cast<const T*>(right + stage) + k * Tiling::kLineB);
  };
  wait_copies<Tiling::kStages - 2>();
  __syncthreads();
  fetch(0, 0, 0);
  unsigned read = 0, written = (Tiling::kStages - 1) * kStageBytes;
#pragma unroll 1
  for (int done = 0; done < inner; done += Tiling::kDepth) {
    load(written);
#pragma unroll
    for (int k = 0; k < Tiling::kSteps; ++k) {
      if (k + 1 < Tiling::kSteps) {
        fetch((k + 1) % 2, read, k + 1);
      } else {
        wait_copies<Tiling::kStages - 2>();
        __syncthreads();  // the next stage has come, and this one is free
        written = read;
        read = read == (Tiling::kStages - 1) * kStageBytes ? 0 : read + kStageBytes;
        fetch(0, read, 0);
      }
      // Back and forth: of two neighbours, one has an operand that the other read.
#pragma unroll
      for (int i = 0; i < Tiling::kThreadRows; ++i) {
#pragma unroll
        for (int n = 0; n < Tiling::kThreadColumns; ++n) {
          const int j = i % 2 == 0 ? n : Tiling::kThreadColumns - 1 - n;
          accumulators[i][j] = multiply_add(x[k % 2][i], y[k % 2][j], accumulators[i][j]);
        }
      }
    }
  }
  wait_copies<0>();
  const long long before =
      static_cast<long long>(schedule.matrix(place)) * problem.rows * problem.columns;
  TileEpilogueValues tile_epilogue = epilogue;
  if (Schedule::kGrouped) {
    tile_epilogue = batch_epilogue<Finish>(epilogue, place.batch, problem.columns);
  }
  Out* const target = static_cast<Out*>(out) + before;
  const Out* const c = static_cast<const Out*>(epilogue.c) + before;
  const int first_row = row + thread_row, first_column = column + thread_column;
  constexpr int kEnd = Tiling::kThreadRows, kHalf = kEnd / 2;
  if constexpr (Tiling::kSlices == 1) {
    store_fragments<Out, Finish, Tiling, kWhole, 0, kEnd>(accumulators, target, c, tile_epilogue,
                                                          problem, end, first_row, first_column);
  } else {
    T* const shared = reinterpret_cast<T*>(storage) + threadIdx.x % (Tiling::kWarps * 32);
    __syncthreads();  // nobody reads stages any more
    if (slice == 0) {
      give_half<Tiling, kHalf>(accumulators, shared);
    } else {
      give_half<Tiling, 0>(accumulators, shared);
    }
    __syncthreads();
    if (slice == 0) {
      take_half<Tiling, 0>(accumulators, shared);
      store_fragments<Out, Finish, Tiling, kWhole, 0, kHalf>(accumulators, target, c, tile_epilogue,
                                                             problem, end, first_row, first_column);
    } else {
      take_half<Tiling, kHalf>(accumulators, shared);
      store_fragments<Out, Finish, Tiling, kWhole, kHalf, kEnd>(
          accumulators, target, c, tile_epilogue, problem, end, first_row, first_column);
    }
  }
}
