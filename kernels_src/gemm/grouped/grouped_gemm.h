// Products of groups of rows, with a matrix for each group. Only the device knows their sizes.
#pragma once

#include "kernels_src/gemm/gemm.h"

#include <cstdint>
#include <optional>

namespace kernwright::kernels {

/// Rows in groups. `numbers`, int32 or int64, are read by kernels alone: no kernel leaves the rows,
/// whatever the numbers are.
struct RowGroups {
  /// ends: (groups,), the row behind each group, where the next one begins; offsets: (groups + 1,),
  /// where the first begins in front of them; counts: (groups,), how many rows each has.
  enum class Kind : std::uint8_t { ends, offsets, counts };
  Array numbers;
  Kind kind = Kind::ends;
};

/// Scales of float8, float32: one for each row of x, or for all of it, and of the weights (groups,
/// n), or (groups,); or scales of blocks of 128 along the inner dimension, as in GemmBlockScales:
/// x's shape with k / 128 for k, and (groups, n / 128, k / 128), rounded up.
struct GroupedScales {
  Array x, weights;
};

/// activation(x[r] @ weights[g]^T + bias[g]) for each row r of group g: layers of a mixture of
/// experts. x is (rows, k), and the groups follow each other; or (groups, capacity, k) with counts,
/// where each group begins anew. weights: (groups, n, k), any strides that Gemm takes; bias:
/// (groups, n). float16, bfloat16 or float32, accumulators in float32, in a fixed order. The result
/// has x's type and shape, n in place of k; with `gate` it has n / 2, as ProductEpilogue::gate
/// says. What no group has of it is not written.
///
/// With `scales` x and weights are float8_e4m3fn or float8_e5m2, by promoted_gemm.cu and as exact
/// as Gemm's, or with scales of rows and `fast_accum` by gemm.cu; the bias is (groups, n) of
/// float16, bfloat16 or float32. Other devices take bfloat16 as Gemm does.
///
/// gemm.cu computes it on compute capability 9.0, mma_gemm.cu on devices from 8.0 on, and
/// fma_gemm.cu in float32: the tiles of a group end where its rows end, and groups without rows
/// cost nothing, weights included. mma_gemm.cu and fma_gemm.cu store a gated product as float32,
/// and the gate follows. The tile depends on the mean of rows that a group has.
struct GroupedGemm {
  Array x, weights;
  RowGroups groups;
  std::optional<GroupedScales> scales{};
  std::optional<Array> bias{};
  std::optional<ScalarType> type{};  ///< of float8: float16, bfloat16 (if empty) or float32
  /// Functions with which has_short_epilogue() is true, see ProductEpilogue.
  std::optional<ActivationCall> activation{}, gate{};
  std::optional<GemmTile> tile{};
  std::optional<MmaTile> mma_tile{};
  std::optional<FmaTile> fma_tile{};  ///< of float32
  bool by_mma = false;                ///< mma_gemm.cu, also where gemm.cu would run
  bool fast_accum = false;            ///< see Gemm
  /// Takes the result: any strides, apart from all operands; see direct_target(). Rows of no group
  /// hold anything.
  std::optional<Array> out{};

  /// Queues the work on `stream` (empty: the device's legacy stream). Throws InvalidArgument
  /// ("Incompatible dimensions", "same device") with the mismatch; ArgumentError for unknown types,
  /// tiles and activations; CompileError, OutOfMemory, DriverError.
  Array run(const Stream& stream = {}) const;
};

/// The gradient of the weights: grad[rows of g]^T @ x[rows of g], as (groups, n, k), for grad of
/// (rows, n) and x of (rows, k), both float16, bfloat16 or float32. The result has their type, or
/// of 16 bits `type`; it is 0 where a group has no rows. By gemm.cu on compute capability 9.0, by
/// mma_gemm.cu on others, float32 by fma_gemm.cu: the inner dimension of a group ends where its
/// rows end.
struct GroupedGradient {
  Array grad, x;
  RowGroups groups;
  std::optional<ScalarType> type{};
  std::optional<GemmTile> tile{};
  bool by_mma = false;  ///< mma_gemm.cu, also where gemm.cu would run

  /// Throws as GroupedGemm::run().
  Array run(const Stream& stream = {}) const;
};

}  // namespace kernwright::kernels
