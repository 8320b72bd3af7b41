// The place of a block in its launch: its neighbours, and the owners of ticks.
#pragma once

#include "sim/check/checked_launch.h"
#include "sim/check/history/shadow.h"
#include "sim/check/order/clock.h"
#include "sim/check/race/access.h"

#include <array>
#include <cstdint>

namespace kernwright::sim {

struct Block;

/// The place of the running block.
struct BlockPlace {
  explicit BlockPlace(CheckedLaunch& its_launch) : launch(its_launch) {}

  void begin(const Block& block);

  /// The block with this rank in the cluster; this one if there is none or it has ended.
  std::uint32_t block_at(std::uint64_t rank) const;
  /// The block that made a shadow, by its tick.
  std::uint32_t owner(Shadow shadow) const { return launch.ticks.owner(get_tick(shadow)); }
  std::uint32_t get_cluster(std::uint32_t other) const;
  /// The reach needed by an operation of this block to meet one of the other block.
  Reach reach_to(std::uint32_t other) const;
  /// The op of a site; null where it is not known.
  const CheckedOp* op_at(std::uint32_t site) const;
  /// How far away the other access is; one of several readers: the farthest of them.
  Breadth get_breadth(const WordAccess& access, Shadow other, Told told = Told::itself) const;

  CheckedLaunch& launch;
  const Block* in = nullptr;
  bool clustered = false;   ///< shared memory may hold shadows of other blocks
  std::uint32_t block = 0;  ///< linear index
  std::array<std::uint32_t, 3> ctaid{}, grid_shape{}, cluster_shape{};
};

}  // namespace kernwright::sim
