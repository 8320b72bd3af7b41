// Which lanes are in doubt about what they loaded.
#include "sim/check/doubts.h"

#include <doctest/doctest.h>

#include <array>
#include <cstddef>

using namespace kernwright::sim;

TEST_CASE("doubts: lanes come and go, by frame and load") {
  const std::array<std::byte, 2> frames{};
  const Doubts::Key one{&frames[0], 7}, other{&frames[0], 8}, deeper{&frames[1], 7};
  Doubts doubts;
  CHECK_FALSE(doubts.any());
  CHECK(doubts.find(one) == nullptr);

  doubts.add(one, 3).bits[3] = 0xf0;
  doubts.add(deeper, 31).bits[31] = 1;
  CHECK(doubts.any());
  CHECK(doubts.find(other) == nullptr);
  REQUIRE(doubts.find(one) != nullptr);
  CHECK(doubts.find(one)->lanes == 1u << 3);
  CHECK(doubts.find(one)->bits[3] == 0xf0);
  CHECK(doubts.find(deeper)->lanes == 1u << 31);

  doubts.forget(one, ~(1u << 3));  // others
  CHECK(doubts.find(one)->lanes == 1u << 3);
  doubts.forget(one, 1u << 3);
  CHECK(doubts.find(one)->lanes == 0);
  CHECK(doubts.any());
  doubts.forget(deeper, ~0u);
  CHECK_FALSE(doubts.any());
  doubts.forget(other, ~0u);
  CHECK_FALSE(doubts.any());
}

TEST_CASE("doubts: a lane that is in doubt anew has nothing of before") {
  const std::byte frame{};
  const Doubts::Key key{&frame, 0};
  Doubts doubts;
  Doubt& before = doubts.add(key, 5);
  before.bits[5] = 0xff;
  before.partly = before.padded = 1u << 5;
  doubts.add(key, 6);
  CHECK(before.bits[5] == 0xff);
  CHECK(before.partly == 1u << 5);
  doubts.forget(key, 1u << 5);
  CHECK(doubts.any());
  const Doubt& again = doubts.add(key, 5);
  CHECK(again.lanes == 3u << 5);
  CHECK(again.bits[5] == 0);
  CHECK(again.partly == 0);
  CHECK(again.padded == 0);

  doubts.clear();
  CHECK_FALSE(doubts.any());
  CHECK(doubts.find(key) == nullptr);
  CHECK(doubts.add(key, 5).lanes == 1u << 5);
  CHECK(doubts.any());
}
