// What a captured graph consists of: its nodes in order, their kinds and what each waits for.
#pragma once

#include "driver/driver_api.h"

#include <cstdint>
#include <string>
#include <vector>

namespace kernwright {

class Device;

/// Nodes of a CUgraph so that each comes after those that it waits for; otherwise in the driver's
/// order, which is that of the capture. A value; handles are valid as long as the CUgraph.
struct GraphShape {
  std::vector<CUgraphNode> nodes;
  std::vector<CUgraphNodeType> types;
  std::vector<std::vector<std::uint32_t>> dependencies;  ///< ascending places in `nodes`
  bool exact = true;  ///< false: the driver did not tell every edge (programmatic launches)

  /// True when both are known to have the same nodes and edges, in the same order.
  bool same_as(const GraphShape& other) const noexcept;
};

/// The device's context must be current. Throws DriverError.
GraphShape read_graph_shape(Device& device, CUgraph graph);

}  // namespace kernwright
