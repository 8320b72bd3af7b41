// What lanes loaded before anybody knew whether they want it, as the race check remembers it.
#pragma once

#include "sim/check/history/shadow.h"
#include "sim/exec/warp/memory_site.h"
#include "sim/ptx/types.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

namespace kernwright::sim {

struct Warp;

/// The last execution of one load in one frame, by lane.
struct Speculated {
  Warp* warp = nullptr;
  std::uint32_t lanes = 0;    ///< those that nobody has taken yet
  std::uint32_t met = 0;      ///< that have met others of their warp since
  std::uint32_t closed = 0;   ///< that something may have ordered before what others do now
  std::uint32_t pending = 0;  ///< that raced with what `other` tells of
  std::array<Shadow, kLanes> stamp{}, other{};
  std::array<std::uint64_t, kLanes> address{};
  std::array<ptx::Space, kLanes> space{};
};

/// By frame and index of the load.
using SpeculatedLoads = std::map<std::pair<const std::byte*, std::uint32_t>, Speculated>;

}  // namespace kernwright::sim
