// Launches as work, and checks of work.
#include "tune/measure/timed_work.h"

#include "base/errors.h"
#include "base/format.h"
#include "tune/measure/measure_plan.h"

#include <utility>
#include <vector>

namespace kernwright {

void TimedWork::check(const MeasurePlan& plan) const {
  plan.check();
  if (!queue) throw InvalidArgument("measuring work that is no function");
  if (copies == 0) throw InvalidArgument("measuring work with no copy of its inputs");
  if (plan.policy == CachePolicy::rotate && copies < 2) {
    throw InvalidArgument(format(
        "measuring {} with the policy \"rotate\" needs two or more copies of its inputs", name));
  }
}

TimedWork launch_work(const Kernel& kernel, LaunchConfig config, std::span<void* const> arguments) {
  config.stream = {};
  kernel.check(config);
  const KernelSignature& signature = kernel.signature();
  if (arguments.size() != signature.parameters.size()) {
    throw ArgumentError(format("{} takes {} arguments, not {}", signature.name,
                               signature.parameters.size(), arguments.size()));
  }
  std::vector<std::vector<std::byte>> values;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto* bytes = static_cast<const std::byte*>(arguments[i]);
    values.emplace_back(bytes, bytes + signature.parameters[i].size);
  }
  return {.name = signature.name,
          .queue = [kernel, config, values = std::move(values)](const Stream& stream,
                                                                std::size_t) mutable {
            std::vector<void*> pointers;
            for (std::vector<std::byte>& value : values) pointers.push_back(value.data());
            LaunchConfig on_stream = config;
            on_stream.stream = stream;
            kernel.launch(on_stream, pointers);
          }};
}

}  // namespace kernwright
