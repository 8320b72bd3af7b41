// Content of a model on the device: tasks use it, and between them it may leave.
#pragma once

#include <cstddef>
#include <mutex>

namespace kernwright::schedule {

/// Scheduler::keep() knows it by the name of the model. Thread-safe.
class ModelContent {
 public:
  virtual ~ModelContent() = default;
  /// One user more; the first one brings the content. After an exception there is none more.
  void enter() {
    const std::lock_guard lock(mutex_);
    if (users_ == 0) bring();
    ++users_;
  }
  /// One user less; behind the last one the content may leave the device.
  void leave() noexcept {
    const std::lock_guard lock(mutex_);
    if (--users_ == 0) let_go();
  }

 protected:
  virtual void bring() = 0;
  virtual void let_go() noexcept = 0;

 private:
  std::mutex mutex_;
  std::size_t users_ = 0;
};

}  // namespace kernwright::schedule
