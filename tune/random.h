// Random numbers, the same on every machine and with every standard library.
#pragma once

#include "base/hash.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>

namespace kernwright {

/// The numbers of splitmix() from that seed.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() { return splitmix(state_); }
  /// Each of 0 ... bound - 1 is equally likely; bound > 0.
  std::uint64_t below(std::uint64_t bound) {
    const std::uint64_t mask = ~std::uint64_t{0} >> std::countl_zero((bound - 1) | 1);
    std::uint64_t value = next() & mask;
    while (value >= bound) value = next() & mask;
    return value;
  }
  /// In [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  template <typename T>
  void shuffle(std::span<T> items) {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

 private:
  std::uint64_t state_;
};

}  // namespace kernwright
