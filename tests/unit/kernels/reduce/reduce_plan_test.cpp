// The launch shapes of reductions and scans, for sizes too large to run.
#include "kernels_src/reduce/reduce_plan.h"

#include "kernels_src/scan/scan_plan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <utility>

using namespace kernwright;
using namespace kernwright::kernels;

namespace {

constexpr int kProcessorsOfPlans = 132;

AxesPlan planned_axes(std::vector<Axis> kept, std::vector<Axis> reduced) {
  return {.from = 4096, .kept = std::move(kept), .reduced = std::move(reduced)};
}

/// The parts of threads are short enough and cover everything, and the grid can be launched.
void check_reduce_plan(const AxesPlan& axes, std::size_t size) {
  const ReducePlan plan = plan_reduction(axes, size, kProcessorsOfPlans);
  CAPTURE(axes.outputs());
  CAPTURE(axes.length());
  CHECK(plan.segment * plan.segments >= axes.length());
  CHECK(plan.segment * (plan.segments - 1) < std::max<std::int64_t>(axes.length(), 1));
  CHECK(plan.blocks >= 1);
  CHECK(plan.blocks < (std::int64_t{1} << 31));
  const std::int64_t side_by_side = plan.rows ? plan.lanes * plan.pack : kReduceBlock / plan.lanes;
  CHECK(plan.segment <= side_by_side * kLongestPart);
  if (plan.segments > 1) CHECK((!plan.rows || plan.segment % plan.pack == 0));
}

}  // namespace

TEST_CASE("reduction plans: rows and columns of any length") {
  for (const std::int64_t length : {1LL, 7LL, 4096LL, 100'003LL, 1LL << 31, 1LL << 35}) {
    for (const std::int64_t outputs : {1LL, 3LL, 1000LL, 1LL << 24}) {
      if (length * outputs > (1LL << 40)) continue;
      check_reduce_plan(planned_axes({{outputs, 4, 4 * length}}, {{length, 0, 4}}), 4);
      check_reduce_plan(planned_axes({{outputs, 4, 4}}, {{length, 0, 4 * outputs}}), 4);
      check_reduce_plan(planned_axes({{outputs, 1, 3 * length}}, {{length, 0, 3}}), 1);
    }
  }
}

TEST_CASE("reduction plans: a few long rows have blocks for every multiprocessor") {
  const AxesPlan axes = planned_axes({}, {{1 << 26, 0, 4}});
  const ReducePlan plan = plan_reduction(axes, 4, kProcessorsOfPlans);
  CHECK(plan.rows);
  CHECK(plan.pack == 4);
  CHECK(plan.blocks >= 4 * kProcessorsOfPlans);
}

TEST_CASE("scan plans: tiles of long rows, segments of long columns") {
  const Axis row{1 << 28, 4, 4};
  const ScanPlan tiles =
      plan_scan(planned_axes({}, {row}), row, {4, 4, 4}, {.processors = kProcessorsOfPlans});
  CHECK(tiles.path == ScanPath::tiles);
  CHECK(tiles.tiles * kTileThreads * tiles.pack * tiles.steps >= row.extent);
  const ScanRoom room{.processors = kProcessorsOfPlans, .shared = 227 << 10};
  const ScanPlan flow = plan_scan(planned_axes({}, {row}), row, {4, 4, 4}, room);
  CHECK(flow.path == ScanPath::flow);
  CHECK(flow.steps == 4);
  CHECK(flow.tiles * kFlowThreads * flow.pack * flow.steps >= row.extent);
  const Axis apart{1 << 28, 4, 8};
  CHECK(plan_scan(planned_axes({}, {apart}), apart, {4, 4, 4}, room).path == ScanPath::tiles);
  CHECK(plan_scan(planned_axes({}, {row}), row, {4, 4, 8}, room).path == ScanPath::tiles);
  const Axis column{1 << 20, 32, 32};
  const AxesPlan axes = planned_axes({{8, 4, 4}}, {column});
  const ScanPlan columns = plan_scan(axes, column, {4, 4, 4}, {.processors = kProcessorsOfPlans});
  CHECK(columns.path == ScanPath::columns);
  CHECK(columns.pack == 4);
  CHECK(columns.segments > 100);
  CHECK(columns.segments * columns.segment >= column.extent);
}
