// Random numbers, the same on every machine and with every standard library.
#pragma once

#include "worker/device/random_bytes.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>

namespace kernwright {

/// The words of random_word(), one after the other.
class Random {
 public:
  explicit Random(std::uint64_t seed) : seed_(seed) {}

  std::uint64_t next() { return random_word(seed_, drawn_++); }
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
  std::uint64_t seed_, drawn_ = 0;
};

}  // namespace kernwright
