// Specifications that are wrong, and the states of a task.
#include "schedule/task.h"

#include "unit/core/error_text.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace kernwright;
using namespace kernwright::schedule;
using testing::contains;
using testing::message_of;

TEST_CASE("task: wrong specifications name the values") {
  const auto text = [](const TaskSpec& spec) {
    return message_of<InvalidArgument>([&] { spec.check(); });
  };
  CHECK(contains(text({.share = {{1.5, 1.5}}}), "share=(1.5, 1.5)"));
  CHECK(contains(text({.share = {{0, 0.5}}}), "above 0"));
  CHECK(contains(text({.share = {{NAN, 0.5}}}), "above 0"));
  CHECK(contains(text({.share = {{0.5, 0.25}}}), "the limit 0.25 is below the request 0.5"));
  CHECK(contains(text({.qos = Qos::burstable, .memory = {{8, 4}}}), "limit of 4 bytes is below"));
  CHECK(contains(text({.memory = {{4, 8}}}), "qos=\"burstable\""));
  CHECK(contains(text({.memory = {{0, 0}}}), "leaves memory out"));
  CHECK(contains(text({.after = {nullptr}}), "empty task"));
  TaskSpec{.qos = Qos::burstable, .memory = {{4, 8}}, .share = {{0.25, 1}}}.check();
}

TEST_CASE("task: names of classes") {
  for (const Qos qos : kAllClasses) CHECK(qos_named(qos_name(qos)) == qos);
  const auto text = message_of<InvalidArgument>([] { qos_named("gold"); });
  CHECK(contains(text, "\"gold\""));
  CHECK(contains(text, "best_effort"));
}
