// Global memory of one simulated device: allocations with guard gaps, look-up by address.
#pragma once

#include "sim/mem/address.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace kernwright::sim {

/// [begin, end) in device addresses. Empty when begin == end.
struct AddressRange {
  std::uint64_t begin = 0, end = 0;
  bool contains(std::uint64_t address, std::uint64_t size) const noexcept {
    return address >= begin && address <= end && size <= end - address;
  }
};

enum class AllocationKind : std::uint8_t { device, module_variable, constant, heap, host };

/// Thread-safe. Allocations are 256-byte aligned, at least 4 KiB apart, and their addresses are not
/// reused while the history of freed ones (for use-after-free messages) still names them.
class Memory {
 public:
  explicit Memory(std::uint64_t capacity_bytes);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// Tagged device address, or nothing when the capacity is used up.
  std::optional<std::uint64_t> allocate(std::uint64_t bytes, AllocationKind kind, std::string label = {});
  /// False when `address` is not the start of a live allocation.
  bool free(std::uint64_t address);

  /// The live allocation around `address` (read-only ones carry writable = false), else an empty range.
  /// Hot enough for the interpreter's slow path; handlers cache the result per site.
  AddressRange find(std::uint64_t address, bool* writable = nullptr) const noexcept;
  /// Bumped by every allocate() and free(): cached ranges of an older generation are stale.
  /// Inline because handlers ask at every access.
  std::uint64_t generation() const noexcept { return generation_.load(std::memory_order_acquire); }

  /// For messages: "16 bytes past the end of the allocation of 4096 bytes at 0x..." or
  /// "inside an allocation of 4096 bytes that was freed" (then *freed is set).
  std::string describe(std::uint64_t address, std::uint64_t size, bool* freed = nullptr) const;

  std::uint64_t used() const noexcept;
  std::uint64_t capacity() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
  std::atomic<std::uint64_t> generation_{1};
};

}  // namespace kernwright::sim
