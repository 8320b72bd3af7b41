// Numbers and bytes of copies between the host and each device, to show that a program does not
// copy.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kernwright {

class Device;

enum class TransferWay : std::uint8_t { to_device, to_host };

/// Copies between the memory of the host and that of one device, of this process until now.
struct TransferCounts {
  std::uint64_t to_device = 0;  ///< copies
  std::uint64_t to_device_bytes = 0;
  std::uint64_t to_host = 0;  ///< copies
  std::uint64_t to_host_bytes = 0;
};

/// Counts a copy that the driver has accepted. Lock-free, nothing is allocated.
void count_transfer(const Device& device, TransferWay way, std::size_t bytes) noexcept;

/// The sums of the device; they go on after a reset. A copy repeated by a graph counts once, at its
/// capture; copies of other libraries are not seen. Thread-safe; of simultaneous copies by other
/// threads the number may be counted and the bytes not.
TransferCounts transfer_counts(const Device& device) noexcept;

}  // namespace kernwright
