// Matrix products by the warp's matrix instructions of sm_80 and newer: threads copy tiles into a
// ring of stages without waiting, warps multiply them from fragments (ldmatrix, mma.sync).
#include <kernwright/elements.cuh>
#include <kernwright/product_epilogue.cuh>
#include <kernwright/product_tiles.cuh>
#include <kernwright/tensor_core.cuh>

using namespace kernwright;

constexpr int kDepth = 64;  // bytes of a stage along the inner dimension
constexpr int kStep = 32;   // bytes that one matrix instruction takes of it

/// rows x columns of the result are made by a block whose warps have warp_rows x warp_columns each.
template <int rows, int columns, int warp_rows, int warp_columns, int stages>
struct Tile {
  static constexpr int kRows = rows, kColumns = columns, kStages = stages;
  static constexpr int kWarpRows = warp_rows, kWarpColumns = warp_columns;
  static constexpr int kWarpsDown = rows / warp_rows, kWarpsAcross = columns / warp_columns;
  static constexpr int kThreads = kWarpsDown * kWarpsAcross * 32;
  static constexpr int kBytesA = rows * kDepth, kStageBytes = (rows + columns) * kDepth;
  static constexpr int kHigh = warp_rows / 16, kWide = warp_columns / 8;  // accumulators of a warp
  static constexpr int kBlocks = kThreads <= 128 ? 2 : 1;  // that share a multiprocessor
};

/// The contiguous dimension of the operands: if set, not the inner one. For 16-bit types only.
template <bool kTurnA, bool kTurnB>
struct Layout {
  static constexpr bool kA = kTurnA, kB = kTurnB;
};

/// Lines of elements that follow each other, `stride` bytes apart; of a batch in two dimensions.
struct Side {
  const unsigned char* data;
  long long stride, inner_step, outer_step;
  long long lines, line_bytes;
};

struct Problem {
  int rows, columns;
  int steps, split_steps;  // of kDepth
  int row_tiles, column_tiles;
  int group;  // row tiles whose columns are walked together
  int batches, splits, inner_batches;
};

/// Scales of float8 in blocks of kBlock elements of a line of a, of kBlock lines of b; steps in
/// elements.
struct BlockScales {
  const float *a, *b;
  long long a_line_step, a_inner_step, b_line_step, b_inner_step;
};
constexpr int kBlock = 128;

/// The product of kStep bytes of In by a multiprocessor's matrix unit.
template <typename In>
struct Unit {
  using Accumulator = float;
  __device__ static __forceinline__ void prepare(unsigned (&)[4]) {}
  __device__ static __forceinline__ void multiply(float (&sum)[4], const unsigned (&left)[4],
                                                  unsigned right0, unsigned right1) {
    MatrixUnit<In>::multiply(sum, left, right0, right1);
  }
};
/// Rounded to the 11 bits of tf32.
template <>
struct Unit<Float32> {
  using Accumulator = float;
  __device__ static __forceinline__ void prepare(unsigned (&values)[4]) {
#pragma unroll
    for (unsigned& value : values) {
      asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(value) : "f"(__uint_as_float(value)));
    }
  }
  __device__ static __forceinline__ void multiply(float (&sum)[4], const unsigned (&left)[4],
                                                  unsigned right0, unsigned right1) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, "
        "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right0), "r"(right1));
  }
};
template <>
struct Unit<Int8> {
  using Accumulator = int;
  __device__ static __forceinline__ void prepare(unsigned (&)[4]) {}
  __device__ static __forceinline__ void multiply(int (&sum)[4], const unsigned (&left)[4],
                                                  unsigned right0, unsigned right1) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, "
        "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
        : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right0), "r"(right1));
  }
};
#if __CUDA_ARCH__ >= 890
template <>
struct Unit<Float8E4M3> {
  using Accumulator = float;
  __device__ static __forceinline__ void prepare(unsigned (&)[4]) {}
  __device__ static __forceinline__ void multiply(float (&sum)[4], const unsigned (&left)[4],
                                                  unsigned right0, unsigned right1) {
    asm("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0, %1, %2, %3}, "
        "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right0), "r"(right1));
  }
};
template <>
struct Unit<Float8E5M2> {
  using Accumulator = float;
  __device__ static __forceinline__ void prepare(unsigned (&)[4]) {}
  __device__ static __forceinline__ void multiply(float (&sum)[4], const unsigned (&left)[4],
                                                  unsigned right0, unsigned right1) {
    asm("mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32 {%0, %1, %2, %3}, "
        "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right0), "r"(right1));
  }
};
#endif

/// The first `bytes` of 16 to shared memory, zeros behind them, without waiting.
__device__ __forceinline__ void copy_some(unsigned to, const void* from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes)
               : "memory");
}

