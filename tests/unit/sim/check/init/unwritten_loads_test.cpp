// The lanes with values loaded from unwritten memory.
#include "sim/check/init/unwritten_loads.h"

#include <doctest/doctest.h>

#include <array>
#include <cstddef>

using namespace kernwright::sim;

TEST_CASE("unwritten loads: lanes come and go, by frame and load") {
  const std::array<std::byte, 2> frames{};
  const UnwrittenLoads::Key one{&frames[0], 7}, other{&frames[0], 8}, deeper{&frames[1], 7};
  UnwrittenLoads loads;
  CHECK_FALSE(loads.any());
  CHECK(loads.find(one) == nullptr);

  loads.add(one, 3).bits[3] = 0xf0;
  loads.add(deeper, 31).bits[31] = 1;
  CHECK(loads.any());
  CHECK(loads.find(other) == nullptr);
  REQUIRE(loads.find(one) != nullptr);
  CHECK(loads.find(one)->lanes == 1u << 3);
  CHECK(loads.find(one)->bits[3] == 0xf0);
  CHECK(loads.find(deeper)->lanes == 1u << 31);

  loads.forget(one, ~(1u << 3));  // others
  CHECK(loads.find(one)->lanes == 1u << 3);
  loads.forget(one, 1u << 3);
  CHECK(loads.find(one)->lanes == 0);
  CHECK(loads.any());
  loads.forget(deeper, ~0u);
  CHECK_FALSE(loads.any());
  loads.forget(other, ~0u);
  CHECK_FALSE(loads.any());
}

TEST_CASE("unwritten loads: a lane that loads anew has nothing of before") {
  const std::byte frame{};
  const UnwrittenLoads::Key key{&frame, 0};
  UnwrittenLoads loads;
  UnwrittenLoad& before = loads.add(key, 5);
  before.bits[5] = 0xff;
  before.partly = before.padded = 1u << 5;
  loads.add(key, 6);
  CHECK(before.bits[5] == 0xff);
  CHECK(before.partly == 1u << 5);
  loads.forget(key, 1u << 5);
  CHECK(loads.any());
  const UnwrittenLoad& again = loads.add(key, 5);
  CHECK(again.lanes == 3u << 5);
  CHECK(again.bits[5] == 0);
  CHECK(again.partly == 0);
  CHECK(again.padded == 0);

  loads.clear();
  CHECK_FALSE(loads.any());
  CHECK(loads.find(key) == nullptr);
  CHECK(loads.add(key, 5).lanes == 1u << 5);
  CHECK(loads.any());
}
