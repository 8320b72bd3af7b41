// The batch over a device of the test, which keeps what each page has and how tokens follow.
#include "engine/batch.h"

#include "base/errors.h"
#include "kernels_src/steps/step_state.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

using namespace kernwright;
using engine::Batch;
using engine::Finish;
using engine::Request;
using engine::StepPart;
using engine::StepPlan;

namespace {

using Text = std::vector<std::int32_t>;
constexpr std::int32_t kTokens = 7;

/// The token behind a text.
std::int32_t next_token(const Text& text, std::uint64_t seed) {
  std::uint64_t sum = seed;
  for (const std::int32_t token : text) sum = sum * 31 + static_cast<std::uint64_t>(token) + 1;
  return static_cast<std::int32_t>(sum % kTokens);
}

Text expected(const Request& request, std::uint64_t seed, std::int32_t count) {
  Text text = request.prompt;
  for (std::int32_t i = 0; i < count; ++i) text.push_back(next_token(text, seed));
  return {text.begin() + std::ssize(request.prompt), text.end()};
}

/// Rows as a device has them. A page keeps, for each place, the whole text up to there: what
/// attention would read.
class FakeDevice final : public engine::RowStates {
 public:
  explicit FakeDevice(const engine::BatchOptions& options) : options_(options) {}

  void set_row(std::int32_t row, const engine::RowStart& start) override {
    rows_[row] = {
        Text(start.tokens.begin(), start.tokens.end()), {}, start.computed, start.sampling.seed};
  }
  void set_pages(std::int32_t row, std::size_t first,
                 std::span<const std::int32_t> pages) override {
    Text& table = rows_.at(row).pages;
    REQUIRE(first == table.size());
    table.insert(table.end(), pages.begin(), pages.end());
  }

  void set_mask(std::int32_t row, std::span<const std::uint32_t>) override {
    REQUIRE(rows_.count(row) == 1);
  }

  /// Runs a step; its results, a word for each part.
  Text run(const Text& active, const Text& counts) {
    Text results;
    for (std::size_t i = 0; i < active.size(); ++i) {
      Row& row = rows_.at(active[i]);
      for (std::int32_t k = 0; k < counts[i]; ++k) compute(row);
      results.push_back(kernels::kNoToken);
      if (row.computed != std::ssize(row.tokens)) continue;
      results.back() = next_token(row.tokens, row.seed);
      row.tokens.push_back(results.back());
    }
    return results;
  }

 private:
  struct Row {
    Text tokens, pages;
    std::int32_t computed = 0;
    std::uint64_t seed = 0;
  };

  void compute(Row& row) {
    const std::int32_t size = options_.pages.page_size, at = row.computed;
    REQUIRE(at < std::ssize(row.tokens));
    REQUIRE(at / size < std::ssize(row.pages));
    for (std::int32_t i = 0; i < at; ++i) {
      const Text before(row.tokens.begin(), row.tokens.begin() + i + 1);
      REQUIRE(pages_[{row.pages[static_cast<std::size_t>(i / size)], i % size}] == before);
    }
    pages_[{row.pages[static_cast<std::size_t>(at / size)], at % size}] =
        Text(row.tokens.begin(), row.tokens.begin() + at + 1);
    ++row.computed;
  }

  const engine::BatchOptions options_;
  std::map<std::int32_t, Row> rows_;
  std::map<std::pair<std::int32_t, std::int32_t>, Text> pages_;
};

/// A batch whose results are read one step late.
class Harness {
 public:
  explicit Harness(const engine::BatchOptions& options) : device(options), batch(options, device) {}

  std::uint64_t submit(Request request) {
    batch.require_possible(request);
    requests[++last_] = request;
    batch.submit(last_, std::move(request));
    return last_;
  }

  void step() {
    const StepPlan plan = batch.plan();
    if (!plan.parts.empty()) {
      REQUIRE(plan.tokens <= batch.options().schedule.max_tokens);
      REQUIRE(std::ssize(plan.parts) <= batch.options().max_rows);
      Text active, counts;
      batch.commit(plan, active, counts);
      REQUIRE(std::set(active.begin(), active.end()).size() == active.size());
      unread_.emplace_back(plan.parts, device.run(active, counts));
    }
    if (unread_.size() > (plan.parts.empty() ? 0U : 1U)) {
      batch.receive(unread_.front().first, unread_.front().second, 1);
      unread_.pop_front();
    }
    collect();
  }

