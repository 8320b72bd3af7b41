// Bytes behind allocations of a simulated device that nothing may change.
#pragma once

#include <cstdint>
#include <vector>

namespace kernwright::fuzz {

/// The gap behind an allocation is memory of the process, but no kernel's. Allocations may end
/// meanwhile only after check().
class Canaries {
 public:
  /// Fills what lies behind the live allocation of `bytes` at device address `address`. Large ones,
  /// whose gaps are closed, need none.
  void watch(std::uint64_t address, std::uint64_t bytes);
  /// Throws std::logic_error when a byte changed.
  void check() const;

 private:
  std::vector<std::uint64_t> ends_;  ///< host addresses
};

}  // namespace kernwright::fuzz
