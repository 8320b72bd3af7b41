// The best of the trials that ended, and what is told of them.
#include "tune/session/ended_trials.h"

#include <doctest/doctest.h>

using namespace kernwright;

namespace {

Trial ended(std::uint64_t number, std::uint64_t index, std::optional<double> score) {
  Trial trial;
  trial.number = number;
  trial.index = index;
  trial.score = trial.median_ms = score;
  trial.measure_s = 1;
  if (!score) trial.status = TrialStatus::runtime;
  return trial;
}

}  // namespace

TEST_CASE("ended trials: the least score is the best, of equal ones the least index") {
  EndedTrials trials;
  CHECK(trials.best() == nullptr);
  CHECK_FALSE(trials.result({}).best);
  trials.add(ended(0, 9, std::nullopt));
  CHECK(trials.best() == nullptr);
  trials.add(ended(1, 5, 2));
  trials.add(ended(2, 3, 2));
  trials.add(ended(3, 8, 4));
  CHECK(trials.best()->index == 3);
  const SessionResult result = trials.result(8);
  CHECK(result.evaluations == 4);
  CHECK(result.best == 3);
  CHECK(result.ties == std::vector<std::uint64_t>{3, 5});
  CHECK(result.default_ms == 4);
  CHECK_FALSE(trials.result(9).default_ms);
}

TEST_CASE("ended trials: each is delivered once, and found by its number") {
  EndedTrials trials;
  CHECK(trials.deliver() == nullptr);
  const Trial& first = trials.add(ended(4, 0, 1));
  const Trial& second = trials.add(ended(2, 1, 1));
  CHECK_FALSE(trials.all_delivered());
  CHECK(trials.deliver() == &first);
  CHECK(trials.deliver() == &second);
  CHECK(trials.all_delivered());
  CHECK(trials.find(4) == &first);
  CHECK(trials.find(0) == nullptr);
}

TEST_CASE("ended trials: a device's time counts once for the same code") {
  EndedTrials trials;
  trials.add(ended(0, 0, 1));
  Trial same = ended(1, 1, 1);
  same.same_as = 0;
  trials.add(same);
  CHECK(trials.gpu_s() == 1);
}
