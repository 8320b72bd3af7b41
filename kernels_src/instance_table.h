// The kernels of a family by number, found without a lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace kernwright {
class LazyKernel;
}

namespace kernwright::kernels {

/// A hash table that only grows. Thread-safe; find() takes no lock, because every launch of the
/// library asks it.
class InstanceTable {
 public:
  InstanceTable();
  ~InstanceTable();
  InstanceTable(const InstanceTable&) = delete;
  InstanceTable& operator=(const InstanceTable&) = delete;

  /// Null for a key that is not there.
  const LazyKernel* find(std::uint64_t key) const noexcept {
    const Slots& slots = *slots_.load(std::memory_order_acquire);
    for (std::size_t at = slots.first(key);; at = (at + 1) & (slots.count - 1)) {
      const LazyKernel* const kernel = slots.list[at].kernel.load(std::memory_order_acquire);
      if (kernel == nullptr || slots.list[at].key == key) return kernel;
    }
  }
  /// The kernel of `key` from now on: `made`, unless another thread was faster.
  const LazyKernel& add(std::uint64_t key, std::unique_ptr<LazyKernel> made);

 private:
  struct Slot {
    std::uint64_t key = 0;  ///< written before the kernel
    std::atomic<const LazyKernel*> kernel = nullptr;
  };
  struct Slots {
    explicit Slots(std::size_t power);
    std::size_t first(std::uint64_t key) const noexcept {
      return static_cast<std::size_t>(key * 0x9E3779B97F4A7C15 >> shift);  // Fibonacci hashing
    }
    void put(std::uint64_t key, const LazyKernel& kernel) noexcept;

    std::size_t count;  ///< a power of two, more than half of them free
    int shift;
    std::unique_ptr<Slot[]> list;
  };

  std::atomic<const Slots*> slots_;
  std::mutex mutex_;                            ///< for writers
  std::vector<std::unique_ptr<Slots>> tables_;  ///< outgrown ones too: a thread may look at one
  std::vector<std::unique_ptr<LazyKernel>> kernels_;
};

}  // namespace kernwright::kernels
