// How a recurrence is spread over blocks.
#include "kernels_src/recurrent/recurrence_plan.h"

#include "base/errors.h"
#include "unit/random_engines.h"

#include <doctest/doctest.h>

#include <random>

using namespace kernwright;
using namespace kernwright::kernels;

namespace {

constexpr RecurrenceDevice kWithClusters = {
    .multiprocessors = 132, .shared_bytes = 232000, .clusters = true};
constexpr RecurrenceDevice kWithoutClusters = {
    .multiprocessors = 108, .shared_bytes = 166000, .clusters = false};

RecurrenceExtent lstm_extent(std::int64_t hidden, std::int64_t batch, std::int64_t steps,
                             int directions = 1, ScalarType type = ScalarType::float32) {
  return {.type = type,
          .hidden = hidden,
          .batch = batch,
          .steps = steps,
          .directions = directions,
          .gates = 4,
          .units = 1,
          .outputs = 1,
          .inputs = 4};
}

RecurrencePlan ruled_plan(const RecurrenceDevice& device, const RecurrenceExtent& extent) {
  return plan_recurrence(device, extent, std::nullopt);
}

}  // namespace

TEST_CASE("recurrence plan: small matrices are read once, where there are steps enough") {
  for (const RecurrenceDevice& device : {kWithClusters, kWithoutClusters}) {
    for (const std::int64_t hidden : {8, 64, 100, 256}) {
      for (const int directions : {1, 2}) {
        CHECK(ruled_plan(device, lstm_extent(hidden, 1, 500, directions)).is_resident());
        CHECK_FALSE(ruled_plan(device, lstm_extent(hidden, 1, 1, directions)).is_resident());
      }
    }
  }
}

TEST_CASE("recurrence plan: blocks cover units and batch, and have room") {
  std::mt19937 engine(20261130);
  const auto draw = [&](unsigned bits) {
    return 1 + static_cast<std::int64_t>(engine() % (1U << engine() % bits));
  };
  for (int i = 0; i < 4000; ++i) {
    const RecurrenceDevice& device = i % 2 == 0 ? kWithClusters : kWithoutClusters;
    constexpr ScalarType kTypes[] = {ScalarType::bfloat16, ScalarType::float32,
                                     ScalarType::float64};
    const int directions = 1 + i / 2 % 2;
    const RecurrenceExtent extent =
        lstm_extent(draw(12), draw(13), draw(10), directions, kTypes[engine() % 3]);
    const RecurrencePlan plan = ruled_plan(device, extent);
    const LaunchConfig config = plan.config(extent, {});
    const Dim3 grid = config.grid;
    CAPTURE(extent.hidden);
    CAPTURE(extent.batch);
    CAPTURE(extent.steps);
    CHECK(std::int64_t{plan.units} * grid.x >= extent.hidden);
    CHECK(std::int64_t{plan.rows} * grid.y >= extent.batch);
    CHECK(std::int64_t{plan.rows} * (grid.y - 1) < extent.batch);
    CHECK(static_cast<int>(grid.z) == directions);
    CHECK(plan.rows % plan.rows_at_once == 0);
    CHECK(std::int64_t{plan.shared_bytes} <= device.shared_bytes);
    CHECK((config.block.x >= 32 && config.block.x <= 1024));
    if (plan.way == RecurrenceWay::cluster) {  // of as many blocks as a power of two
      CHECK((grid.x <= 8 && (grid.x & (grid.x - 1)) == 0));
      CHECK((device.clusters || grid.x == 1));
    } else {
      CHECK(std::int64_t{plan.units} * (grid.x - 1) < extent.hidden);
    }
    // Blocks that meet in memory all run at once.
    if (plan.way == RecurrenceWay::grid)
      CHECK(static_cast<std::int64_t>(grid.count()) <= device.multiprocessors);
    CHECK(config.cooperative == (plan.way == RecurrenceWay::grid));
  }
}

TEST_CASE("recurrence plan: what has no room is refused") {
  CHECK_THROWS_AS(plan_recurrence(kWithClusters, lstm_extent(1024, 1, 9),
                                  RecurrenceRequest{RecurrenceWay::cluster, 8}),
                  InvalidArgument);
  CHECK_THROWS_AS(plan_recurrence(kWithoutClusters, lstm_extent(64, 1, 9),
                                  RecurrenceRequest{RecurrenceWay::cluster, 2}),
                  InvalidArgument);
  CHECK_THROWS_AS(ruled_plan(kWithClusters, lstm_extent(100000, 1, 9)), InvalidArgument);
}
