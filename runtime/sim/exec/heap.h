// The heap of malloc() and free() in device code.
#pragma once

#include "sim/mem/memory.h"

#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace kernwright::sim {

/// CUDA's default without cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE).
inline constexpr std::uint64_t kDefaultHeapBytes = std::uint64_t{8} << 20;

/// Each block is an allocation of its own in the device's memory, with guard gaps around it, so
/// overruns and uses after free are found; small ones are packed (mem/memory.h). Blocks outlive
/// launches, as on a GPU; the destructor returns the remaining ones. Thread-safe. `memory` must
/// outlive the heap.
class Heap {
 public:
  explicit Heap(Memory& memory, std::uint64_t limit_bytes = kDefaultHeapBytes) noexcept
      : memory_(memory), limit_(limit_bytes) {}
  ~Heap();
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  /// Tagged device address, aligned to 64 bytes; 0 when `bytes` is 0 or the limit would be passed.
  /// `apart`: in pages of its own, at an address unused for long. Checks want this: accesses to a
  /// freed block are no races with those to the next one.
  std::uint64_t allocate(std::uint64_t bytes, bool apart = false);

  /// False when `address` is no live block of this heap. Address 0 is accepted, as free(NULL) is.
  bool free(std::uint64_t address);

  /// Affects later allocations only.
  void set_limit(std::uint64_t limit_bytes);
  std::uint64_t limit() const;
  std::uint64_t used() const;  ///< bytes in live blocks

 private:
  Memory& memory_;
  mutable std::mutex mutex_;
  std::uint64_t limit_;
  std::uint64_t used_ = 0;
  std::unordered_map<std::uint64_t, std::uint64_t> blocks_;  ///< address -> bytes
};

}  // namespace kernwright::sim
