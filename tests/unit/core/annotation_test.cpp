// Annotations in a recording.
#include "core/annotation.h"

#include "core/activity.h"

#include <doctest/doctest.h>

using namespace kernwright;

TEST_CASE("annotation: a recording holds it with its time, inner ones first") {
  const auto recording = ActivityRecording::begin();
  {
    const Annotation outer("outer");
    const Annotation inner("inner");
  }
  const std::vector<Activity> activities = recording->end();
  REQUIRE(activities.size() == 2);
  const Activity &inner = activities[0], &outer = activities[1];
  CHECK(inner.name == "inner");
  CHECK(outer.name == "outer");
  for (const Activity& activity : activities) {
    CHECK(activity.kind == Activity::Kind::annotation);
    CHECK(activity.device == nullptr);
    CHECK(activity.device_ms < 0);
  }
  CHECK(outer.host_begin_ms <= inner.host_begin_ms);
  CHECK(outer.host_begin_ms + outer.host_ms >= inner.host_begin_ms + inner.host_ms);
}

TEST_CASE("annotation: one that began before the recording, or outlives it, is left out") {
  std::vector<Activity> activities;
  {
    const Annotation before("before");
    const auto recording = ActivityRecording::begin();
    const Annotation after("after");
    activities = recording->end();
  }
  CHECK(activities.empty());
}
