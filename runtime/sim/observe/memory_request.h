// The cost of one memory instruction of a warp, counted as in the hardware's documentation.
#pragma once

#include "sim/exec/warp/warp.h"

#include <array>
#include <cstdint>

namespace kernwright::sim {

/// The lanes of a warp with a common access to one space. Addresses are those within the space.
struct MemoryRequest {
  std::uint32_t mask = 0;
  std::array<std::uint64_t, kLanes> address{};
  std::array<std::uint8_t, kLanes> bytes{};  ///< a lane with 0 touches nothing

  void add(int lane, std::uint64_t at, std::uint32_t size) noexcept {
    mask |= 1u << lane;
    address[static_cast<std::size_t>(lane)] = at;
    bytes[static_cast<std::size_t>(lane)] = static_cast<std::uint8_t>(size);
  }
};

inline constexpr std::uint32_t kSectorBytes = 32;  ///< the unit of transfers to the L2 cache
inline constexpr std::uint32_t kLineBytes = 128;   ///< of the L1 cache; four sectors
inline constexpr std::uint32_t kBanks = 32;        ///< of shared memory, 4 bytes wide each

struct GlobalTraffic {
  std::uint32_t bytes = 0;  ///< that the lanes asked for, shared ones several times
  std::uint32_t sectors = 0, lines = 0;
  std::uint32_t ideal_sectors = 0;  ///< that the different bytes would fill without gaps
};
GlobalTraffic global_traffic(const MemoryRequest& request);

struct SharedTraffic {
  /// Passes over the banks: for each group of lanes (32 up to 4 bytes a lane, 16 for 8, 8 for 16)
  /// the largest number of different words in one bank.
  std::uint32_t wavefronts = 0;
  std::uint32_t ideal_wavefronts = 0;  ///< one for each group with an active lane
};
SharedTraffic shared_traffic(const MemoryRequest& request);

/// Sectors of local memory, where the 32-bit words of a warp's lanes lie side by side.
std::uint32_t local_sectors(const MemoryRequest& request);

/// The most lanes with the same address: their atomic operations come one after the other.
std::uint32_t same_address_passes(const MemoryRequest& request);

}  // namespace kernwright::sim
