// The epilogue of a product by wgmma: from a warp's accumulators to global memory.
// Compute capability 9.0 alone, in code for sm_90a.
#pragma once

#include <kernwright/product_epilogue.cuh>
#include <kernwright/product_staging.cuh>
#include <kernwright/wgmma_accumulator_rows.cuh>

namespace kernwright {

/// The result, and what happens to accumulators before.
struct Result {
  const TensorMap& map;  // of TMA tiles, where copies write it
  void* out;
  const TileEpilogueValues& epilogue;
};

/// The target of a tile's accumulators: row-major matrices one after the other, `z` of them before
/// the tile's.
struct Target {
  const TensorMap& map;
  void* out;
  const TileEpilogueValues& epilogue;
  const Problem& problem;
  int end;  // the row behind the rows of the tile

  __device__ long long offset(int z) const {
    return static_cast<long long>(z) * problem.rows * problem.columns;
  }
};

/// Four 8x8 matrices of a warp's 16-bit pairs, into rows whose addresses the lanes give.
__device__ __forceinline__ void store_matrices(unsigned address, const unsigned (&pairs)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
               "r"(pairs[0]), "r"(pairs[1]), "r"(pairs[2]), "r"(pairs[3])
               : "memory");
}

/// Columns of the result of a tile, and the distance from an accumulator to the one of the second
/// half.
template <typename TileType, typename Finish>
constexpr int kResultColumns = TileType::kColumns / (Finish::kGated ? 2 : 1);
template <typename TileType, typename Finish>
constexpr int kPairedBy = Finish::kGated ? TileType::kAccumulators / 2 : 0;

/// The one scale of all accumulators, read once. Else 1.
template <typename Finish>
__device__ __forceinline__ float one_scale(const TileEpilogueValues& epilogue) {
  if constexpr (Finish::kOneScale) return epilogue.row_scales.data[0] * epilogue.column_scales[0];
  return 1;
}

/// The scales of a thread's rows and of a tile's columns, requested all at once: the tile waits for
/// memory once. The lanes of a warp have some of the columns' each: beside the accumulators there
/// are no registers for all. Where there is one scale for all, each row has it.
template <typename TileType, typename Finish>
struct TileFactors {
  static constexpr bool kMany = Finish::kScaled && !Finish::kOneScale;
  static constexpr int kLaneColumns = kMany ? (kResultColumns<TileType, Finish> + 31) / 32 : 1;
  Factors<Finish> rows[TileType::kWaves];
  float columns[kLaneColumns];

  __device__ __forceinline__ TileFactors(const TileEpilogueValues& epilogue, const Problem& problem,
                                         int row, int column, int lane, float one) {
    if constexpr (Finish::kOneScale) {
#pragma unroll
      for (Factors<Finish>& each : rows) each.value[0] = each.value[1] = one;
    } else if constexpr (Finish::kScaled) {
#pragma unroll
      for (int i = 0; i < kLaneColumns; ++i) {
        const int at = min(column + i * 32 + lane, problem.columns - 1);
        columns[i] = epilogue.column_scales[at * epilogue.column_step];
      }
#pragma unroll
      for (int wave = 0; wave < TileType::kWaves; ++wave) {
        rows[wave] = {epilogue.row_scales, row + wave * 64 + lane / 4, 8, problem.rows};
      }
    }
  }
  /// The factors of a pair of the thread's columns. All lanes call it.
  __device__ __forceinline__ Factors<Finish> column_factors(int pair, int lane) const {
    Factors<Finish> two;
    if constexpr (kMany) {
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        two.value[k] = __shfl_sync(~0u, columns[pair / 4], pair % 4 * 8 + lane % 4 * 2 + k);
      }
    }
    return two;
  }
};

