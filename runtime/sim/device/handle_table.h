// Checked handles: a destroyed or foreign one is recognised at every use, never followed.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <utility>
#include <vector>

namespace kernwright::sim {

/// Gives objects handles that look like pointers. A handle is only a number, so host code that
/// dereferences it faults at once. Handles of removed objects are reused as soon as possible, as
/// drivers do, so uses of remembered raw handles are found. Objects stay alive during work on them.
/// Thread-safe.
template <typename Handle, typename Object>
class HandleTable {
 public:
  /// `kind` (1 to 127) keeps handles of different tables apart.
  explicit HandleTable(std::uint8_t kind) noexcept : tag_(std::uint64_t{kind} << 56) {}

  Handle insert(std::shared_ptr<Object> object) {
    const std::unique_lock lock(mutex_);
    std::size_t index = objects_.size();
    if (free_.empty()) {
      objects_.push_back(std::move(object));
    } else {
      index = free_.back();
      free_.pop_back();
      objects_[index] = std::move(object);
    }
    return handle(index);
  }

  /// Null for anything but a live handle of this table.
  std::shared_ptr<Object> find(Handle handle) const {
    const std::shared_lock lock(mutex_);
    const std::size_t index = index_of(handle);
    return index < objects_.size() ? objects_[index] : nullptr;
  }

  /// Ends the handle; null when there was none.
  std::shared_ptr<Object> remove(Handle handle) {
    const std::unique_lock lock(mutex_);
    const std::size_t index = index_of(handle);
    if (index >= objects_.size() || objects_[index] == nullptr) return nullptr;
    free_.push_back(index);
    return std::exchange(objects_[index], nullptr);
  }

  /// Ends the handles of all objects with a true `condition(object)` and returns these objects.
  template <typename Condition>
  std::vector<std::shared_ptr<Object>> remove_if(Condition&& condition) {
    std::vector<std::shared_ptr<Object>> removed;
    const std::unique_lock lock(mutex_);
    for (std::size_t index = 0; index < objects_.size(); ++index) {
      if (objects_[index] == nullptr || !condition(*objects_[index])) continue;
      removed.push_back(std::exchange(objects_[index], nullptr));
      free_.push_back(index);
    }
    return removed;
  }

 private:
  static constexpr int kShift = 6;

  Handle handle(std::size_t index) const noexcept {
    return reinterpret_cast<Handle>(tag_ | (static_cast<std::uint64_t>(index) + 1) << kShift);
  }
  /// Past the end for handles never given out by this table.
  std::size_t index_of(Handle handle) const noexcept {
    const std::uint64_t bits = reinterpret_cast<std::uint64_t>(handle) ^ tag_;
    if (bits >> 48 != 0 || bits % (1u << kShift) != 0 || bits == 0) return ~std::size_t{0};
    return (bits >> kShift) - 1;
  }

  const std::uint64_t tag_;
  mutable std::shared_mutex mutex_;
  std::vector<std::shared_ptr<Object>> objects_;
  std::vector<std::size_t> free_;
};

}  // namespace kernwright::sim
