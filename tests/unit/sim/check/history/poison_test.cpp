// Bitmaps of unwritten bytes, bit by bit against a vector of bools.
#include "sim/check/history/poison.h"

#include "sim/check/history/global_shadow.h"

#include <doctest/doctest.h>

#include <random>
#include <vector>

using namespace kernwright::sim;

TEST_CASE("check poison: setting, clearing and asking agree with a list of bytes") {
  constexpr std::size_t kBytes = 512;
  std::vector<std::uint64_t> map(kBytes / 64 + 1);
  std::vector<bool> wanted(kBytes);
  std::mt19937 random(7);
  for (int round = 0; round < 4000; ++round) {
    const std::size_t at = random() % kBytes, count = 1 + random() % (kBytes - at);
    const bool on = random() % 2 != 0;
    if (on) {
      set_poison<true>(map.data(), at, count);
    } else {
      set_poison<false>(map.data(), at, count);
    }
    for (std::size_t i = at; i < at + count; ++i) wanted[i] = on;
    const std::size_t from = random() % kBytes, length = 1 + random() % (kBytes - from);
    bool any = false;
    for (std::size_t i = from; i < from + length; ++i) any |= wanted[i];
    REQUIRE(any_poison(map.data(), from, length) == any);
    const auto part = static_cast<std::uint32_t>(length < 64 ? length : 64);
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < part; ++i) bits |= std::uint64_t{wanted[from + i]} << i;
    REQUIRE(poison_bits(map.data(), from, part) == bits);
  }
}

TEST_CASE("check poison: memory across regions is poisoned, written and copied byte by byte") {
  GlobalShadow shadow;
  const std::uint64_t base = std::uint64_t{1} << 40;
  const auto poisoned = [&](std::uint64_t address) {
    const GlobalRegion* const there = shadow.find(address);
    return there != nullptr && there->poison != nullptr &&
           poison_bits(there->poison, address % kRegionBytes, 1) != 0;
  };
  CHECK(!poisoned(base));
  shadow.poison(base + kRegionBytes - 3, 6);
  CHECK(!poisoned(base + kRegionBytes - 4));
  CHECK(poisoned(base + kRegionBytes - 3));
  CHECK(poisoned(base + kRegionBytes + 2));
  CHECK(!poisoned(base + kRegionBytes + 3));
  shadow.unpoison(base + kRegionBytes - 1, 2);
  CHECK(poisoned(base + kRegionBytes - 2));
  CHECK(!poisoned(base + kRegionBytes - 1));
  CHECK(!poisoned(base + kRegionBytes));
  const std::uint64_t target = base + 8 * kRegionBytes;
  shadow.copy_poison(target, base + kRegionBytes - 3, 6);
  for (std::uint64_t i = 0; i < 6; ++i) {
    CHECK(poisoned(target + i) == poisoned(base + kRegionBytes - 3 + i));
  }
  shadow.clear();
  CHECK(!poisoned(target));
}
