// How a recurrence is spread over blocks.
#pragma once

#include "base/scalar_type.h"
#include "core/device.h"
#include "core/launch/launch_config.h"

#include <cstdint>
#include <optional>

namespace kernwright::kernels {

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

struct RecurrencePlan {
  bool resident = false;  ///< all steps in one launch, the matrix in shared memory
  int blocks = 1;         ///< that share the hidden units
  int units = 1;          ///< of a block
  int rows = 1;           ///< of the batch, of a block
  int rows_at_once = 1;   ///< 1 or 4
  int warps = 1;
  std::uint32_t shared_bytes = 0;

  LaunchConfig config(const RecurrenceExtent& extent, const Stream& stream) const;
};

/// `blocks` asks for so many blocks of a cluster, 0 for a launch a step; nothing for the fastest by
/// an estimate. Throws InvalidArgument where a vector, or what is asked for, has no room.
RecurrencePlan plan_recurrence(const Device& device, const RecurrenceExtent& extent,
                               std::optional<int> blocks);

}  // namespace kernwright::kernels
