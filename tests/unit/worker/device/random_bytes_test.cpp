// The random stream, against SplitMix64 as published.
#include "worker/device/random_bytes.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <vector>

using namespace kernwright;

TEST_CASE("random bytes: the first words of SplitMix64's reference from seed 1234567") {
  // Printed by the authors' splitmix64.c.
  constexpr std::array<std::uint64_t, 5> kWords{6457827717110365317U, 3203168211198807973U,
                                                9817491932198370423U, 4593380528125082431U,
                                                16408922859458223821U};
  std::array<std::uint64_t, 5> words{};
  random_bytes(1234567, 0, std::as_writable_bytes(std::span(words)));
  CHECK(words == kWords);
}

TEST_CASE("random bytes: any part of the stream is that part") {
  std::vector<std::byte> whole(100);
  random_bytes(9, 0, whole);
  for (std::size_t offset = 0; offset < 20; ++offset) {
    for (std::size_t size = 0; size < 40; ++size) {
      std::vector<std::byte> part(size);
      random_bytes(9, offset, part);
      REQUIRE(std::equal(part.begin(), part.end(), whole.begin() + static_cast<long>(offset)));
    }
  }
}
