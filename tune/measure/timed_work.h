// Work to measure: a function for queuing one run.
#pragma once

#include "core/arguments.h"
#include "core/kernel.h"
#include "core/stream.h"

#include <array>
#include <cstddef>
#include <functional>
#include <span>
#include <string>

namespace kernwright {

struct MeasurePlan;

/// The measured work.
struct TimedWork {
  std::string name;  ///< for messages
  /// Queues one run on the stream, with copy number `copy` of its inputs, and does not wait.
  std::function<void(const Stream& stream, std::size_t copy)> queue;
  std::size_t copies = 1;  ///< of the inputs; the policy `rotate` needs 2 or more
  /// Queues work before each sample, outside of its time, such as restoring overwritten inputs.
  /// May be empty. The policy `graph` calls it before each graph.
  std::function<void(const Stream& stream)> restore{};

  /// Throws InvalidArgument for a plan without a meaning, and where there is nothing to run as it
  /// says.
  void check(const MeasurePlan& plan) const;
};

/// A launch of `kernel` as work; `config.stream` is ignored. The arguments' bytes are copied;
/// memory behind pointers must live as long as the work. Throws LaunchConfigError, ArgumentError.
TimedWork launch_work(const Kernel& kernel, LaunchConfig config, std::span<void* const> arguments);

/// The same with typed arguments, as launch() takes them: timed_launch(kernel, {.grid = {4}, .block
/// = {256}}, 2.0f, x, n). Throws launch()'s exceptions for them.
template <typename... Args>
TimedWork timed_launch(const Kernel& kernel, const LaunchConfig& config, const Args&... arguments) {
  constexpr std::size_t kCount = sizeof...(Args);
  const std::array<ArgumentView, kCount> views{KernelArgument<Args>::view(arguments)...};
  std::array<ArgumentSlot, kCount> slots;
  std::array<void*, kCount> pointers;
  pack_arguments(kernel.signature(), kernel.device(), views, slots, pointers);
  return launch_work(kernel, config, pointers);
}

}  // namespace kernwright
