// Gradients of attention on Hopper: its calls and its launches.
#pragma once

#include "core/stream.h"

#include <cstdint>
#include <optional>

namespace kernwright::kernels {

enum class AttentionKernel : std::uint8_t;
struct AttentionOptions;
struct PreparedGradient;

/// As force_attention_kernel(), of attention_backward() alone. `heads`: blocks work on so many
/// heads of keys at a time; else on as many as the L2 cache holds.
void force_backward_kernel(AttentionKernel kernel, std::optional<int> heads);

/// Whether a kernel for Hopper takes a call. The others have to do it on other devices, with
/// dropout, with a cap beside a mask or ALiBi, with these for heads above 128 elements, where
/// elements are not 16 bytes apart or go backwards, for few queries. Throws ArgumentError for a
/// forced kernel that does not take the call.
bool takes_hopper_backward(const PreparedGradient& made, const AttentionOptions& options);
void launch_hopper_backward(PreparedGradient& made, const AttentionOptions& options,
                            const Stream& on);

}  // namespace kernwright::kernels
