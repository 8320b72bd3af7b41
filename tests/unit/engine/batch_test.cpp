// The batch: admission, preemption, shares, deadlines, and whose pages go first.
#include "unit/engine/batch_harness.h"

#include "base/errors.h"

#include <doctest/doctest.h>

#include <string>

using namespace kernwright;
using namespace kernwright::testing;
using engine::Batch;
using engine::Finish;
using engine::Request;
using engine::StepPlan;

TEST_CASE("batch: texts longer than the pages preempt the newest and end as they would alone") {
  for (const bool prefix_cache : {false, true}) {
    CAPTURE(prefix_cache);
    Harness all(options_of(3, 20, prefix_cache, 1));
    for (std::int32_t i = 0; i < 3; ++i) all.submit(request_of({i, i, 1}, 17));
    all.drain();
    all.check_texts();
    CHECK(all.ends.size() == 3);
    CHECK(all.batch.stats().preemptions > 0);
    CHECK(all.batch.stats().preemptions < 12);
    CHECK(all.batch.stats().finished == 3);
    // The earliest request is never preempted: it ends first.
    CHECK(all.texts[{1, 0}].size() == 17);
  }
}

TEST_CASE("batch: a text that outgrows the short length is computed again, once") {
  for (const bool deterministic : {false, true}) {
    for (const std::int32_t drafts : {0, 3}) {
      if (deterministic && drafts > 0) continue;
      CAPTURE(deterministic);
      CAPTURE(drafts);
      engine::BatchOptions options = options_of(4, 80, true, 2, deterministic, drafts);
      options.short_length = 10;
      Harness all(options);
      all.submit(request_of({1, 2, 3}, 12));                         // to 14 computed tokens
      all.submit(request_of({1, 2, 3}, 8));                          // to 10
      all.submit(request_of({1, 2, 3, 1, 2, 3, 1, 2, 3, 1}, 1));     // 10
      all.submit(request_of({1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2}, 3));  // 11
      all.drain();
      all.check_texts();
      CHECK(all.batch.stats().preemptions == 1);
      CHECK(all.batch.stats().recomputed_tokens >= (deterministic ? 11 : 9));  // of 11, with pages
      // Neither kind of pages is the beginning of the other.
      const Text text = {1, 2, 3, 1, 2, 3, 1, 2, 3, 1};
      CHECK(all.batch.cached_pages(text).size() >= 4);  // whole parts, if deterministic
      CHECK(all.batch.cached_pages(text, engine::kLongSalt).size() >= 4);
    }
  }
}

TEST_CASE("batch: a request of all pages runs, one of a page more is refused with what fits") {
  Harness all(options_of(2, 5));
  all.submit(request_of({1, 2, 3}, 8));
  CHECK_THROWS_WITH_AS(all.submit(request_of({1, 2, 3}, 9)),
                       doctest::Contains("the cache has 5: together 11 tokens fit"),
                       InvalidArgument);
  CHECK_THROWS_AS(all.submit(request_of({}, 1)), InvalidArgument);
  CHECK_THROWS_AS(all.submit(request_of({kTokens}, 1)), InvalidArgument);
  CHECK_THROWS_AS(all.submit(request_of({1}, 0)), InvalidArgument);
  all.drain();
  all.check_texts();
}

TEST_CASE("batch: higher priorities go first, and take the rows of lower ones") {
  Harness all(options_of(1, 40));
  all.submit(request_of({1}, 12));
  for (int i = 0; i < 4; ++i) all.step();
  Request low = request_of({2}, 3), high = request_of({3}, 3);
  low.priority = -1;
  high.priority = 1;
  all.submit(low);
  all.submit(high);
  while (all.ends.count({3, 0}) == 0) all.step();
  CHECK(all.ends.size() == 1);
  CHECK(all.batch.stats().preemptions == 1);
  while (all.ends.count({1, 0}) == 0) all.step();
  CHECK(all.ends.count({2, 0}) == 0);
  all.drain();
  all.check_texts();
}

