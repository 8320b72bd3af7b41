// Estimates the cycles of a step for each number of blocks.
#include "kernels_src/recurrent/recurrence_plan.h"

#include "base/errors.h"
#include "base/format.h"

#include <algorithm>

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
constexpr std::int64_t kClusterCycles = 900, kBlockCycles = 200;

std::int64_t divided_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Elements from one row of the matrix, or vector, to the next.
std::int64_t recurrence_pitch(const RecurrenceExtent& e) {
  const auto pack = static_cast<std::int64_t>(16 / scalar_size(e.type));
  return divided_up(e.outputs * e.hidden, pack) * pack;
}

std::int64_t recurrence_bytes(const RecurrenceExtent& e, const RecurrencePlan& plan) {
  const std::int64_t number = e.type == ScalarType::float64 ? 8 : 4;
  const std::int64_t pitch = recurrence_pitch(e), buffers = plan.resident ? 2 : 1;
  const std::int64_t each = std::int64_t{plan.rows} * plan.units;
  const auto element = static_cast<std::int64_t>(scalar_size(e.type));
  const std::int64_t weights = plan.resident ? e.gates * plan.units * pitch * element : 0;
  return weights + number * (buffers * plan.rows * pitch + buffers * e.inputs * each + each);
}

std::int64_t most_shared_bytes(const Device& device) {
  return device.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) - kStaticBytes;
}

/// Rows of the batch for each of at most `slices` blocks, or groups of blocks.
void share_batch(RecurrencePlan& plan, const RecurrenceExtent& e, std::int64_t slices) {
  const std::int64_t rows = divided_up(e.batch, std::max<std::int64_t>(slices, 1));
  plan.rows_at_once = rows == 1 ? 1 : 4;
  plan.rows = static_cast<int>(divided_up(rows, plan.rows_at_once)) * plan.rows_at_once;
}

/// With fewer rows a block where the shared memory asks for it.
bool fit_rows(RecurrencePlan& plan, const RecurrenceExtent& e, std::int64_t room) {
  while (recurrence_bytes(e, plan) > room && plan.rows > 1) {
    plan.rows_at_once = plan.rows > 4 ? 4 : 1;
    plan.rows = plan.rows > 4 ? static_cast<int>(divided_up(plan.rows / 2, 4)) * 4 : 1;
  }
  return recurrence_bytes(e, plan) <= room;
}

RecurrencePlan finished(RecurrencePlan plan, const RecurrenceExtent& e, std::int64_t warps) {
  plan.warps = static_cast<int>(std::min<std::int64_t>(divided_up(plan.units, e.units), warps));
  plan.shared_bytes = static_cast<std::uint32_t>(recurrence_bytes(e, plan));
  if (divided_up(e.batch, plan.rows) > kMostSlices)
    throw InvalidArgument(format("a batch of {} rows is more than a launch can take", e.batch));
  return plan;
}

std::optional<RecurrencePlan> resident_plan(const Device& device, const RecurrenceExtent& e,
                                            int blocks) {
  if (blocks > 1 && (device.compute_capability().major < 9 || blocks > e.hidden)) return {};
  RecurrencePlan plan{.resident = true};
  plan.units = static_cast<int>(divided_up(e.hidden, blocks));
  plan.blocks = static_cast<int>(divided_up(e.hidden, plan.units));
  const std::int64_t all = device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  // Clusters do not fill a device to the last multiprocessor.
  const std::int64_t usable = blocks > 1 ? all - all / 8 : all;
  share_batch(plan, e, usable / (std::int64_t{plan.blocks} * e.directions));
  if (!fit_rows(plan, e, most_shared_bytes(device))) return {};
  return finished(plan, e, kMostRecurrenceWarps);
}

std::int64_t cycles_of_step(const Device& device, const RecurrenceExtent& e,
                            const RecurrencePlan& plan) {
  const std::int64_t elements = e.gates * plan.units * recurrence_pitch(e);
  const auto element = static_cast<std::int64_t>(scalar_size(e.type));
  const std::int64_t passes = plan.rows / plan.rows_at_once;
  const std::int64_t vectors = elements / (e.gates * e.units) * plan.rows_at_once * 4;
  const std::int64_t read = passes * (elements * element + vectors) / kSharedBytesPerCycle;
  const std::int64_t computed = plan.rows * elements / kProductsPerCycle;
  const std::int64_t blocks = divided_up(e.batch, plan.rows) * plan.blocks * e.directions;
  const std::int64_t waves =
      divided_up(blocks, device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  return waves * (std::max(read, computed) + (plan.blocks > 1 ? kClusterCycles : kBlockCycles));
}

RecurrencePlan step_plan(const Device& device, const RecurrenceExtent& e) {
  RecurrencePlan plan;
  plan.units = static_cast<int>(std::min(e.hidden, kStepWarps * e.units));
  plan.blocks = static_cast<int>(divided_up(e.hidden, plan.units));
  const std::int64_t all = device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  share_batch(plan, e, 2 * all / (std::int64_t{plan.blocks} * e.directions));
  if (!fit_rows(plan, e, std::min(most_shared_bytes(device), kStepVectorBytes)) &&
      recurrence_bytes(e, plan) > most_shared_bytes(device)) {
    throw InvalidArgument(
        format("{} hidden units have no room in the shared memory of {}", e.hidden, device.name()));
  }
  return finished(plan, e, kStepWarps);
}

}  // namespace

RecurrencePlan plan_recurrence(const Device& device, const RecurrenceExtent& extent,
                               std::optional<int> blocks) {
  if (blocks == 0) return step_plan(device, extent);
  if (blocks) {
    if (const auto asked = resident_plan(device, extent, *blocks)) return *asked;
    throw InvalidArgument(
        format("{} blocks have no room for a matrix of {} hidden units", *blocks, extent.hidden));
  }
  std::optional<RecurrencePlan> best;
  for (const int each : {1, 2, 4, 8}) {
    if (extent.steps <= kFewSteps) break;
    const auto plan = resident_plan(device, extent, each);
    if (plan &&
        (!best || cycles_of_step(device, extent, *plan) < cycles_of_step(device, extent, *best)))
      best = plan;
  }
  return best ? *best : step_plan(device, extent);
}

LaunchConfig RecurrencePlan::config(const RecurrenceExtent& extent, const Stream& stream) const {
  LaunchConfig config;
  config.grid = {static_cast<std::uint32_t>(blocks),
                 static_cast<std::uint32_t>(divided_up(extent.batch, rows)),
                 static_cast<std::uint32_t>(extent.directions)};
  config.block = {static_cast<std::uint32_t>(32 * warps)};
  config.shared_bytes = shared_bytes;
  config.stream = stream;
  if (resident && blocks > 1) config.cluster = {static_cast<std::uint32_t>(blocks), 1, 1};
  return config;
}

}  // namespace kernwright::kernels
