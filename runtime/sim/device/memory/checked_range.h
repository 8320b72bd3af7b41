// Host access to the range of simulated memory in a driver call.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kernwright::sim {

/// The required side of an address: `any` leaves it to unified addressing.
enum class Side : std::uint8_t { device, host, any };

struct CheckedRange {
  const char* call;  ///< driver function, for the report
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  Side side = Side::device;
  bool write = false;
};

/// Host address of the range. Throws Failure INVALID_VALUE with a report of kind bounds or
/// use-after-free when it does not lie in one allocation. Ordinary host memory is taken on trust.
/// The caller holds SimDriver::execution as long as it uses the result.
std::byte* checked_range(const CheckedRange& range);

}  // namespace kernwright::sim