TEST_CASE("batch: a user with many requests leaves rows to the others") {
  Harness all(options_of(1, 40));
  for (int i = 0; i < 6; ++i) {
    Request request = request_of({1, 2}, 4);
    request.user = "many";
    all.submit(request);
  }
  Request request = request_of({3, 4}, 4);
  request.user = "one";
  const std::uint64_t other = all.submit(request);
  while (all.ends.count({other, 0}) == 0) all.step();
  CHECK(all.ends.size() == 2);
  all.drain();
  all.check_texts();
}

TEST_CASE("batch: later requests of a user leave rows to the choices of an earlier one") {
  for (const bool is_other : {false, true}) {
    CAPTURE(is_other);
    Harness all(options_of(3, 60, true, 1));
    Request several = request_of({1, 2, 3}, 4);
    several.choices = 3;
    const std::uint64_t first = all.submit(several);
    Request later = request_of({4, 5, 6}, 4);
    if (is_other) later.user = "other";  // who had nothing so far
    const std::uint64_t second = all.submit(later);
    all.step();
    CHECK(all.batch.stats().rows == (is_other ? 2 : 1));
    all.step();
    CHECK(all.batch.stats().rows == 3);
    all.drain();
    all.check_texts();
    const auto place = std::ranges::find(all.ended, Harness::Key{second, 0}) - all.ended.begin();
    CHECK(place == (is_other ? 1 : 3));
    CHECK(all.ended.front() == Harness::Key{first, 0});
  }
}

TEST_CASE("batch: a text is restored to pages that the first of the queue has found") {
  Harness all(options_of(1, 12, true, 1));
  const Text found = {1, 2, 3, 4, 5, 6, 0, 1};
  all.submit(request_of(found, 1));
  all.drain();
  all.submit(request_of({6, 6}, 3));
  Request waiting = request_of(found, 2);
  waiting.prompt.push_back(3);
  all.submit(waiting);
  all.step();
  CHECK(all.batch.stats().cached_pages == 0);
  CHECK(all.restore({2, 2, 2, 2, 2, 2}));
  all.drain();
  all.check_texts();
}

TEST_CASE("batch: a deadline ends requests that run and that wait") {
  Harness all(options_of(1, 40));
  const auto now = Batch::Clock::now();
  Request request = request_of({1}, 20);
  request.deadline = now + std::chrono::seconds(5);
  all.submit(request);
  all.submit(request);
  request.deadline.reset();
  all.submit(request);
  for (int i = 0; i < 5; ++i) all.step();
  all.batch.expire(now + std::chrono::seconds(4));
  CHECK(all.batch.stats().aborted == 0);
  all.batch.expire(now + std::chrono::seconds(6));
  all.collect();
  CHECK(all.batch.stats().aborted == 2);
  CHECK(all.ends.at({1, 0}) == Finish::timeout);
  CHECK(all.ends.at({2, 0}) == Finish::timeout);
  CHECK(all.texts[{2, 0}].empty());
  all.drain();
  all.check_texts();
  CHECK(all.ends.at({3, 0}) == Finish::length);
}

TEST_CASE("batch: a deterministic engine admits what fits to its end, and preempts none") {
  Harness all(options_of(3, 12, true, 2, true));
  for (std::int32_t i = 0; i < 4; ++i) {
    Request request = request_of({i, 1, 2}, 14);
    request.priority = i;
    all.submit(request);
  }
  all.drain();
  all.check_texts();
  CHECK(all.batch.stats().preemptions == 0);
}

TEST_CASE("batch: bad numbers end their text, and the cache forgets what it had") {
  Harness all(options_of(2, 20));
  all.submit(request_of({1, 2, 3, 4, 5}, 9));
  const StepPlan plan = all.batch.plan();
  Text active, counts;
  all.batch.commit(plan, active, counts);
  all.batch.receive(plan.parts, Text{kernels::kNoNumber}, 1);
  all.collect();
  CHECK(all.ends.at({1, 0}) == Finish::bad_logits);
  CHECK(all.batch.stats().failed == 1);
  CHECK(all.batch.stats().free_pages == 20);
}

