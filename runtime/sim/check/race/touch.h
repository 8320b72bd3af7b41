// One access in the form for the checks, and the data kept about a place of the program.
#pragma once

#include "sim/check/history/global_shadow.h"
#include "sim/exec/warp/memory_site.h"
#include "sim/mem/access_kind.h"
#include "sim/ptx/types.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace kernwright::sim {

enum class Apart : std::uint8_t { unknown, yes, no };

/// The last address pattern of one op, as MemorySite; belongs to check/handlers/checked_access.cpp.
struct alignas(64) CheckSite {
  std::array<std::uint64_t, kLanes> offsets{};  ///< from the first active lane
  std::uint32_t mask = 0;
  std::uint8_t pattern = 0;
  Apart apart = Apart::unknown;
  bool aligned = false;    ///< the offsets are multiples of the access size
  std::int32_t tag = 0;    ///< another one for each pattern that a site of the block had; 0: none
  std::uint64_t low = 0;   ///< how far below the first active lane's address others lie
  std::uint64_t high = 0;  ///< bytes from that address to the end of the last lane's
  std::uint64_t region_number = ~std::uint64_t{0};
  GlobalRegion* region = nullptr;
  std::uint64_t last = 0;  ///< address of the last access
};

/// The sites of a block, by CheckedOp::site.
class CheckSites {
 public:
  explicit CheckSites(std::size_t count) : all_(std::min<std::size_t>(count, kMostSites) + 1) {}

  CheckSite& operator[](std::size_t site) noexcept { return all_.data()[site]; }
  /// CheckSite::tag of a new pattern; none when there are no more numbers.
  std::int32_t new_tag() noexcept {
    return last_tag_ == std::numeric_limits<std::int32_t>::max() ? 0 : ++last_tag_;
  }

 private:
  std::vector<CheckSite> all_;
  std::int32_t last_tag_ = 0;
};

class BlockCheck;

/// One lane's access to up to 16 bytes within a region.
struct LaneTouch {
  AccessKind mode = AccessKind::read;
  ptx::Space space = ptx::Space::global;  ///< global, shared, local or cluster
  std::uint64_t address = 0;              ///< within the space
  std::uint32_t bytes = 0;
  GlobalRegion* region = nullptr;            ///< of global memory; locked by the caller
  const std::uint64_t* addresses = nullptr;  ///< of all lanes, for accesses of one instruction
  BlockCheck* owner = nullptr;               ///< of shared memory of another block (cluster)
};

}  // namespace kernwright::sim
