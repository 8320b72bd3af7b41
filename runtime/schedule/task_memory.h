// The memory of one task, or of the tasks of a model: a limit on what its arrays take.
#pragma once

#include "core/kernel.h"
#include "memory/limiting_adaptor.h"
#include "memory/tracking_adaptor.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>

namespace kernwright::schedule {

/// Counts arrays and kernels of its user against a limit. OutOfMemory names the
/// user, and its own arrays as the holders. Arrays may outlive the task; they count until they are
/// freed. Thread-safe.
class TaskMemory final : public ResourceAdaptor {
 public:
  /// `user` is for messages: "\"train\" (task 3)". Throws InvalidArgument for a limit of 0.
  TaskMemory(std::shared_ptr<MemoryResource> upstream, std::uint64_t limit, std::string user);

  CUdeviceptr allocate(std::size_t bytes, const Stream& stream) override;
  std::string name() const override { return "TaskMemory"; }
  void release(CUdeviceptr address, std::size_t bytes, const Stream& stream) override;
  void deallocate(CUdeviceptr address, std::size_t bytes, const Stream& stream) noexcept override;
  /// Counts the code of the kernel's module, once, and local memory of all threads
  /// on the device at once, beyond those of earlier kernels. Throws OutOfMemory above the limit.
  void note_kernel(const Kernel& kernel);
  std::uint64_t used() const noexcept { return used_.load(std::memory_order_relaxed); }
  std::uint64_t peak() const noexcept { return peak_.load(std::memory_order_relaxed); }

 private:
  void note_use(std::size_t bytes) noexcept;
  /// Errors name the user, and `what` the bytes are for.
  template <typename Take>
  auto for_user(const Take& take, const std::string& what = {}) const;

  const std::string user_;
  LimitingAdaptor& limit_;
  std::mutex mutex_;  ///< guards the next two
  std::set<CUmodule> modules_;
  std::uint64_t local_ = 0;
  std::atomic<std::uint64_t> used_{0};
  std::atomic<std::uint64_t> peak_{0};
};

}  // namespace kernwright::schedule
