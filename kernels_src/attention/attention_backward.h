// Gradients of attention.
#pragma once

#include "kernels_src/attention/attention.h"

#include <optional>

namespace kernwright::kernels {

struct AttentionGradients {
  Array query, key, value;
  std::optional<Array> rows;  ///< (batch, tokens, all heads * dim): the three are its heads
};

/// The gradients of attention(query, key, value, options). Takes the gradient of the result, the
/// result and its logarithms. Scores are computed once more (T. Dao, "FlashAttention-2", 2023).
/// Each gradient is summed in a fixed order by one block a tile. On devices of 9.0, blocks wait for
/// each other to sum the queries' gradient. So results do not depend on timing. Heads with common
/// keys are summed in the same way. Sinks count by the logarithms; mask, slopes and sinks get no
/// gradients. Types, shapes, errors are those of attention(). `in_rows`: the gradients of the heads
/// of a token lie side by side, query, key, value, as split_qkv() takes them; heads of one size.
AttentionGradients attention_backward(const Array& grad, const Array& query, const Array& key,
                                      const Array& value, const Array& out, const Array& lse,
                                      const AttentionOptions& options, bool in_rows,
                                      const Stream& stream = {});

}  // namespace kernwright::kernels
