// Size classes: every size has one, the waste is bounded, and blocks serve no larger class.
#include "memory/pool/size_class.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <random>

using kernwright::kGranule;
using kernwright::SizeClass;

TEST_CASE("size class: sizes up to 4 KiB are rounded to 256 bytes") {
  for (std::size_t bytes = 1; bytes <= 4096; ++bytes) {
    REQUIRE(SizeClass::holding(bytes).bytes() == (bytes + 255) / 256 * 256);
  }
}

TEST_CASE("size class: holds what was asked for, and wastes less than max(256, n / 16)") {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200000; ++i) {
    const unsigned bits = 1 + static_cast<unsigned>(random() % 62);
    const std::size_t bytes = 1 + random() % (std::uint64_t{1} << bits);
    const SizeClass size = SizeClass::holding(bytes);
    REQUIRE(size.index() < SizeClass::kCount);
    REQUIRE(size.bytes() >= bytes);
    REQUIRE(size.bytes() % kGranule == 0);
    REQUIRE(size.bytes() - bytes < std::max<std::size_t>(kGranule, bytes / 16 + 1));
  }
}

TEST_CASE("size class: indices and sizes grow together, without a gap") {
  for (unsigned index = 1; index < 800; ++index) {
    std::size_t bytes = 256;
    // The smallest size above the class before has this index.
    static std::size_t before = 256;
    bytes = before + 1;
    const SizeClass size = SizeClass::holding(bytes);
    REQUIRE(size.index() == index);
    REQUIRE(SizeClass::served_by(size.bytes()).index() == index);
    before = size.bytes();
  }
  CHECK(SizeClass::holding(std::size_t{1} << 63).index() < SizeClass::kCount);
}

TEST_CASE("size class: a block serves the largest class that fits into it") {
  std::mt19937_64 random(2);
  for (int i = 0; i < 100000; ++i) {
    const std::size_t bytes = kGranule * (1 + random() % (std::uint64_t{1} << (random() % 40)));
    const SizeClass served = SizeClass::served_by(bytes);
    REQUIRE(served.bytes() <= bytes);
    REQUIRE(SizeClass::holding(served.bytes() + 1).bytes() > bytes);
  }
}
