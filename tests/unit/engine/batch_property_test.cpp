// Random work of a batch: after each step pages and requests are all accounted for, and each text
// is what it would be alone.
#include "unit/engine/batch_harness.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

using namespace kernwright;
using namespace kernwright::testing;
using engine::Batch;
using engine::Finish;
using engine::Request;

namespace {

class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}
  std::int32_t below(int most) {
    return static_cast<std::int32_t>(random_() % static_cast<unsigned>(most));
  }
  bool one_of(int count) { return below(count) == 0; }
  Text text(int most, int tokens) {
    Text made(static_cast<std::size_t>(1 + below(most)));
    for (std::int32_t& token : made) token = below(tokens);
    return made;
  }

 private:
  std::mt19937 random_;
};

/// Texts begin alike often. Requests with constraints have one of each kind at most.
Request random_request(Draw& draw) {
  Request request = request_of(draw.text(14, 2), 1 + draw.below(18));
  request.max_tokens = std::min(request.max_tokens, 40 - static_cast<int>(request.prompt.size()));
  request.choices = draw.one_of(4) ? 1 + draw.below(3) : 1;
  request.priority = draw.one_of(6) ? draw.below(3) - 1 : 0;
  request.user = std::string(1, static_cast<char>('a' + draw.below(3)));
  if (draw.one_of(8))
    request.deadline = Batch::Clock::time_point(std::chrono::hours(1 + draw.below(150)));
  if (draw.one_of(4)) request.adapter = draw.below(2);
  request.salt = static_cast<std::uint64_t>(request.adapter + 1);
  if (draw.one_of(5)) request.constraints.bad_tokens = {draw.below(kTokens)};
  if (draw.one_of(5)) {
    request.stop_tokens = {kTokens - 1};
    if (request.constraints.bad_tokens == request.stop_tokens) request.stop_tokens.clear();
  }
  if (draw.one_of(3))
    request.first_mask = guide_mask(request.prompt);
  else if (!request.stop_tokens.empty())
    request.min_tokens = std::min(draw.below(4), request.max_tokens);
  return request;
}

/// What happens beside requests and steps, between them.
void disturb(Harness& all, Draw& draw) {
  if (draw.one_of(9) && !all.requests.empty())
    all.batch.cancel(
        {1 + static_cast<std::uint64_t>(draw.below(static_cast<int>(all.requests.size()))),
         draw.below(3) - 1, Finish::cancelled});
  if (draw.one_of(10)) all.restore(draw.text(20, 2));
  if (draw.one_of(60)) all.spoil_results();
  if (draw.one_of(200)) all.fail_all();
}

}  // namespace