/// A thread's part of one operand's tiles, stage after stage: kLines lines of kChunks x 16 bytes. A
/// stage goes on along the lines, or with kTurned to the lines that follow.
template <int kLines, int kChunks, int kThreads, bool kTurned>
struct Copier {
  static constexpr int kApart = kThreads / kChunks;  // lines of the thread
  static_assert(kThreads % kChunks == 0 && kLines % kApart == 0);
  const unsigned char* data;
  const unsigned char* from;
  long long stride, left;  // bytes of the line, from `from` on
  long long lines;         // from the thread's own on
  int thread_line, chunk;

  __device__ Copier(const Side& side, long long batch, long long line, long long byte)
      : data(side.data), stride(side.stride) {
    thread_line = threadIdx.x / kChunks;
    chunk = threadIdx.x % kChunks;
    from = side.data + batch + (line + thread_line) * stride + byte + chunk * 16;
    left = side.line_bytes - byte - chunk * 16;
    lines = side.lines - line - thread_line;
  }
  __device__ __forceinline__ void load(unsigned tile) const {
    const int bytes = static_cast<int>(left >= 16 ? 16 : left > 0 ? left : 0);
#pragma unroll
    for (int i = 0; i < kLines / kApart; ++i) {
      const int some = i * kApart < lines ? bytes : 0;
      copy_some(tile + 16 * swizzled<kChunks>(thread_line + i * kApart, chunk),
                some > 0 ? from + i * kApart * stride : data, some);
    }
  }
  __device__ __forceinline__ void advance() {
    if (kTurned) {
      from += kLines * stride;
      lines -= kLines;
    } else {
      from += kDepth;
      left -= kDepth;
    }
  }
};

/// A stage into the accumulators of a warp, whose tile begins at `row` and `column` of the block's.
template <typename In, typename TileType, typename Order, typename Accumulator>
__device__ __forceinline__ void multiply_stage(
    unsigned a, unsigned b, int row, int column,
    Accumulator (&accumulators)[TileType::kHigh][TileType::kWide][4]) {
#pragma unroll
  for (int step = 0; step < kDepth / kStep; ++step) {
    unsigned left[TileType::kHigh][4];
#pragma unroll
    for (int i = 0; i < TileType::kHigh; ++i) {
      if constexpr (Order::kA) {
        load_left_transposed<TileType::kRows>(left[i], a, step, row + i * 16);
      } else {
        load_left<kDepth / 2>(left[i], a, row + i * 16, step);
      }
      Unit<In>::prepare(left[i]);
    }
#pragma unroll
    for (int j = 0; j < TileType::kWide; j += 2) {
      unsigned right[4];
      if constexpr (Order::kB) {
        load_right_transposed<TileType::kColumns>(right, b, step, column + j * 8);
      } else {
        load_right<kDepth / 2>(right, b, column + j * 8, step);
      }
      Unit<In>::prepare(right);
#pragma unroll
      for (int i = 0; i < TileType::kHigh; ++i) {
        Unit<In>::multiply(accumulators[i][j], left[i], right[0], right[1]);
        Unit<In>::multiply(accumulators[i][j + 1], left[i], right[2], right[3]);
      }
    }
  }
}

