// The history of a pool: bounded, in order, from the beginning to the end.
#include "memory/usage_history.h"

#include <doctest/doctest.h>

using kernwright::UsageHistory;

TEST_CASE("usage history: a long past is kept in few samples, evenly") {
  UsageHistory history;
  CHECK(history.is_due(0));
  constexpr std::uint64_t kOperations = 3000000;
  for (std::uint64_t operation = 0; operation < kOperations; ++operation) {
    if (history.is_due(operation)) history.add({0, operation, operation, 0, 0});
  }
  const auto& samples = history.samples();
  REQUIRE(samples.size() > UsageHistory::kCapacity / 3);
  CHECK(samples.size() <= UsageHistory::kCapacity);
  CHECK(samples.front().operation == 0);
  CHECK(samples.back().operation > kOperations * 99 / 100);
  std::uint64_t widest = 0;
  for (std::size_t i = 1; i < samples.size(); ++i) {
    REQUIRE(samples[i].operation > samples[i - 1].operation);
    widest = std::max(widest, samples[i].operation - samples[i - 1].operation);
  }
  CHECK(widest < kOperations / 200);
}

TEST_CASE("usage history: a short past is kept whole") {
  UsageHistory history;
  for (std::uint64_t operation = 0; operation < UsageHistory::kCapacity; ++operation) {
    REQUIRE(history.is_due(operation));
    history.add({0, operation, operation * 3, 0, 0});
    CHECK(!history.is_due(operation));
  }
  const auto& samples = history.samples();
  REQUIRE(samples.size() == UsageHistory::kCapacity);
  for (std::uint64_t i = 0; i < samples.size(); ++i) {
    REQUIRE(samples[i].operation == i);
    REQUIRE(samples[i].used == i * 3);
  }
}
