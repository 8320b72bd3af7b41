// Counts by the line profile of the simulated device.
#include "tune/measure/launch_counts.h"

#include "sim/line_profile.h"

namespace kernwright {

LaunchCounts launch_counts(const sim::LineCounts& total) noexcept {
  return {.instructions = total.instructions,
          .transactions = total.global_sectors + total.local_sectors + total.shared_wavefronts +
                          total.atomic_passes + total.uncounted};
}

LaunchCounts count_launches(const std::function<void()>& run) {
  const sim::LineProfileScope scope;
  run();
  return launch_counts(scope.profile().total());
}

}  // namespace kernwright
