// Vector clocks against plain maps, and the log of touched bytes against plain sets.
#include "sim/check/order/vector_clock.h"

#include "sim/exec/warp/access_log.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

using namespace kernwright::sim;

TEST_CASE("vector clock: steps and joins, against a map") {
  std::mt19937 random(7);
  constexpr Actor kActors = 9;
  std::vector<VectorClock> clocks(4);
  std::vector<std::map<Actor, std::uint64_t>> expected(4);
  CHECK(clocks[0].empty());
  for (int i = 0; i < 3000; ++i) {
    const std::size_t a = random() % 4, b = random() % 4;
    const Actor actor = random() % kActors;
    if (i % 3 != 0) {
      CHECK(clocks[a].advance(actor) == ++expected[a][actor]);
    } else {
      clocks[a].join(clocks[b]);
      for (const auto& [who, step] : expected[b]) {
        expected[a][who] = std::max(expected[a][who], step);
      }
    }
    for (Actor who = 0; who < kActors; ++who) REQUIRE(clocks[a].at(who) == expected[a][who]);
  }
  CHECK(clocks[0].at(12345) == 0);
}

TEST_CASE("access log: exactly the bytes that were noted, in joined ranges, against a set") {
  std::mt19937 random(11);
  constexpr AccessKind kKinds[] = {AccessKind::read, AccessKind::atomic, AccessKind::write};
  for (int round = 0; round < 20; ++round) {
    AccessLog first, second;
    std::map<AccessKind, std::set<std::uint64_t>> expected;
    for (int i = 0; i < 200; ++i) {
      const std::uint64_t address = (std::uint64_t{1} << 52) + 4000 + random() % 9000;
      const std::uint64_t bytes = i % 20 == 0 ? random() % 9000 : random() % 17;
      const AccessKind kind = kKinds[random() % 3];
      (i % 2 == 0 ? first : second).note(address, bytes, kind);
      for (std::uint64_t b = 0; b < bytes; ++b) expected[kind].insert(address + b);
    }
    first.merge(second);
    std::map<AccessKind, std::set<std::uint64_t>> seen;
    Touched before{};
    for (const Touched& range : first.ranges()) {
      REQUIRE(range.begin < range.end);
      if (seen.count(range.kind) != 0) REQUIRE(range.begin > before.end);
      for (std::uint64_t b = range.begin; b < range.end; ++b) seen[range.kind].insert(b);
      before = range;
    }
    CHECK(seen == expected);
  }
  AccessLog log;
  CHECK(log.empty());
  log.note(0x5000, 8, AccessKind::read);
  log.note(0x9000, 8, AccessKind::write);
  log.drop(0x5000, 256);
  CHECK(log.ranges().size() == 1);
  log.note(0x5000, 1, AccessKind::read);
  CHECK(log.ranges().size() == 2);
}
