// The parts of a captured graph: its nodes in order, their kinds and their dependencies.
#pragma once

#include "driver/driver_api.h"

#include <cstdint>
#include <string>
#include <vector>

namespace kernwright {

class Device;

/// Nodes of a CUgraph, each behind its dependencies; otherwise in the driver's order, the order of
/// the capture. A value; handles are valid as long as the CUgraph.
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
