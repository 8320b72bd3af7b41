// The order of waiting sequences, and the shares of users.
#include "engine/waiting.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace kernwright::engine;

namespace {

std::shared_ptr<Sequence> sequence_of(FairShares& shares, std::uint64_t number,
                                      const std::string& user, std::int32_t priority = 0) {
  Request request;
  request.priority = priority;
  auto made = std::make_shared<Sequence>();
  made->request = number;
  made->source = std::make_shared<const Request>(request);
  made->account = shares.enter(user);
  return made;
}

std::vector<std::uint64_t> emptied(WaitingQueue& queue) {
  std::vector<std::uint64_t> order;
  while (const auto first = queue.first()) {
    order.push_back(first->request);
    queue.remove(*first);
  }
  return order;
}

}  // namespace

TEST_CASE("waiting: the order is that of arrival without users and priorities") {
  FairShares shares;
  WaitingQueue queue;
  CHECK(queue.first() == nullptr);
  for (std::uint64_t i = 1; i <= 4; ++i) queue.add(sequence_of(shares, i, ""));
  CHECK(queue.size() == 4);
  CHECK(emptied(queue) == std::vector<std::uint64_t>{1, 2, 3, 4});
  CHECK(queue.size() == 0);
}

TEST_CASE("waiting: priorities, then preempted ones by admission, then users by tokens") {
  FairShares shares;
  WaitingQueue queue;
  const auto late = sequence_of(shares, 1, "a"), early = sequence_of(shares, 2, "a");
  late->preempted = early->preempted = true;
  late->admitted = 9;
  early->admitted = 3;
  const auto high = sequence_of(shares, 3, "a", 7);
  const auto served = sequence_of(shares, 4, "b"), unserved = sequence_of(shares, 5, "c");
  served->account->served = 10;
  unserved->account->served = 9;
  for (const auto& each : {served, unserved, late, early, high}) queue.add(each);
  CHECK(emptied(queue) == std::vector<std::uint64_t>{3, 2, 1, 5, 4});
}

TEST_CASE("waiting: a sequence elsewhere is not removed") {
  FairShares shares;
  WaitingQueue queue;
  const auto inside = sequence_of(shares, 1, "a"), outside = sequence_of(shares, 2, "a");
  queue.add(inside);
  queue.remove(*outside);
  queue.remove(*sequence_of(shares, 3, "b", 4));
  CHECK(queue.size() == 1);
  CHECK(queue.first() == inside);
}

TEST_CASE("shares: who comes back begins with the least of those present") {
  FairShares shares;
  const auto first = shares.enter("first"), second = shares.enter("second");
  first->served = 100;
  second->served = 60;
  CHECK(shares.enter("new")->served == 60);
  shares.leave(second);
  second->served = 5;  // as if it had been away for long
  CHECK(shares.enter("second")->served == 60);
  shares.leave(first);
  CHECK(shares.enter("first")->served == 100);
}

TEST_CASE("shares: accounts of absent users do not pile up") {
  FairShares shares;
  const auto present = shares.enter("present");
  for (int i = 0; i < 5000; ++i) shares.leave(shares.enter(std::to_string(i)));
  CHECK(shares.size() <= 1025);
  CHECK(present->active == 1);
}