TEST_CASE("batch: the first of the queue keeps what the cache has of it until others need it") {
  Harness all(options_of(2, 14, true, 1));
  const Text long_text = {1, 2, 3, 4, 5, 6, 0, 1};
  all.submit(request_of(long_text, 1));
  all.drain();
  CHECK(all.batch.stats().cached_pages == 8);
  all.submit(request_of({6, 6}, 10));  // needs up to 11 pages
  all.step();
  Request waiting = request_of(long_text, 6);  // needs up to 13, of which the cache has 7
  waiting.prompt.push_back(3);
  const std::uint64_t number = all.submit(waiting);
  all.step();
  CHECK(all.batch.stats().rows == 1);
  CHECK(all.batch.stats().cached_pages == 0);
  CHECK(all.batch.stats().used_pages > 9);
  while (all.ends.count({number - 1, 0}) == 0) all.step();
  CHECK(all.batch.stats().preemptions == 0);
  all.drain();
  all.check_texts();
  // The running text took the last pages of the waiting one, and not the first ones.
  CHECK(all.batch.stats().shared_tokens == 3);
}

TEST_CASE("batch: pages found for the first of the queue go back where another one comes first") {
  Harness all(options_of(2, 12, true, 1));
  all.submit(request_of({1, 2, 3, 4, 5, 6}, 1));
  all.drain();
  all.submit(request_of({6, 6}, 9));
  all.step();
  const std::uint64_t low = all.submit(request_of({1, 2, 3, 4, 5, 6, 1}, 6));
  all.step();
  CHECK(all.batch.stats().cached_pages == 0);
  Request request = request_of({2}, 2);
  request.priority = 1;
  const std::uint64_t high = all.submit(request);
  while (all.ends.count({high, 0}) == 0) all.step();
  CHECK(all.batch.stats().preemptions == 0);
  CHECK(all.ends.count({low, 0}) == 0);
  all.batch.cancel({low, -1, Finish::cancelled});
  all.drain();
  all.check_texts();
}

TEST_CASE("batch: drafts save steps, and the counts of a text are exact at its end") {
  Harness plain(options_of(2, 40)), drafted(options_of(2, 40, true, 2, false, 3));
  for (Harness* all : {&plain, &drafted}) {
    all->submit(request_of({1, 2, 3}, 30));
    all->submit(request_of({4}, 17));
    all->drain();
    all->check_texts();
    CHECK(all->texts[{1, 0}].size() == 30);
    CHECK(all->texts[{2, 0}].size() == 17);
  }
  CHECK(drafted.draft_steps > 5);
  CHECK(drafted.steps * 3 < plain.steps * 2);
  const engine::BatchStats stats = drafted.batch.stats();
  CHECK(stats.accepted_tokens > 10);
  CHECK(stats.drafted_tokens > stats.accepted_tokens);
  CHECK(stats.tokens == 47);
  CHECK(plain.batch.stats().drafted_tokens == 0);
}

TEST_CASE("batch: a stop token within drafts ends the text there") {
  for (std::int32_t stop = 0; stop < kTokens; ++stop) {
    Harness all(options_of(1, 40, true, 2, false, 3));
    Request request = request_of({1, 2, 3}, 30);
    request.stop_tokens = {stop};
    const Text wanted = expected(request, 30);
    all.submit(request);
    all.drain();
    CHECK(all.texts[{1, 0}] == wanted);
    CHECK(all.ends.at({1, 0}) == (wanted.back() == stop ? Finish::stop : Finish::length));
  }
}

TEST_CASE("batch: a text has no drafts until its mask is the same for all its tokens") {
  Harness all(options_of(1, 40, true, 2, false, 3));
  Request request = request_of({1, 2, 3}, 30);
  request.min_tokens = 20;
  request.stop_tokens = {0};
  all.submit(request);
  for (int i = 0; i < 20; ++i) all.step();
  CHECK(all.draft_steps == 0);
  all.step();
  CHECK(all.draft_steps == 1);
  all.drain();
  all.check_texts();
}
