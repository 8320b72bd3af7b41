// The hook that queues slices in the place of a launch.
#include "jit/slicing.h"

#include <algorithm>
#include <optional>

#include "base/errors.h"
#include "core/kernel.h"
#include "jit/sliced_launch.h"

namespace kernwright {

Slicing::Slicing(const Options& options) : options_(options) {
  if (options.max_blocks == 0) throw InvalidArgument("a slice has at least 1 block, got 0");
}

void Slicing::launch(const Kernel& kernel, const LaunchConfig& config,
                     std::span<void* const> arguments, const LaunchSite& site) {
  ++counts_.launches;
  const bool yields = options_.words != 0;
  std::optional<SlicedLaunch> slices;
  if (yields || slice_grid(config).count() > options_.max_blocks) {
    try {
      slices.emplace(kernel, config, arguments, site, options_.words);
    } catch (const NotSliceable& error) {
      if (options_.strict) throw;
      ++counts_.refused;
      counts_.reason = error.what();
    }
  }
  if (!slices) {
    kernel.launch(config, arguments, site);
    ++counts_.slices;
    return;
  }
  begin(slices->twin());
  do {
    slices->queue(options_.max_blocks);
    ++counts_.slices;
  } while (!yields && slices->left() > 0);
}

}  // namespace kernwright
