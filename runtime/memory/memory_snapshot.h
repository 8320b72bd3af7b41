// The state of a pool's memory at one moment, and its history.
#pragma once

#include "core/launch/launch_site.h"
#include "memory/memory_stats.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kernwright {

struct SnapshotBlock {
  std::uint64_t address = 0;
  std::size_t bytes = 0;
  std::size_t requested = 0;  ///< of a block in use
  std::string state;          ///< "used", "held" until a capture ends, or "free"
  std::uint64_t stream = 0;   ///< whose memory it is; 0: free for every stream
  LaunchSite site;            ///< of a block in use
};

struct SnapshotSegment {
  std::uint64_t address = 0;
  std::size_t bytes = 0;
  bool belongs_to_graph = false;
  std::vector<SnapshotBlock> blocks;  ///< in the order of addresses, without gaps
};

/// One moment of the past.
struct HistorySample {
  double seconds = 0;              ///< since the pool was made
  std::uint64_t operation = 0;     ///< allocations and frees until then
  std::uint64_t used = 0;          ///< bytes
  std::uint64_t reserved = 0;      ///< bytes
  std::uint64_t largest_free = 0;  ///< bytes of the largest free block
};

struct MemorySnapshot {
  std::string resource;  ///< the name of what was asked
  MemoryStats stats;
  std::vector<SnapshotSegment> segments;
  std::vector<HistorySample> history;  ///< oldest first
};

}  // namespace kernwright
