// Rows of tokens in the order of their experts, and back.
#pragma once

#include "array/array.h"
#include "core/stream.h"

#include <cstdint>
#include <optional>

namespace kernwright::kernels {

/// The pairs of token and expert are numbered token by token.
struct Permuted {
  Array rows;       ///< (tokens * k, ...): the token's row of each pair, sorted by expert
  Array offsets;    ///< (experts + 1,), int32: where each expert's rows begin, and where all end
  Array positions;  ///< (tokens, k), int32: the row that a pair has, -1 where it has none
  Array sources;    ///< (tokens * k,), int32: the pair that a row has, -1 behind all of them
};

/// Sorts the rows of x, (tokens, columns) of any type, by `experts`, (tokens, k) of int32 or int64.
/// Pairs of one expert keep their order. A pair without a valid expert has no row; rows left over
/// at the end are 0. Two kernels, three for more than 4096 pairs. At most 2048 experts. Throws
/// InvalidArgument, ArgumentError; CompileError, OutOfMemory, DriverError.
Permuted permute(const Array& x, const Array& experts, std::int64_t expert_count,
                 const Stream& stream = {});

/// (tokens, columns) of the sums over k of weights[t, k] * rows[positions[t, k]], in the order of k
/// and in float32 (float64 of float64); weights of 1 without `weights`, which are (tokens, k).
/// Positions outside of the rows add nothing. `out` takes the result: any strides, apart from all
/// arguments; see direct_target(). Throws as permute().
Array unpermute(const Array& rows, const Array& positions, const std::optional<Array>& weights,
                const std::optional<Array>& out, const Stream& stream = {});

}  // namespace kernwright::kernels
