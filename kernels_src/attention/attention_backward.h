// Gradients of attention.
#pragma once

#include "kernels_src/attention/attention.h"

namespace kernwright::kernels {

struct AttentionGradients {
  Array query, key, value;
};

/// The gradients of attention(query, key, value, options), from that of its result, the result and
/// the logarithms that it gave. Scores are computed once more (T. Dao, "FlashAttention-2", 2023);
/// each gradient is summed in a fixed order, by one block a tile or, that of the queries on devices
/// of 9.0, by blocks that wait for each other: results do not depend on timing.
/// Heads that share keys are summed in the same way. Sinks count by the logarithms; mask, slopes
/// and sinks get no gradients. Types, shapes, errors are those of attention().
AttentionGradients attention_backward(const Array& grad, const Array& query, const Array& key,
                                      const Array& value, const Array& out, const Array& lse,
                                      const AttentionOptions& options, const Stream& stream = {});

}  // namespace kernwright::kernels
