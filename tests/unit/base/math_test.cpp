// Whole parts of sizes.
#include "base/math.h"

#include <doctest/doctest.h>

#include <cstddef>
#include <limits>
#include <type_traits>

using namespace kernwright;

TEST_CASE("math: parts are rounded up") {
  for (std::int64_t count = 0; count < 40; ++count) {
    for (std::int64_t each = 1; each < 12; ++each) {
      const std::int64_t parts = ceil_div(count, each);
      CHECK(parts * each >= count);
      CHECK((parts == 0 || (parts - 1) * each < count));
      CHECK(round_up(count, each) == parts * each);
    }
  }
}

TEST_CASE("math: narrow integers are counted in 64 bits") {
  constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
  CHECK(ceil_div(kMost, 256) == (std::int64_t{1} << 23));
  CHECK(round_up(kMost, 256) == std::int64_t{1} << 31);
  CHECK(ceil_div(std::uint32_t{5}, std::int64_t{1} << 40) == 1);
  CHECK(round_up(std::uint64_t{1} << 63, 4096u) == std::uint64_t{1} << 63);
  static_assert(std::is_same_v<decltype(ceil_div(1, 2u)), std::int64_t>);
  static_assert(std::is_same_v<decltype(round_up(std::size_t{1}, 2)), std::uint64_t>);
}
