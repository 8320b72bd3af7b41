// Attention of float8 operands by float8 products.
#pragma once

#include "kernels_src/attention/attention.h"

#include <optional>

namespace kernwright::kernels {

/// Factors of operands: float32 of shape (), (heads,), or (batch, heads) of the operand, beside a
/// number for all.
struct OperandScales {
  std::optional<Array> query = std::nullopt, key = std::nullopt, value = std::nullopt;
  double scores = 1, values = 1;
};

/// attention() of operands that are all float8_e4m3fn or float8_e5m2; the result is bfloat16.
/// Weights are rounded to float8_e4m3fn before they meet values. Nothing where the kernel does not
/// take the call, or is not quicker than widening: other devices than those of compute capability
/// 9.0, dropout, masks, ALiBi, a scale of 0 or below, elements that are not 16 bytes apart or go
/// backwards, few queries or keys. With `fast_accum` the tensor cores alone accumulate all keys.
/// Queued on `stream`. Throws as attention() does.
std::optional<Attended> float8_attention(const Array& query, const Array& key, const Array& value,
                                         const AttentionOptions& options,
                                         const OperandScales& scales, bool fast_accum,
                                         const Stream& stream = {});

}  // namespace kernwright::kernels
