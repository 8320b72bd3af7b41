// Estimates the cycles of a step for each number of blocks.
#include "kernels_src/recurrent/recurrence_plan.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/math.h"

#include <algorithm>
#include <array>
#include <vector>

namespace kernwright::kernels {
namespace {

constexpr std::int64_t kMostRecurrenceWarps = 16;
constexpr std::int64_t kStepWarps = 8;  // of a block that computes one step
constexpr std::int64_t kStepVectorBytes = 64 << 10;
constexpr std::int64_t kFewSteps = 3;  // for so many the matrix is not worth a copy
constexpr std::int64_t kMostSlices = 65535;
constexpr std::int64_t kStaticBytes = 64;
// Cycles: what a block reads of its shared memory, and computes, in one; meeting the others.
constexpr std::int64_t kSharedBytesPerCycle = 128, kProductsPerCycle = 128;
constexpr std::int64_t kClusterCycles = 900, kBlockCycles = 200, kGridCycles = 4000;
constexpr std::int64_t kLaunchCycles = 4000;        // from one step to the next
constexpr std::int64_t kCacheBytesPerCycle = 3000;  // of all multiprocessors, from L2

/// Elements from one row of the matrix, or vector, to the next.
std::int64_t recurrence_pitch(const RecurrenceExtent& e) {
  const auto pack = static_cast<std::int64_t>(16 / scalar_size(e.type));
  return ceil_div(e.outputs * e.hidden, pack) * pack;
}

std::int64_t recurrence_bytes(const RecurrenceExtent& e, const RecurrencePlan& plan) {
  const std::int64_t number = e.type == ScalarType::float64 ? 8 : 4;
  const std::int64_t pitch = recurrence_pitch(e), buffers = plan.is_resident() ? 2 : 1;
  const std::int64_t vectors = plan.way == RecurrenceWay::cluster ? 2 : 1;
  const std::int64_t each = std::int64_t{plan.rows} * plan.units;
  const auto element = static_cast<std::int64_t>(scalar_size(e.type));
  const std::int64_t weights = plan.is_resident() ? e.gates * plan.units * pitch * element : 0;
  return weights + number * (vectors * plan.rows * pitch + buffers * e.inputs * each + each);
}

/// Rows of the batch for each of at most `slices` blocks, or groups of blocks.
void share_batch(RecurrencePlan& plan, const RecurrenceExtent& e, std::int64_t slices) {
  const std::int64_t rows = ceil_div(e.batch, std::max<std::int64_t>(slices, 1));
  plan.rows_at_once = rows == 1 ? 1 : 4;
  plan.rows = static_cast<int>(ceil_div(rows, plan.rows_at_once)) * plan.rows_at_once;
}

/// With fewer rows a block where the shared memory asks for it.
bool fit_rows(RecurrencePlan& plan, const RecurrenceExtent& e, std::int64_t room) {
  while (recurrence_bytes(e, plan) > room && plan.rows > 1) {
    plan.rows_at_once = plan.rows > 4 ? 4 : 1;
    plan.rows = plan.rows > 4 ? static_cast<int>(ceil_div(plan.rows / 2, 4)) * 4 : 1;
  }
  return recurrence_bytes(e, plan) <= room;
}

RecurrencePlan finished(RecurrencePlan plan, const RecurrenceExtent& e, std::int64_t warps) {
  plan.warps = static_cast<int>(std::min<std::int64_t>(ceil_div(plan.units, e.units), warps));
  plan.shared_bytes = static_cast<std::uint32_t>(recurrence_bytes(e, plan));
  if (ceil_div(e.batch, plan.rows) > kMostSlices)
    throw InvalidArgument(format("a batch of {} rows is more than a launch can take", e.batch));
  return plan;
}

std::int64_t block_config(const RecurrenceExtent& e, const RecurrencePlan& plan) {
  return ceil_div(e.batch, plan.rows) * plan.blocks * e.directions;
}

std::optional<RecurrencePlan> resident_plan(const RecurrenceDevice& device,
                                            const RecurrenceExtent& e,
                                            const RecurrenceRequest& request) {
  const bool grid = request.way == RecurrenceWay::grid;
  if (request.blocks > e.hidden) return {};
  if (!grid && request.blocks > 1 && !device.clusters) return {};
  RecurrencePlan plan{.way = request.way};
  plan.units = static_cast<int>(ceil_div(e.hidden, request.blocks));
  // Sizes of clusters are powers of two: the last blocks may have no unit.
  plan.blocks = grid ? static_cast<int>(ceil_div(e.hidden, plan.units)) : request.blocks;
  const std::int64_t all = device.multiprocessors;
  // Clusters do not fill a device to the last multiprocessor.
  const std::int64_t usable = !grid && request.blocks > 1 ? all - all / 8 : all;
  share_batch(plan, e, usable / (std::int64_t{plan.blocks} * e.directions));
  if (!fit_rows(plan, e, device.shared_bytes)) return {};
  if (grid && block_config(e, plan) > all) return {};  // all must be at work at once
  return finished(plan, e, kMostRecurrenceWarps);
}

std::int64_t step_cycles(const RecurrenceDevice& device, const RecurrenceExtent& e,
                         const RecurrencePlan& plan) {
  const std::int64_t all = device.multiprocessors;
  const std::int64_t elements = e.gates * plan.units * recurrence_pitch(e);
  const auto element = static_cast<std::int64_t>(scalar_size(e.type));
  const std::int64_t passes = plan.rows / plan.rows_at_once;
  const std::int64_t vectors = elements / (e.gates * e.units) * plan.rows_at_once * 4;
  const std::int64_t blocks = block_config(e, plan), waves = ceil_div(blocks, all);
  const std::int64_t computed = plan.rows * elements / kProductsPerCycle;
  if (!plan.is_resident()) {
    const std::int64_t read = blocks * passes * elements * element / kCacheBytesPerCycle;
    return std::max(read, waves * computed) + kLaunchCycles;
  }
  const std::int64_t read = passes * (elements * element + vectors) / kSharedBytesPerCycle;
  const std::int64_t meeting = plan.way == RecurrenceWay::grid ? kGridCycles
                               : plan.blocks > 1               ? kClusterCycles
                                                               : kBlockCycles;
  return waves * (std::max(read, computed) + meeting);
}

RecurrencePlan step_plan(const RecurrenceDevice& device, const RecurrenceExtent& e) {
  RecurrencePlan plan;
  plan.units = static_cast<int>(std::min(e.hidden, kStepWarps * e.units));
  plan.blocks = static_cast<int>(ceil_div(e.hidden, plan.units));
  const std::int64_t all = device.multiprocessors;
  share_batch(plan, e, 2 * all / (std::int64_t{plan.blocks} * e.directions));
  if (!fit_rows(plan, e, std::min(device.shared_bytes, kStepVectorBytes)) &&
      recurrence_bytes(e, plan) > device.shared_bytes) {
    throw InvalidArgument(format("{} hidden units have no room in {} bytes of shared memory",
                                 e.hidden, device.shared_bytes));
  }
  return finished(plan, e, kStepWarps);
}

}  // namespace

RecurrenceDevice recurrence_device(const Device& device, const Stream& stream) {
  return {multiprocessors_of(stream, device),
          device.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) - kStaticBytes,
          device.compute_capability().major >= 9};
}