/// Four threads write eight columns of a row, for rows before row `end`.
template <typename Out, typename Finish, typename TileType, typename Accumulator>
__device__ __forceinline__ void store_fragments(
    const Accumulator (&accumulators)[TileType::kHigh][TileType::kWide][4], Out* out, const Out* c,
    const TileEpilogueValues& epilogue, const Problem& problem, int end, int row, int column) {
  const int lane = threadIdx.x % 32;
  const bool by_two = problem.columns % 2 == 0;
#pragma unroll
  for (int j = 0; j < TileType::kWide; ++j) {
    const int at_column = column + j * 8 + lane % 4 * 2;
    if (at_column >= problem.columns) continue;
    const bool second = at_column + 1 < problem.columns;
    const Biases bias = Finish::biases(epilogue, at_column, problem.columns);
    const Factors<Finish> columns(column_scales(epilogue), at_column, 1, problem.columns);
#pragma unroll
    for (int i = 0; i < 2 * TileType::kHigh; ++i) {
      const int at_row = row + i * 8 + lane / 4;
      if (at_row >= end) continue;
      const long long at = static_cast<long long>(at_row) * problem.columns + at_column;
      const Accumulator* two = &accumulators[i / 2][j][i % 2 * 2];
      if constexpr (kKeepsAccumulators<Out, Accumulator, Finish>) {
        write_pair(out + at, static_cast<Out>(two[0]), static_cast<Out>(two[1]), second, by_two);
      } else {
        float added[2] = {};
        if constexpr (Finish::kHasC) {
          added[0] = to_compute(c[at]);
          if (second) added[1] = to_compute(c[at + 1]);
        }
        const Factors<Finish> rows(epilogue.row_scales, at_row, 0, problem.rows);
        const auto ended = [&](int k) {
          const float sum = scaled(two[k], rows, 0, columns, k);
          return ended_as<Out>(Finish::finish(epilogue, sum, 0, bias, k, added[k]));
        };
        write_pair(out + at, ended(0), ended(1), second, by_two);
      }
    }
  }
}

/// Adds `parts`, the accumulators of a block of k, times the block's scales to `accumulators`, and
/// clears `parts` for the next block. A warp's columns have one scale.
template <typename TileType>
__device__ __forceinline__ void promote(float (&parts)[TileType::kHigh][TileType::kWide][4],
                                        float (&accumulators)[TileType::kHigh][TileType::kWide][4],
                                        const BlockScales& scales, const Problem& problem, int row,
                                        int column, int block) {
  static_assert(TileType::kHigh * TileType::kWide <= 16 && kBlock % TileType::kWarpColumns == 0);
  const float scale_b = scales.b[min(column, problem.columns - 1) / kBlock * scales.b_line_step +
                                 block * scales.b_inner_step];
#pragma unroll
  for (int i = 0; i < 2 * TileType::kHigh; ++i) {
    const int line = min(row + i * 8 + static_cast<int>(threadIdx.x) % 32 / 4, problem.rows - 1);
    const float scale = scales.a[line * scales.a_line_step + block * scales.a_inner_step] * scale_b;
#pragma unroll
    for (int j = 0; j < TileType::kWide; ++j) {
#pragma unroll
      for (int k = i % 2 * 2; k < i % 2 * 2 + 2; ++k) {
        accumulators[i / 2][j][k] += parts[i / 2][j][k] * scale;
        parts[i / 2][j][k] = 0;
      }
    }
  }
}

/// All of a kernel; kScales: of blocks, whose accumulators are made apart. Given: see the kernels.
template <typename In, typename Out, typename TileType, typename Order, typename Finish,
          bool kScales, typename Given>
