// Gradients of attention on Hopper: its calls and its launches.
#pragma once

#include "core/stream.h"

#include <cstdint>
#include <optional>

namespace kernwright::kernels {

enum class AttentionKernel : std::uint8_t;
struct AttentionOptions;
struct PreparedGradient;

/// The kernel of attention_backward(); a PlanScope of one counts for the calls of a thread.
struct AttentionBackwardPlan {
  AttentionKernel kernel{};
  /// Heads of keys that blocks work on at a time; absent: as many as the L2 cache holds.
  std::optional<int> heads{};
};
/// Throws ArgumentError for less than 1 head.
void require_backward_plan(const AttentionBackwardPlan& plan);

/// Whether a kernel for Hopper takes a call. The others have to do it on other devices, with
/// dropout, with a cap beside a mask or ALiBi, with these for heads above 128 elements, where
/// elements are not 16 bytes apart or go backwards, for few queries. Throws ArgumentError for a
/// plan of a scope that does not take the call.
bool takes_hopper_backward(const PreparedGradient& made, const AttentionOptions& options);
void launch_hopper_backward(PreparedGradient& made, const AttentionOptions& options,
                            const Stream& on);

}  // namespace kernwright::kernels
