// Draws cases, contents and orders.
#include "tune/judge/launch_plan.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "tune/judge/task.h"

namespace kernwright {
namespace {

constexpr std::uint64_t kSomeMore = 8;
constexpr std::uint64_t kSizedLaunches = 64;
constexpr double kMostCost = 4e6;  // instructions and transactions

/// The timed case has few launches, so the contents that show most come first.
constexpr std::array<Fill, kFills> kTimedFills{Fill::mixed,   Fill::zeros, Fill::blocks,
                                               Fill::earlier, Fill::given, Fill::all_bits,
                                               Fill::ones,    Fill::random};

Fill fill_at(std::uint64_t index) { return static_cast<Fill>(index % kFills); }

}  // namespace

LaunchSetting first_setting(std::uint64_t seed, int number) {
  const auto place = static_cast<std::uint64_t>(number);
  LaunchSetting setting;
  setting.seed = derived_seed(seed, 1 + place);
  setting.fill = fill_at(derived_seed(seed, 6) + place);
  return setting;
}

std::vector<PlannedLaunch> further_launches(std::uint64_t seed, int small, int timed,
                                            const std::vector<int>& others) {
  std::vector<PlannedLaunch> plan(kLeastFurtherLaunches + derived_seed(seed, 3) % kSomeMore);
  for (std::uint64_t i = 0; i < plan.size(); ++i) {
    PlannedLaunch& launch = plan[i];
    launch.input_seed = launch.setting.seed = derived_seed(seed, 1000 + i);
    launch.setting.fill = fill_at(derived_seed(seed, 7) + i);
    const std::uint64_t turn = i / 3;
    bool is_reordered = false;
    if (i % 3 == 0) {
      launch.number = small;
    } else if (i % 3 == 1) {
      launch.number = timed;
      launch.setting.fill = kTimedFills[turn % kFills];
      is_reordered = turn == 1;
    } else {
      launch.number = others[derived_seed(seed, 1100 + i) % others.size()];
      is_reordered = true;
      if (turn % 2 == 0) {  // right behind inputs that differ in some elements
        launch.number = timed;
        launch.input_seed = plan[i - 1].input_seed ^ 1U;
      }
    }
    if (is_reordered) launch.setting.schedule = derived_seed(seed, 1200 + i) + 1;
  }
  return plan;
}

std::vector<PlannedLaunch> first_launches(std::uint64_t seed, int timed,
                                          const std::vector<int>& others) {
  std::vector<PlannedLaunch> plan(kFills);
  for (std::uint64_t i = 0; i < plan.size(); ++i) {
    PlannedLaunch& launch = plan[i];
    launch.number = i % 4 != 1 ? timed : others[derived_seed(seed, 1300 + i) % others.size()];
    launch.input_seed = launch.setting.seed = derived_seed(seed, 1400 + i);
    launch.setting.fill = kTimedFills[i];
    launch.setting.schedule = derived_seed(seed, 1500 + i) + 1;
  }
  return plan;
}

std::vector<PlannedLaunch> sized_launches(std::uint64_t seed, const std::vector<int>& cheap) {
  std::vector<PlannedLaunch> plan(cheap.empty() ? 0 : kSizedLaunches);
  const std::uint64_t begin = derived_seed(seed, 8);
  const std::uint64_t first_seed = derived_seed(seed, 1600) & ~std::uint64_t{1};
  for (std::uint64_t i = 0; i < plan.size(); ++i) {
    PlannedLaunch& launch = plan[i];
    launch.number = cheap[(begin + i) % cheap.size()];
    launch.input_seed = first_seed + 2 * (i / cheap.size());
    launch.setting.seed = derived_seed(seed, 1600 + i);
    launch.setting.fill = fill_at(begin + i / cheap.size());
  }
  return plan;
}

std::uint64_t repetitions(const Repetition& repetition, std::uint64_t seed,
                          std::optional<double> cost) {
  if (!cost) return repetition.least;
  const double part = static_cast<double>(derived_seed(seed, repetition.least)) / (1U << 31U);
  const auto least = static_cast<double>(repetition.least);
  const double drawn = least * std::exp2(repetition.doublings * part);
  const double most = kMostCost / std::max(1.0, *cost);
  return static_cast<std::uint64_t>(std::max(least, std::min(drawn, most)));
}

}  // namespace kernwright
