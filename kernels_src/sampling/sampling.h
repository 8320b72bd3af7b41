// Tokens drawn from logits.
#pragma once

#include "array/array.h"
#include "core/stream.h"
#include "kernels_src/random/random_state.h"

#include <optional>

namespace kernwright::kernels {

/// A value for all rows, or an array with one for each.
template <typename Value>
struct PerRow {
  Value value{};
  std::optional<Array> each = std::nullopt;
};

/// How sample_tokens() draws. In this order: logits of tokens in `previous` are divided by the
/// repetition penalty where they are above 0 and multiplied with it elsewhere; all are divided by
/// the temperature; top_k (0: off) keeps so many of the highest, of equal ones the lower tokens;
/// top_p keeps the most probable of these whose probabilities together reach it, at least one;
/// min_p keeps those at least so probable, compared to the most probable token. A temperature of 0
/// (or below) takes the highest logit.
struct SamplingOptions {
  PerRow<float> temperature{1.0f};
  PerRow<int> top_k{0};
  PerRow<float> top_p{1.0f};
  PerRow<float> min_p{0.0f};
  PerRow<float> repetition_penalty{1.0f};
  std::optional<Array> previous = std::nullopt;  ///< (rows, any) integers: tokens
  RandomState state{};  ///< the offset counts steps; a counter is moved on by 1
  /// A seed for each row (uint64 or int64). A row's random numbers then depend on the seed and the
  /// step alone, not on the row's number.
  std::optional<Array> seeds = std::nullopt;
  std::optional<Array> steps = std::nullopt;  ///< int32, of each row: added to the offset
};

/// Writes to `out` (int32 or int64, one a row, contiguous) a token of each row of `logits`
/// (..., tokens): float16, bfloat16 or float32, any strides. Nothing is sorted but the tokens
/// around the thresholds, which a histogram finds. Up to 16384 tokens a block has a row, in one
/// kernel. Longer rows take two: the first finds the highest logit of each 128 tokens, so that the
/// second, for a top_k of at most a fourth of their number, reads only those that matter; else its
/// blocks share a row, and the last one draws. Weights are whole multiples of 2 to the -40 of the
/// most probable token's, and summed exactly: results do not depend on the launch. NaN counts as
/// -infinity; a row without anything above -infinity gives 0. Throws InvalidArgument for other
/// shapes and types, and for more than 2 to the 22 tokens.
void sample_tokens(const Array& out, const Array& logits, const SamplingOptions& options,
                   const Stream& stream = {});

}  // namespace kernwright::kernels