/// The accumulators of a thread of a TMA tile as pairs of 16-bit numbers: 8 columns, then 8 rows
/// apart. `staged` holds c. The accumulators of the second half of a gated tile are kPaired behind.
template <typename Out, typename Finish, int kPaired, typename Accumulator, typename Scales>
__device__ __forceinline__ void finish_staged(const Accumulator* accumulators,
                                              const unsigned char* staged, const Target& to,
                                              const Scales& scales, int wave, int first_pair,
                                              int column, int lane,
                                              unsigned (&pairs)[kSwizzled / 8][2]) {
  const Factors<Finish>& rows = scales.rows[wave];
#pragma unroll
  for (int i = 0; i < kSwizzled / 8; ++i) {
    const int at = column + i * 8 + lane % 4 * 2;
    const auto bias = Finish::biases(to.epilogue, at, to.problem.columns);
    const Factors<Finish> columns = scales.column_factors(first_pair + i, lane);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float c[2] = {};
      if constexpr (Finish::kHasC) {
        const auto two = *reinterpret_cast<const Pack<Out, 2>*>(
            staged + swizzled(lane / 4 + half * 8, i) + lane % 4 * 4);
        c[0] = to_compute(two.value[0]);
        c[1] = to_compute(two.value[1]);
      }
      const Accumulator* sum = accumulators + i * 4 + half * 2;
      const auto end = [&](int k) {
        const float sum_here = scaled(sum[k], rows, half, columns, k);
        return Finish::finish(to.epilogue, sum_here, static_cast<float>(sum[k + kPaired]), bias, k,
                              c[k]);
      };
      pairs[i][half] = round_pair<Out>(end(0), end(1));
    }
  }
}

/// The TMA tiles of a warp's results: the columns of a tile in TMA tiles, wave after wave. Without
/// whole TMA tiles, the last one begins inside of the previous one.
template <typename TileType, typename Finish>
struct StagedTiles {
  static constexpr int kColumns = kResultColumns<TileType, Finish>;
  static constexpr int kAcross = (kColumns + kSwizzled - 1) / kSwizzled;
  static constexpr int kCount = kAcross * TileType::kWaves;
  __device__ __forceinline__ static constexpr int first_column(int chunk) {
    return chunk + 1 < kAcross ? chunk * kSwizzled : kColumns - kSwizzled;
  }
};

/// Fills a TMA tile with results of the epilogue.
template <typename Out, typename Finish, int kPaired, typename Accumulator, typename Scales>
__device__ __forceinline__ void fill_staged(const Accumulator* accumulators, unsigned char* staged,
                                            const Target& to, const Scales& scales, int wave,
                                            int first_pair, int column, int lane) {
  unsigned pairs[kSwizzled / 8][2];
  finish_staged<Out, Finish, kPaired>(accumulators, staged, to, scales, wave, first_pair, column,
                                      lane, pairs);
  if constexpr (Finish::kHasC) __syncwarp();
#pragma unroll
  for (int i = 0; i < kSwizzled / 8; i += 2) {
    const unsigned four[4] = {pairs[i][0], pairs[i][1], pairs[i + 1][0], pairs[i + 1][1]};
    store_matrices(shared_address(staged + swizzled(lane % 16, i + lane / 16)), four);
  }
}

/// Whether accumulators become the result by a factor for all.
template <typename Finish>
constexpr bool kJustScales = false;
template <>
constexpr bool kJustScales<Epilogue<Same, NoBias, false>> = true;

/// Stores in a loop over TMA tiles, each with separate code, since accumulators are in registers.
/// Without settle() the compiler would compute the whole epilogue in front of the loop. kStays: the
/// accumulators were not read.
template <typename TileType, typename Out, typename Finish, bool kStays, int kNumber = 0,
          typename Accumulator>
