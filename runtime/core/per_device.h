// Something made once for each device, found again without a lock.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

namespace kernwright {

class Device;

/// A list with an entry for each device where one was needed, in that order. Entries never move.
/// Thread-safe but for clear().
template <typename T>
class PerDevice {
 public:
  PerDevice() = default;
  ~PerDevice() { clear(); }
  PerDevice(const PerDevice&) = delete;
  PerDevice& operator=(const PerDevice&) = delete;

  /// Null where none was made. The device of the first entry is found at once.
  T* find(const Device& device) const noexcept {
    for (Entry* entry = first(); entry != nullptr; entry = next_entry(*entry)) {
      if (entry->device == &device) return &entry->value;
    }
    return nullptr;
  }

  /// The entry, made by `make()` where there is none. No lock is held meanwhile: another thread may
  /// make one at the same time. Then the earlier one is kept.
  template <typename Make>
  T& get(const Device& device, const Make& make) {
    if (T* const known = find(device)) return *known;
    auto made = std::make_unique<Entry>(device, make);
    std::atomic<Entry*>* end = &first_;
    for (;;) {
      Entry* there = nullptr;
      if (end->compare_exchange_strong(there, made.get(), std::memory_order_acq_rel)) {
        return made.release()->value;
      }
      if (there->device == &device) return there->value;
      end = &there->next;
    }
  }

  /// An entry of the device, made with no arguments.
  T& operator[](const Device& device) {
    return get(device, [] { return T(); });
  }

  /// The entry of the device that was first, or null.
  T* earliest() const noexcept {
    Entry* const entry = first();
    return entry == nullptr ? nullptr : &entry->value;
  }

  /// No other thread may use the list.
  void clear() noexcept {
    Entry* entry = first_.exchange(nullptr);
    while (entry != nullptr) delete std::exchange(entry, next_entry(*entry));
  }

 private:
  struct Entry {
    template <typename Make>
    Entry(const Device& its_device, const Make& make) : device(&its_device), value(make()) {}

    const Device* const device;
    T value;
    std::atomic<Entry*> next{nullptr};
  };

  Entry* first() const noexcept { return first_.load(std::memory_order_acquire); }
  static Entry* next_entry(const Entry& entry) noexcept {
    return entry.next.load(std::memory_order_acquire);
  }

  std::atomic<Entry*> first_{nullptr};
};

}  // namespace kernwright
