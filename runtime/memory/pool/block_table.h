// A hash table from addresses to blocks that allocates only when it grows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace kernwright {

/// Values are pointers with an `address` member, keyed by it: multiples of 256, never 0. Open
/// addressing with linear probing. Not thread-safe.
template <typename Value>
class BlockTable {
 public:
  BlockTable() : slots_(kFirstCapacity) {}

  std::size_t size() const noexcept { return size_; }

  Value* find(std::uint64_t address) const noexcept {
    for (std::size_t at = home(address);; at = next(at)) {
      Value* const value = slots_[at];
      if (value == nullptr || value->address == address) return value;
    }
  }

  /// Makes room so that the next `count` insertions cannot throw.
  void reserve(std::size_t count) {
    while ((size_ + count) * 2 > slots_.size()) grow();
  }

  /// The address is not in the table, and reserve() made room.
  void insert(Value* value) noexcept {
    std::size_t at = home(value->address);
    while (slots_[at] != nullptr) at = next(at);
    slots_[at] = value;
    ++size_;
  }

  /// The address is in the table.
  void erase(std::uint64_t address) noexcept {
    std::size_t hole = home(address);
    while (slots_[hole]->address != address) hole = next(hole);
    // Entries pushed past the hole move back, so no search meets a gap.
    for (std::size_t at = next(hole); slots_[at] != nullptr; at = next(at)) {
      const std::size_t wanted = home(slots_[at]->address);
      const std::size_t to_hole = (at - hole) & mask();
      if (((at - wanted) & mask()) < to_hole) continue;
      slots_[hole] = slots_[at];
      hole = at;
    }
    slots_[hole] = nullptr;
    --size_;
  }

 private:
  static constexpr std::size_t kFirstCapacity = 1024;

  std::size_t mask() const noexcept { return slots_.size() - 1; }
  std::size_t next(std::size_t at) const noexcept { return (at + 1) & mask(); }
  std::size_t home(std::uint64_t address) const noexcept {
    return static_cast<std::size_t>(((address >> 8) * 0x9e3779b97f4a7c15U) >> 20) & mask();
  }

  void grow() {
    std::vector<Value*> old(slots_.size() * 2);
    old.swap(slots_);
    size_ = 0;
    for (Value* value : old) {
      if (value != nullptr) insert(value);
    }
  }

  std::vector<Value*> slots_;
  std::size_t size_ = 0;
};

}  // namespace kernwright