__device__ __forceinline__ void fill_numbered(
    const Accumulator (&accumulators)[TileType::kWaves][TileType::kAccumulators], int number,
    unsigned char* staged, const Target& to, const TileFactors<TileType, Finish>& scales,
    int column, int lane) {
  using All = StagedTiles<TileType, Finish>;
  if (number == kNumber) {
    constexpr int kWave = kNumber / All::kAcross, kStagedAccumulators = kSwizzled / 2;
    constexpr int kBegin = All::first_column(kNumber % All::kAcross);
    if constexpr (kStays) {
      const float by[2] = {to.epilogue.alpha, to.epilogue.alpha};
      const unsigned all[2] = {~0u, ~0u};
      AccumulatorRows<Out>::template store<kWave, kStagedAccumulators, 0, kBegin / 2>(
          shared_address(staged) + swizzled(lane % 16, lane / 16), by, all);
    } else {
      Accumulator
          staged_accumulators[Finish::kGated ? 2 * kStagedAccumulators : kStagedAccumulators];
#pragma unroll
      for (int i = 0; i < kStagedAccumulators; ++i) {
        staged_accumulators[i] = accumulators[kWave][kBegin / 2 + i];
        if (Finish::kGated)
          staged_accumulators[kStagedAccumulators + i] =
              accumulators[kWave][kBegin / 2 + kPairedBy<TileType, Finish> + i];
      }
      settle(staged_accumulators);
      fill_staged<Out, Finish, Finish::kGated ? kStagedAccumulators : 0>(
          staged_accumulators, staged, to, scales, kWave, kBegin / 8, column, lane);
    }
  } else if constexpr (kNumber + 1 < All::kCount) {
    fill_numbered<TileType, Out, Finish, kStays, kNumber + 1>(accumulators, number, staged, to,
                                                              scales, column, lane);
  }
}

/// Whether a warp's TMA tiles are staged and copied all at once.
template <typename Work, typename All = StagedTiles<typename Work::Tile, typename Work::Finish>>
constexpr bool kStoresAll = Work::kStagesAll && !Work::kStays && Work::kStore == kByCopies &&
                            sizeof(typename Work::Out) == 2 && !Work::Finish::kHasC &&
                            All::kCount <= Work::kStagedTiles && All::kColumns % kSwizzled == 0;

/// Stores a warp's rows from `top` on, all TMA tiles at once. The TMA stores of the previous tile
/// have long read their buffers.
template <typename TileType, typename Out, bool kRagged, typename Finish, typename Accumulator>
__device__ __forceinline__ void store_all_rows(
    const Accumulator (&accumulators)[TileType::kWaves][TileType::kAccumulators],
    unsigned char* staging, const Target& to, const TileFactors<TileType, Finish>& scales, int top,
    int first_column, int z, int lane) {
  using All = StagedTiles<TileType, Finish>;
  const bool stores = is_elected();
  if (stores) wait_for_store_reads<0>();
  __syncwarp();
#pragma unroll
  for (int number = 0; number < All::kCount; ++number) {
    const int wave = number / All::kAcross, begin = All::first_column(number % All::kAcross);
    unsigned char* staged = staging + number * kStagedBytes;
    fill_staged<Out, Finish, kPairedBy<TileType, Finish>>(&accumulators[wave][begin / 2], staged,
                                                          to, scales, wave, begin / 8,
                                                          first_column + begin, lane);
  }
  show_to_copies();
  __syncwarp();
  if (stores) {
#pragma unroll
    for (int number = 0; number < All::kCount; ++number) {
      const int row = top + number / All::kAcross * 64;
      const int column = first_column + All::first_column(number % All::kAcross);
      if (row >= to.end || column >= to.problem.columns) continue;
      const int inside = min(to.end - row, kWarpRows);
      if (kRagged) {
        tma_store(to.map, staging + number * kStagedBytes, column, kWarpRows - inside,
                  row + inside);
      } else {
        tma_store(to.map, staging + number * kStagedBytes, column, row, z);
      }
    }
    commit_stores();
  }
}

/// Stores a warp's rows from `top` on, one TMA tile after another through two buffers in shared
/// memory. kRagged: rows of another group lie behind the tile, and TMA stores must leave them out:
/// the tensor map has the 16 rows behind any row as a dimension of its own, and surplus rows
/// of a TMA tile lie behind the end of this dimension.
template <typename TileType, typename Out, Store kStore, bool kRagged, typename Finish, bool kStays,
          typename Accumulator>