const char* recurrence_way_name(RecurrenceWay way) noexcept {
  constexpr std::array names = {"kStepByStep", "kInCluster", "kInGrid"};
  return names[static_cast<std::size_t>(way)];
}

RecurrencePlan plan_recurrence(const RecurrenceDevice& device, const RecurrenceExtent& extent,
                               const std::optional<RecurrenceRequest>& request) {
  if (request && request->way == RecurrenceWay::steps) return step_plan(device, extent);
  if (request) {
    if (const auto asked = resident_plan(device, extent, *request)) return *asked;
    throw InvalidArgument(format("{} blocks have no room for a matrix of {} hidden units",
                                 request->blocks, extent.hidden));
  }
  RecurrencePlan best = step_plan(device, extent);
  if (extent.steps <= kFewSteps) return best;
  std::vector<RecurrenceRequest> candidates;
  for (const int each : {1, 2, 4, 8}) candidates.push_back({RecurrenceWay::cluster, each});
  for (const int each : {8, 16, 32, 64, 128}) candidates.push_back({RecurrenceWay::grid, each});
  for (const RecurrenceRequest& each : candidates) {
    const auto plan = resident_plan(device, extent, each);
    if (plan && step_cycles(device, extent, *plan) < step_cycles(device, extent, best))
      best = *plan;
  }
  return best;
}

LaunchConfig RecurrencePlan::config(const RecurrenceExtent& extent, const Stream& stream) const {
  LaunchConfig config;
  config.grid = {static_cast<std::uint32_t>(blocks),
                 static_cast<std::uint32_t>(ceil_div(extent.batch, rows)),
                 static_cast<std::uint32_t>(extent.directions)};
  config.block = {static_cast<std::uint32_t>(32 * warps)};
  config.shared_bytes = shared_bytes;
  config.stream = stream;
  config.cooperative = way == RecurrenceWay::grid;
  if (way == RecurrenceWay::cluster && blocks > 1)
    config.cluster = {static_cast<std::uint32_t>(blocks), 1, 1};
  return config;
}

}  // namespace kernwright::kernels
