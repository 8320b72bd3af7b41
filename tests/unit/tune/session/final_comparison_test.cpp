// Who takes part in the final comparison, and who wins it.
#include "tune/session/final_comparison.h"

#include "unit/tune/session/scripted_backend.h"

#include <doctest/doctest.h>

#include <algorithm>

using namespace kernwright;

namespace {

using Scripts = std::map<std::uint64_t, Script>;

/// Trials with their times, as the lanes left them.
struct Finals {
  explicit Finals(Scripts scripts, SessionOptions its_options = {})
      : backend(std::move(scripts)), options(std::move(its_options)) {}

  void measured(std::uint64_t index, double time_ms) {
    auto trial = std::make_unique<Trial>();
    trial->index = index;
    trial->times_ms = {time_ms, time_ms};
    trial->median_ms = trial->score = time_ms;
    comparison.enter(*trial);
    trials.push_back(std::move(trial));
  }

  ScriptedBackend backend;
  SessionOptions options;
  SessionClock clock;
  StopFlag stop = std::make_shared<std::atomic<bool>>(false);
  FinalComparison comparison{backend, options, clock, stop};
  std::vector<std::unique_ptr<Trial>> trials;
};

}  // namespace

TEST_CASE("final comparison: the fastest of now wins, not the fastest of before") {
  Finals finals({{0, {.time_ms = 1}}, {1, {.time_ms = 0.5}}, {2, {.time_ms = 9}}});
  finals.measured(0, 1.0);
  finals.measured(1, 1.05);
  finals.measured(2, 9);
  CHECK(finals.comparison.best_sample() == 1.0);
  const auto compared = finals.comparison.run(finals.trials);
  REQUIRE(compared);
  CHECK(compared->winner == 1);
  CHECK(compared->median == 0.5);
}

TEST_CASE("final comparison: the default has a standing however slow it is") {
  Finals finals({{0, {.time_ms = 1}}, {1, {.time_ms = 9}}}, {.default_index = 1});
  finals.measured(0, 1);
  finals.measured(1, 9);
  const auto compared = finals.comparison.run(finals.trials);
  REQUIRE(compared);
  CHECK(compared->winner == 0);
  REQUIRE(compared->standing(1) != nullptr);
  CHECK(compared->standing(1)->median == 9);
}

TEST_CASE("final comparison: work that was kept is not compiled again") {
  Finals finals(Scripts{{0, {}}, {1, {}}});
  finals.measured(0, 1);
  finals.measured(1, 1);
  TrialWorkRef work = finals.backend.plan(0);
  finals.backend.compile(*work, {});
  finals.comparison.keep(*finals.trials[0], std::move(work));
  REQUIRE(finals.comparison.run(finals.trials));
  CHECK(finals.backend.order() == std::vector<std::uint64_t>{0, 1});
}

TEST_CASE("final comparison: nothing where no trial has a time, and a stop passes through") {
  Finals none(Scripts{});
  CHECK_FALSE(none.comparison.run(none.trials));
  none.measured(0, 0);
  CHECK_FALSE(none.comparison.best_sample());
  CHECK_FALSE(none.comparison.run(none.trials));
  Finals stopped(Scripts{{0, {}}});
  stopped.measured(0, 1);
  stopped.stop->store(true);
  CHECK_THROWS_AS(stopped.comparison.run(stopped.trials), Cancelled);
}
