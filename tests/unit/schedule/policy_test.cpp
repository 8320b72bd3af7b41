// What each policy chooses.
#include "schedule/policy.h"

#include "unit/core/error_text.h"

#include <doctest/doctest.h>

#include <memory>
#include <vector>

using namespace kernwright;
using namespace kernwright::schedule;
using namespace std::chrono_literals;
using testing::contains;
using testing::message_of;

namespace {

/// Tasks, and candidates of them.
struct Line {
  void add(Qos qos, int priority = 0, std::optional<Time> deadline = {}, double progress = 0) {
    const auto id = tasks.size() + 1;
    tasks.push_back(std::make_shared<Task>(
        id, TaskSpec{.qos = qos, .priority = priority, .deadline = deadline}, nullptr, Time(0)));
    candidates.push_back({.task = tasks.back().get(),
                          .tenant = {},
                          .qos = qos,
                          .deadline = deadline,
                          .progress = progress});
  }
  std::vector<TaskPointer> tasks;
  std::vector<Candidate> candidates;
};

}  // namespace

TEST_CASE("policy: names are found, others list them") {
  for (const std::string& name : policy_names()) CHECK(policy_named(name)->name() == name);
  const auto text = message_of<NameNotFound>([] { policy_named("fifo"); });
  CHECK(contains(text, "\"strict\""));
  for (const std::string& name : policy_names()) {
    CHECK_FALSE(policy_named(name)->choose({}, {}).has_value());
  }
}

TEST_CASE("policy: default goes by class, priority, progress, then submission") {
  const auto policy = policy_named("default");
  Line line;
  line.add(Qos::best_effort, 9);
  line.add(Qos::burstable, 0, {}, 2.0);
  line.add(Qos::burstable, 0, {}, 1.0);
  CHECK(policy->choose(line.candidates, {}) == 2);
  line.add(Qos::burstable, 1, {}, 5.0);
  CHECK(policy->choose(line.candidates, {}) == 3);
  line.add(Qos::guaranteed, 0, {}, 0.5);
  line.add(Qos::guaranteed, 0, {}, 0.5);
  CHECK(policy->choose(line.candidates, {}) == 4);
  CHECK_FALSE(policy->holds(Qos::best_effort, {.running = {0, 1, 1}}));
  CHECK(policy->holds(Qos::best_effort, {.running = {1, 0, 0}}));
  CHECK_FALSE(policy->holds(Qos::burstable, {.running = {1, 0, 0}}));
}

TEST_CASE("policy: strict keeps a class back while one in front runs or waits") {
  const auto policy = policy_named("strict");
  Line line;
  line.add(Qos::best_effort);
  CHECK(policy->choose(line.candidates, {.waiting = {0, 0, 1}}) == 0);
  CHECK_FALSE(policy->choose(line.candidates, {.waiting = {0, 0, 1}, .running = {1, 0, 0}}));
  CHECK_FALSE(policy->choose(line.candidates, {.waiting = {0, 1, 1}}));
  CHECK(policy->holds(Qos::burstable, {.running = {1, 0, 0}}));
  CHECK_FALSE(policy->holds(Qos::guaranteed, {.running = {1, 1, 1}}));
}

TEST_CASE("policy: weighted goes by progress whatever the class") {
  const auto policy = policy_named("weighted");
  Line line;
  line.add(Qos::guaranteed, 0, {}, 3.0);
  line.add(Qos::best_effort, 0, {}, 1.0);
  line.add(Qos::burstable, 0, {}, 2.0);
  CHECK(policy->choose(line.candidates, {}) == 1);
}

TEST_CASE("policy: the earliest deadline goes first within its class") {
  const auto policy = policy_named("deadline");
  Line line;
  line.add(Qos::burstable, 0, 1ms);
  line.add(Qos::guaranteed);
  line.add(Qos::guaranteed, 0, 5ms);
  line.add(Qos::guaranteed, 9, 7ms);
  CHECK(policy->choose(line.candidates, {}) == 2);
  CHECK(policy->before(*line.tasks[2], *line.tasks[3]));
  CHECK(policy->before(*line.tasks[3], *line.tasks[1]));
  CHECK_FALSE(policy->before(*line.tasks[1], *line.tasks[1]));
}
