// The memory of a device that its schedulers share, so that no byte is promised twice.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

namespace kernwright {
class Device;
}  // namespace kernwright

namespace kernwright::schedule {

/// Schedulers without a number of bytes reserve from it; the number of another scheduler is set
/// apart in it. Thread-safe; takes no other lock.
class MemoryAccount {
 public:
  explicit MemoryAccount(std::uint64_t capacity) : capacity_(capacity) {}
  MemoryAccount(const MemoryAccount&) = delete;
  MemoryAccount& operator=(const MemoryAccount&) = delete;

  std::uint64_t capacity() const noexcept;
  std::uint64_t held() const noexcept;  ///< reserved and set apart; may be above the capacity
  std::uint64_t free() const noexcept;
  /// False, and nothing is held, where less is free.
  bool reserve(std::uint64_t bytes) noexcept;
  void give_back(std::uint64_t bytes) noexcept;
  /// Replaces the capacity, unless bytes are held: these may be allocated, and not free any more.
  void measure(std::uint64_t capacity) noexcept;

  /// Holds the bytes, at most the capacity, whether or not they are free, as long as the returned
  /// object lives.
  static std::shared_ptr<void> set_apart(const std::shared_ptr<MemoryAccount>& account,
                                         std::uint64_t bytes);

 private:
  mutable std::mutex mutex_;
  std::uint64_t capacity_;
  std::uint64_t held_ = 0;
};

/// The account of the device: one while anybody has it. What is free on the device is measured when
/// nothing of it is held. Throws the driver's errors.
std::shared_ptr<MemoryAccount> memory_account(Device& device);

}  // namespace kernwright::schedule
