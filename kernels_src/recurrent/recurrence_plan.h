// How a recurrence is spread over blocks.
#pragma once

#include "base/scalar_type.h"
#include "core/device.h"
#include "core/launch/launch_config.h"

#include <cstdint>
#include <optional>

namespace kernwright::kernels {

/// What a plan asks of a device.
struct RecurrenceDevice {
  std::int64_t multiprocessors = 1;
  std::int64_t shared_bytes = 48 << 10;  ///< a block may have
  bool clusters = false;
};
/// The part of the device where kernels of `stream` run.
RecurrenceDevice recurrence_device(const Device& device, const Stream& stream);

/// What a recurrence has of everything.
struct RecurrenceExtent {
  ScalarType type;
  std::int64_t hidden = 0, batch = 0, steps = 0;
  int directions = 1;
  int gates = 1;    ///< rows of the matrix of a hidden unit
  int units = 1;    ///< hidden units that a warp computes at a time
  int outputs = 1;  ///< numbers of a unit in the vector that the matrix is multiplied by
  int inputs = 1;   ///< numbers of a unit that a step takes from memory
};

/// One launch for each step, or one launch of all steps, with the matrix in shared memory, whose
/// blocks meet in clusters or through global memory.
enum class RecurrenceWay : std::uint8_t { steps, cluster, grid };
/// The name in the kernels' text.
const char* recurrence_way_name(RecurrenceWay way) noexcept;

struct RecurrencePlan {
  RecurrenceWay way = RecurrenceWay::steps;
  int blocks = 1;        ///< that share the hidden units
  int units = 1;         ///< of a block
  int rows = 1;          ///< of the batch, of a block
  int rows_at_once = 1;  ///< 1 or 4
  int warps = 1;
  std::uint32_t shared_bytes = 0;

  bool is_resident() const noexcept { return way != RecurrenceWay::steps; }
  LaunchConfig config(const RecurrenceExtent& extent, const Stream& stream) const;
};

/// A way and the blocks that share the hidden units, for tests and measurements.
struct RecurrenceRequest {
  RecurrenceWay way = RecurrenceWay::steps;
  int blocks = 1;
};

/// The fastest by an estimate of cycles, or what is asked for. Throws InvalidArgument where a
/// vector, or what is asked for, has no room.
RecurrencePlan plan_recurrence(const RecurrenceDevice& device, const RecurrenceExtent& extent,
                               const std::optional<RecurrenceRequest>& request);

}  // namespace kernwright::kernels