TEST_CASE("batch: invariants and texts hold through random work of every kind") {
  std::map<Finish, int> ends;
  std::int64_t preemptions = 0, shared = 0, restored = 0, accepted = 0, loaded = 0, caught_up = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    Draw draw(seed);
    const std::int32_t page_size = 1 + draw.below(3), rows = 1 + draw.below(4);
    const std::int32_t least = (40 + page_size - 1) / page_size;  // a row's longest text
    engine::BatchOptions options = options_of(
        rows, least + draw.below(2) * draw.below(12), !draw.one_of(4), page_size, draw.one_of(5),
        draw.one_of(3) ? 0 : 1 + draw.below(6), draw.one_of(2) ? 0 : 10 + draw.below(31));
    const std::int32_t host_slots = draw.one_of(2) ? 0 : 1 + draw.below(40);
    options.short_length = draw.one_of(3) ? 1 + draw.below(30) : 0;
    Harness all(options, host_slots);
    for (int step = 0; step < 150; ++step) {
      if (draw.one_of(3)) {
        const Request request = random_request(draw);
        all.submit(request);
        if (request.adapter >= 0) CHECK(all.batch.uses_adapter(request.adapter));
      }
      disturb(all, draw);
      all.batch.expire(Batch::Clock::time_point(std::chrono::hours(step)));
      if (draw.one_of(2)) all.send_mask(!draw.one_of(30));
      if (draw.one_of(60))
        all.drain();
      else
        all.step();
    }
    all.drain();
    CHECK_FALSE(all.batch.uses_adapter(0));
    all.check_texts();
    std::size_t choices = 0;
    for (const auto& [number, request] : all.requests)
      choices += static_cast<std::size_t>(request.choices);
    CHECK(all.ends.size() == choices);
    for (const auto& [key, finish] : all.ends) ++ends[finish];
    preemptions += all.batch.stats().preemptions;
    shared += all.batch.stats().shared_tokens;
    accepted += all.batch.stats().accepted_tokens;
    loaded += all.batch.stats().loaded_pages;
    caught_up += all.device.caught_up;
    restored += all.restore(draw.text(20, 2)) ? 1 : 0;
  }
  // The work had all of it.
  CHECK(preemptions > 40);
  CHECK(shared > 200);
  CHECK(restored > 20);
  CHECK(accepted > 300);
  CHECK(loaded > 50);
  CHECK(caught_up > 500);
  for (const Finish finish : {Finish::stop, Finish::length, Finish::cancelled, Finish::timeout,
                              Finish::bad_logits, Finish::bad_guide, Finish::failed}) {
    CAPTURE(static_cast<int>(finish));
    CHECK(ends[finish] > 10);
  }
}

TEST_CASE("batch: pages that left the device come back from the host") {
  // Three texts of 13 pages each, one after the other, in 15 pages.
  for (const std::int32_t slots : {0, 10, 40}) {
    CAPTURE(slots);
    Harness all(options_of(1, 15, true, 2), slots);
    for (int round = 0; round < 3; ++round) {
      for (std::int32_t i = 0; i < 3; ++i) {
        Text prompt(24, i);
        prompt.push_back(i + 1);
        all.submit(request_of(prompt, 4));
        all.drain();
        for (int k = 0; k < 20; ++k) all.step();  // pages go to the host
      }
    }
    all.check_texts();
    const engine::BatchStats stats = all.batch.stats();
    CHECK(stats.host_pages == std::min(slots, 42));
    if (slots == 40) CHECK(stats.shared_tokens == 6 * 24);
    if (slots == 0) CHECK(stats.shared_tokens == 0);
    CHECK((stats.loaded_pages > 0) == (slots == 40));
    CHECK(all.batch.stats().preemptions == 0);
  }
}

TEST_CASE("batch: a sequence is cancelled in each state, and the others go on") {
  // Steps until the states: in the queue behind others, first of it, its prompt in parts, with
  // tokens unread, waiting for a mask, with its last token on the way.
  for (const bool guided : {false, true}) {
    for (int steps = 0; steps < 16; ++steps) {
      for (std::uint64_t victim = 1; victim <= 4; ++victim) {
        CAPTURE(guided);
        CAPTURE(steps);
        CAPTURE(victim);
        Harness all(options_of(2, 24, true, 2));
        for (int i = 0; i < 4; ++i) {
          Request request = request_of({1, 1, 0, 1, 1, 0, 1, 0, 1}, 9);
          request.choices = i == 1 ? 3 : 1;  // others wait for its pages
          request.priority = i == 3 ? 1 : 0;
          if (guided) request.first_mask = guide_mask(request.prompt);
          all.submit(request);
          if (i == 2)
            for (int k = 0; k < steps; ++k) all.step();
        }
        if (steps % 2 == 1) all.step();
        all.batch.cancel({victim, -1, Finish::cancelled});
        all.collect();
        for (std::int32_t choice = 0; choice < (victim == 2 ? 3 : 1); ++choice)
          CHECK(all.ends.count({victim, choice}) == 1);
        all.drain();
        all.check_texts();
        CHECK(all.ends.size() == 6);
      }
    }
  }
}
