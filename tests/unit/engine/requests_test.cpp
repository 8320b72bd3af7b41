// Requests by number, choice and deadline, and the counts of how they end.
#include "engine/requests.h"

#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <vector>

using namespace kernwright::engine;

namespace {

using SequencePtr = Requests::SequencePtr;
using Time = Requests::Clock::time_point;

Time hour(int number) { return Time(std::chrono::hours(number)); }

std::vector<SequencePtr> sequences_of(std::uint64_t number, int choices, const Request& request) {
  const auto source = std::make_shared<const Request>(request);
  std::vector<SequencePtr> made;
  for (int choice = 0; choice < choices; ++choice) {
    made.push_back(std::make_shared<Sequence>());
    made.back()->request = number;
    made.back()->choice = choice;
    made.back()->source = source;
  }
  return made;
}

}  // namespace

TEST_CASE("requests: a request ends with its last sequence, as the worst of them") {
  Requests all;
  CHECK(all.any() == nullptr);
  const auto first = sequences_of(1, 3, {}), second = sequences_of(2, 1, {});
  all.add(1, first);
  all.add(2, second);
  CHECK(all.counts().waiting == 2);
  all.start(1);
  all.start(1);
  CHECK(all.counts().waiting == 1);
  CHECK(all.counts().running == 1);
  CHECK(all.find(1, 2) == first[2]);
  CHECK(all.find(1, 3) == nullptr);
  CHECK(all.find(3, 0) == nullptr);
  CHECK(all.end(*first[1], Outcome::failed) == first[1]);
  CHECK(all.end(*first[0], Outcome::finished) == first[0]);
  CHECK(all.sequences(1) == std::vector{first[2]});
  CHECK(all.counts().failed == 0);
  all.end(*first[2], Outcome::aborted);
  CHECK(all.counts().failed == 1);
  CHECK(all.counts().running == 0);
  CHECK(all.sequences(1).empty());
  CHECK(all.any() == second[0]);
  all.end(*second[0], Outcome::aborted);  // in the queue: it counts as started, too
  CHECK(all.counts().started == 2);
  CHECK(all.counts().aborted == 1);
  CHECK(all.counts().waiting == 0);
  CHECK(all.is_empty());
}

TEST_CASE("requests: deadlines are over in their order, and end with their requests") {
  Requests all;
  Request request;
  std::vector<std::vector<SequencePtr>> sequences;
  for (const int at : {5, 3, 9}) {
    request.deadline = hour(at);
    sequences.push_back(sequences_of(sequences.size() + 1, 1, request));
    all.add(sequences.size(), sequences.back());
  }
  CHECK_FALSE(all.expired(hour(2)).has_value());
  CHECK(all.expired(hour(9)) == 2);
  all.end(*sequences[1].front(), Outcome::aborted);
  CHECK(all.expired(hour(9)) == 1);
  all.end(*sequences[0].front(), Outcome::finished);
  CHECK_FALSE(all.expired(hour(8)).has_value());
}

TEST_CASE("requests: an adapter is in use while a request has it") {
  Requests all;
  Request request;
  request.adapter = 4;
  const auto sequences = sequences_of(1, 2, request);
  all.add(1, sequences);
  CHECK(all.uses_adapter(4));
  CHECK_FALSE(all.uses_adapter(3));
  all.end(*sequences[0], Outcome::finished);
  CHECK(all.uses_adapter(4));
  all.end(*sequences[1], Outcome::finished);
  CHECK_FALSE(all.uses_adapter(4));
}