__device__ __forceinline__ void run_product(unsigned char* storage, const Side& a, const Side& b,
                                            void* out, const TileEpilogueValues& epilogue,
                                            const Given& given, const BlockScales& scales) {
  constexpr int kElements = kDepth / sizeof(In);
  constexpr int kChunks = kDepth / 16;
  constexpr int kUnit = static_cast<int>(sizeof(In));
  using CopierA =
      Copier<Order::kA ? kElements : TileType::kRows,
             Order::kA ? TileType::kRows * kUnit / 16 : kChunks, TileType::kThreads, Order::kA>;
  using CopierB =
      Copier<Order::kB ? kElements : TileType::kColumns,
             Order::kB ? TileType::kColumns * kUnit / 16 : kChunks, TileType::kThreads, Order::kB>;
  using Schedule = typename ScheduleTraits<Given>::Type;
  const Problem& problem = ScheduleTraits<Given>::sizes(given);
  const Schedule schedule(given, storage + TileType::kStages * TileType::kStageBytes);
  if constexpr (Schedule::kPrepares) {
    if (threadIdx.x < 32) schedule.prepare(TileType::kRows);
    __syncthreads();
    if (static_cast<int>(blockIdx.x) >= schedule.count()) return;
  }
  const Place at = schedule.place(static_cast<int>(blockIdx.x));
  const auto [begin, steps] = schedule.depth(at, kElements);
  const long long row = schedule.first_row(at) + static_cast<long long>(at.row) * TileType::kRows;
  const long long column = static_cast<long long>(at.column) * TileType::kColumns;
  const long long deep = begin;
  Side left = a, right = b;
  if (Order::kA) left.lines = schedule.end_depth(at, a.lines);
  if (Order::kB) right.lines = schedule.end_depth(at, b.lines);
  const int inner = at.batch % problem.inner_batches, outer = at.batch / problem.inner_batches;
  CopierA copy_a(left, inner * a.inner_step + outer * a.outer_step, Order::kA ? deep : row,
                 (Order::kA ? row : deep) * kUnit);
  CopierB copy_b(right, inner * b.inner_step + outer * b.outer_step, Order::kB ? deep : column,
                 (Order::kB ? column : deep) * kUnit);
  const unsigned stages = shared_address(storage);
  const auto load = [&](int stage) {
    copy_a.load(stages + stage * TileType::kStageBytes);
    copy_b.load(stages + stage * TileType::kStageBytes + TileType::kBytesA);
    copy_a.advance();
    copy_b.advance();
  };
#pragma unroll
  for (int stage = 0; stage < TileType::kStages - 1; ++stage) {
    if (stage < steps) load(stage);
    commit_copies();
  }
  const int warp = threadIdx.x / 32;
  const int warp_row = warp / TileType::kWarpsAcross * TileType::kWarpRows;
  const int warp_column = warp % TileType::kWarpsAcross * TileType::kWarpColumns;
  using Accumulators = typename Unit<In>::Accumulator[TileType::kHigh][TileType::kWide][4];
  Accumulators accumulators = {}, parts = {};
  int read = 0, written = TileType::kStages - 1;
  for (int step = 0; step < steps; ++step) {
    wait_copies<TileType::kStages - 2>();
    __syncthreads();  // the stage has come, and that of the step before is free
    if (step + TileType::kStages - 1 < steps) load(written);
    commit_copies();  // also of nothing: the waits count groups
    const unsigned stage = stages + read * TileType::kStageBytes;
    multiply_stage<In, TileType, Order>(stage, stage + TileType::kBytesA, warp_row, warp_column,
                                        kScales ? parts : accumulators);
    if constexpr (kScales) {
      constexpr int kBlockSteps = kBlock / kElements;
      if ((step + 1) % kBlockSteps == 0 || step + 1 == steps) {
        promote<TileType>(parts, accumulators, scales, problem, static_cast<int>(row) + warp_row,
                          static_cast<int>(column) + warp_column,
                          (begin / kElements + step) / kBlockSteps);
      }
    }
    written = read;
    read = read + 1 == TileType::kStages ? 0 : read + 1;
  }
  const long long before =
      static_cast<long long>(schedule.matrix(at)) * problem.rows * problem.columns;
  TileEpilogueValues ending = epilogue;
  if (Schedule::kGrouped) ending = batch_epilogue<Finish>(epilogue, at.batch, problem.columns);
  store_fragments<Out, Finish, TileType>(
      accumulators, static_cast<Out*>(out) + before, static_cast<const Out*>(epilogue.c) + before,
      ending, problem, schedule.end_row(at), static_cast<int>(row) + warp_row,
      static_cast<int>(column) + warp_column);
}

/// Launched with Of::kThreads threads, a block for each tile. Dynamic shared memory: the stages,
/// and the table of a problem of groups, possibly with fewer tiles than blocks.
template <typename In, typename Out, typename TileType, typename Order, typename Finish,
          typename Given = Problem>
__global__ void __launch_bounds__(TileType::kThreads, TileType::kBlocks)
    mma_gemm(const Side a, const Side b, void* out, const TileEpilogueValues epilogue,
             const Given given) {
  extern __shared__ __align__(128) unsigned char storage[];
  run_product<In, Out, TileType, Order, Finish, false>(storage, a, b, out, epilogue, given, {});
}

/// The kernel for block scales; split-K begins at a block of k.
template <typename In, typename Out, typename TileType, typename Order, typename Finish>
__global__ void __launch_bounds__(TileType::kThreads, TileType::kBlocks)
    mma_gemm_block_scaled(const Side a, const Side b, void* out, const TileEpilogueValues epilogue,
                          const Problem problem, const BlockScales scales) {
  extern __shared__ __align__(128) unsigned char storage[];
  run_product<In, Out, TileType, Order, Finish, true>(storage, a, b, out, epilogue, problem,
                                                      scales);
}