__device__ __forceinline__ void store_rows(
    const Accumulator (&accumulators)[TileType::kWaves][TileType::kAccumulators],
    unsigned char* staging, const Target& to, const TileFactors<TileType, Finish>& scales, int top,
    int first_column, int z, int lane, int& turn) {
  using All = StagedTiles<TileType, Finish>;
  // The code that brings c, and that writes what copies do not, is long and stands once in a loop.
  constexpr bool kLoops = kStore == kByElements || Finish::kHasC;
  constexpr int kUnroll = kLoops ? 1 : All::kCount;
#pragma unroll kUnroll
  for (int number = 0; number < All::kCount; ++number) {
    const int wave = number / All::kAcross, chunk = number - wave * All::kAcross;
    const int begin = All::first_column(chunk), row = top + wave * 64;
    const int written = (chunk * kSwizzled - begin) / 8, column = first_column + begin;
    unsigned char* staged = staging + turn * kStagedBytes;
    turn ^= TileType::kStagedTiles - 1;
    if (kStore == kByCopies && lane == 0) wait_for_store_reads<TileType::kStagedTiles - 1>();
    __syncwarp();
    if constexpr (Finish::kHasC) {
      load_c<Out, kStore>(staged,
                          static_cast<Out*>(const_cast<void*>(to.epilogue.c)) + to.offset(z), row,
                          column, to.problem, to.end, lane);
      __syncwarp();
    }
    if constexpr (kLoops || kStays) {
      fill_numbered<TileType, Out, Finish, kStays>(accumulators, number, staged, to, scales, column,
                                                   lane);
    } else {
      fill_staged<Out, Finish, kPairedBy<TileType, Finish>>(
          &accumulators[wave][begin / 2], staged, to, scales, wave, begin / 8, column, lane);
    }
    const bool copied = kStore == kByCopies && written == 0;
    if (copied) show_to_copies();
    __syncwarp();
    if (!copied) {
      write_staged<Out, kStore>(staged, static_cast<Out*>(to.out) + to.offset(z), row, column,
                                to.problem, to.end, lane, written);
    }
    if (kStore == kByCopies && lane == 0) {
      if (copied && row < to.end && column < to.problem.columns) {
        const int inside = min(to.end - row, kWarpRows);
        if (kRagged) {
          tma_store(to.map, staged, column, kWarpRows - inside, row + inside);
        } else {
          tma_store(to.map, staged, column, row, z);
        }
      }
      commit_stores();  // also of nothing: the waits count groups
    }
  }
}

/// Two neighbours of a row, ended; `c` is what lies there.
template <typename TileType, typename Out, typename Finish, typename Accumulator, typename Biases>
__device__ __forceinline__ void finish_two(const Accumulator* sum, const Target& to,
                                           const Factors<Finish>& row_factors,
                                           const Factors<Finish>& column_factors,
                                           const Biases& bias, int half, const Out* c, bool second,
                                           Out (&two)[2]) {
  if constexpr (kKeepsAccumulators<Out, Accumulator, Finish>) {
    for (int k = 0; k < 2; ++k) two[k] = static_cast<Out>(sum[k]);
  } else {
    float added[2] = {};
    if constexpr (Finish::kHasC) {
      added[0] = c[0];
      if (second) added[1] = c[1];
    }
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const auto paired = static_cast<float>(sum[k + kPairedBy<TileType, Finish>]);
      two[k] = ended_as<Out>(Finish::finish(to.epilogue,
                                            scaled(sum[k], row_factors, half, column_factors, k),
                                            paired, bias, k, added[k]));
    }
  }
}