  void collect() {
    for (const engine::TokenEvent& event : batch.events()) {
      auto& made = texts[{event.request, event.choice}];
      REQUIRE(ends.count({event.request, event.choice}) == 0);
      if (event.token >= 0) made.push_back(event.token);
      if (event.finish != Finish::none) ends[{event.request, event.choice}] = event.finish;
    }
    batch.events().clear();
    const engine::BatchStats stats = batch.stats();
    REQUIRE(stats.started == stats.finished + stats.aborted + stats.failed + stats.running);
    REQUIRE(stats.started + stats.waiting == static_cast<std::int64_t>(last_));
    REQUIRE(stats.free_pages + stats.used_pages + stats.cached_pages ==
            batch.options().pages.total);
    REQUIRE(stats.rows <= batch.options().max_rows);
  }

  void drain() {
    for (int steps = 0; batch.has_sequences(); ++steps) {
      REQUIRE(steps < 5000);
      step();
    }
    // Steps of sequences that ended early.
    unread_.clear();
    CHECK(batch.stats().used_pages == 0);
    CHECK(batch.stats().running == 0);
  }

  /// Every text is what it would be alone, up to where it ended.
  void check_texts() {
    for (const auto& [key, finish] : ends) {
      const Request& request = requests.at(key.first);
      const Text& made = texts[key];
      if (finish == Finish::length) REQUIRE(std::ssize(made) == request.max_tokens);
      if (key.second == 0)
        REQUIRE(made ==
                expected(request, request.sampling.seed, static_cast<std::int32_t>(made.size())));
    }
  }

  FakeDevice device;
  Batch batch;
  std::map<std::uint64_t, Request> requests;
  std::map<std::pair<std::uint64_t, std::int32_t>, Text> texts;
  std::map<std::pair<std::uint64_t, std::int32_t>, Finish> ends;

 private:
  std::uint64_t last_ = 0;
  std::deque<std::pair<std::vector<StepPart>, Text>> unread_;
};

engine::BatchOptions options_of(std::int32_t rows, std::int32_t pages, bool prefix_cache = true,
                                std::int32_t page_size = 2, bool deterministic = false) {
  return {.max_rows = rows,
          .capacity = 40,
          .pages = {.total = pages,
                    .page_size = page_size,
                    .prefix_cache = prefix_cache,
                    .part = deterministic ? rows + 4 : 0},
          .schedule = {.max_tokens = rows + 4, .deterministic = deterministic},
          .vocabulary = kTokens,
          .reserve_tokens = 4};
}

Request request_of(Text prompt, std::int32_t tokens) {
  Request request;
  request.prompt = std::move(prompt);
  request.max_tokens = tokens;
  request.sampling.seed = 5;
  return request;
}

}  // namespace

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

TEST_CASE("batch: invariants and texts hold through random requests, cancels and deadlines") {
  std::int64_t preemptions = 0, shared = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const auto below = [&](unsigned most) { return static_cast<std::int32_t>(random() % most); };
    const std::int32_t page_size = 1 + below(3);
    Harness all(options_of(1 + below(4), (40 + page_size - 1) / page_size + below(12),
                           random() % 3 != 0, page_size, random() % 5 == 0));
    for (int step = 0; step < 150; ++step) {
      if (random() % 3 == 0) {
        Request request = request_of({}, 1 + below(18));
        for (std::int32_t i = 1 + below(14); i-- > 0;) request.prompt.push_back(below(2));
        request.max_tokens =
            std::min(request.max_tokens, 40 - static_cast<std::int32_t>(request.prompt.size()));
        request.choices = random() % 4 == 0 ? 1 + below(3) : 1;
        request.priority = random() % 6 == 0 ? below(3) - 1 : 0;
        request.user = std::string(1, static_cast<char>('a' + below(3)));
        if (random() % 8 == 0)
          request.deadline = Batch::Clock::time_point(std::chrono::hours(1 + below(150)));
        all.submit(request);
      }
      if (random() % 9 == 0 && !all.requests.empty())
        all.batch.cancel({1 + random() % all.requests.size(), below(3) - 1, Finish::cancelled});
      all.batch.expire(Batch::Clock::time_point(std::chrono::hours(step)));
      if (random() % 60 == 0) {
        all.drain();
      } else {
        all.step();
      }
    }
    all.drain();
    all.check_texts();
    std::size_t choices = 0;
    for (const auto& [number, request] : all.requests)
      choices += static_cast<std::size_t>(request.choices);
    CHECK(all.ends.size() == choices);
    preemptions += all.batch.stats().preemptions;
    shared += all.batch.stats().shared_tokens;
  }
  CHECK(preemptions > 40);
  CHECK(shared > 200);
}
