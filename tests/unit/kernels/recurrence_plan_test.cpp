// How a recurrence is spread over blocks.
#include "kernels_src/recurrent/recurrence_plan.h"

#include "base/errors.h"

#include <doctest/doctest.h>

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

TEST_CASE("recurrence plan: matrices that fit into clusters stay there") {
  for (const int directions : {1, 2}) {
    const RecurrencePlan plan = ruled_plan(kWithClusters, lstm_extent(256, 1, 500, directions));
    CHECK(plan.way == RecurrenceWay::cluster);
    CHECK(plan.blocks == 8);
    CHECK(plan.rows_at_once == 1);
  }
  CHECK(ruled_plan(kWithClusters, lstm_extent(8, 1, 100)).blocks == 1);
  CHECK(ruled_plan(kWithClusters, lstm_extent(128, 64, 100)).way == RecurrenceWay::cluster);
}

TEST_CASE("recurrence plan: others meet in memory, or take a launch a step") {
  CHECK(ruled_plan(kWithClusters, lstm_extent(1024, 1, 100)).way == RecurrenceWay::grid);
  CHECK(ruled_plan(kWithoutClusters, lstm_extent(256, 1, 100)).way == RecurrenceWay::grid);
  CHECK(ruled_plan(kWithoutClusters, lstm_extent(64, 1, 100)).way == RecurrenceWay::cluster);
  CHECK(ruled_plan(kWithoutClusters, lstm_extent(64, 1, 100)).blocks == 1);
  CHECK(ruled_plan(kWithClusters, lstm_extent(4096, 1, 100)).way == RecurrenceWay::steps);
  CHECK(ruled_plan(kWithClusters, lstm_extent(128, 1, 1)).way == RecurrenceWay::steps);
}

TEST_CASE("recurrence plan: blocks cover units and batch, and have room") {
  for (const RecurrenceDevice& device : {kWithClusters, kWithoutClusters}) {
    for (const std::int64_t hidden : {1, 33, 128, 200, 512, 1000, 3000}) {
      for (const std::int64_t batch : {1, 3, 64, 5000}) {
        for (const ScalarType type : {ScalarType::bfloat16, ScalarType::float64}) {
          const RecurrenceExtent extent = lstm_extent(hidden, batch, 50, 2, type);
          const RecurrencePlan plan = ruled_plan(device, extent);
          const Dim3 grid = plan.config(extent, {}).grid;
          CHECK(std::int64_t{plan.units} * grid.x >= hidden);
          if (plan.way == RecurrenceWay::cluster) {
            CHECK((grid.x & (grid.x - 1)) == 0);
          } else {
            CHECK(std::int64_t{plan.units} * (grid.x - 1) < hidden);
          }
          CHECK(std::int64_t{plan.rows} * grid.y >= batch);
          CHECK(std::int64_t{plan.rows} * (grid.y - 1) < batch);
          CHECK(grid.z == 2);
          CHECK(plan.rows % plan.rows_at_once == 0);
          CHECK(std::int64_t{plan.shared_bytes} <= device.shared_bytes);
          if (plan.way == RecurrenceWay::grid)
            CHECK(static_cast<std::int64_t>(grid.count()) <= device.multiprocessors);
        }
      }
    }
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