/// store_rows() for elements of 4 bytes: TMA tiles of 32 columns, by TMA stores where the tiles are
/// whole.
template <typename TileType, typename Out, typename Finish, typename Accumulator>
__device__ __forceinline__ void store_wide_rows(
    const Accumulator (&accumulators)[TileType::kAccumulators], unsigned char* staging,
    const Target& to, const TileFactors<TileType, Finish>& scales, int wave, int row,
    int first_column, int z, int lane, int& turn) {
  constexpr int kWide = kLine / 4, kColumns = kResultColumns<TileType, Finish>;
  const Out* c = static_cast<const Out*>(to.epilogue.c) + to.offset(z);
#pragma unroll
  for (int chunk = 0; chunk < (kColumns + kWide - 1) / kWide; ++chunk) {
    const int begin = min(chunk * kWide, kColumns - kWide), column = first_column + begin;
    const int written = (chunk * kWide - begin) / 4;  // units of the TMA tile before
    unsigned char* staged = staging + turn * kStagedBytes;
    turn ^= TileType::kStagedTiles - 1;
    if (lane == 0) wait_for_store_reads<TileType::kStagedTiles - 1>();
    __syncwarp();
#pragma unroll
    for (int i = 0; i < kWide / 8; ++i) {
      const int at = column + i * 8 + lane % 4 * 2, pair = begin / 8 + i;
      const Factors<Finish> factors = scales.column_factors(pair, lane);
      const auto bias = Finish::biases(to.epilogue, at, to.problem.columns);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int r = lane / 4 + half * 8;
        // Accumulators outside of the matrix are ended, too, and copies leave them out.
        if (Finish::kHasC && (row + r >= to.end || at >= to.problem.columns)) continue;
        const long long place = static_cast<long long>(row + r) * to.problem.columns + at;
        Out two[2];
        finish_two<TileType>(&accumulators[pair * 4 + half * 2], to, scales.rows[wave], factors,
                             bias, half, c + place, true, two);
        Out* inside =
            reinterpret_cast<Out*>(staged + swizzled(r, i * 2 + lane % 4 / 2)) + lane % 2 * 2;
        write_pair(inside, two[0], two[1], true, true);
      }
    }
    const bool whole = chunk * kWide == begin;
    show_to_copies();
    __syncwarp();
    if (!whole) {
      Out* const out = static_cast<Out*>(to.out) + to.offset(z);
      move_units<false>(staged, out, row, column, to.problem, to.end, lane, written);
    }
    if (lane == 0) {
      if (whole && row < to.end && column < to.problem.columns)
        tma_store(to.map, staged, column, row, z);
      commit_stores();
    }
  }
}

/// Stores from registers: four threads write eight columns of a row.
template <typename TileType, typename Out, typename Finish, typename Accumulator>
__device__ __forceinline__ void store_direct(
    const Accumulator (&accumulators)[TileType::kAccumulators], const Target& to,
    const TileFactors<TileType, Finish>& scales, int wave, int row, int first_column, int z,
    int lane) {
  const int columns = to.problem.columns;
  const bool by_two = columns % 2 == 0;
  Out* out = static_cast<Out*>(to.out) + to.offset(z);
  const Out* added = static_cast<const Out*>(to.epilogue.c) + to.offset(z);
#pragma unroll
  for (int i = 0; i < kResultColumns<TileType, Finish> / 8; ++i) {
    const int column = first_column + i * 8 + lane % 4 * 2;
    const Factors<Finish> factors = scales.column_factors(i, lane);
    if (column >= columns) continue;
    const bool second = column + 1 < columns;
    const auto bias = Finish::biases(to.epilogue, column, columns);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int r = row + lane / 4 + half * 8;
      if (r >= to.end) continue;
      const long long at = static_cast<long long>(r) * columns + column;
      Out two[2];
      finish_two<TileType>(&accumulators[i * 4 + half * 2], to, scales.rows[wave], factors, bias,
                           half, added + at, second, two);
      write_pair(out + at, two[0], two[1], second, by_two);
    }
  }
}

}  // namespace kernwright
