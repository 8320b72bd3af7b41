// Texts that come together and begin alike: who computes the beginning, and how often.
#include "engine/leader.h"

#include "unit/engine/batch_harness.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <vector>

using namespace kernwright;
using namespace kernwright::testing;
using engine::Finish;
using engine::Request;
using engine::StepPlan;

namespace {

constexpr std::int32_t kCommon = 4096, kTail = 17, kRequests = 64, kPage = 16;

/// A batch as that of a large model: its steps have 8192 tokens.
engine::BatchOptions large_options(bool prefix_cache = true, bool deterministic = false) {
  engine::BatchOptions options = options_of(kRequests, 20000, prefix_cache, kPage, deterministic);
  options.capacity = 8192;
  options.schedule.max_tokens = 8192;
  options.pages.part = deterministic ? 1024 : 0;
  if (deterministic) options.schedule.max_tokens = 1024;
  return options;
}

/// `common` tokens that all such texts have, and `tail` of its own.
Text long_text(std::int32_t common, std::int32_t tail, std::int32_t number) {
  Text made;
  for (std::int32_t i = 0; i < common; ++i) made.push_back(i % 5);
  for (std::int32_t i = 0; i < tail; ++i, number /= kTokens) made.push_back(number % kTokens);
  return made;
}

/// Plans and commits steps until every request has its first token; tokens that they computed.
struct Work {
  std::vector<std::int32_t> tokens;  ///< of each step
  std::vector<std::size_t> parts;
};

Work work_of(engine::Batch& batch) {
  Work made;
  Text active, counts;
  for (int i = 0; i < 1000; ++i) {
    const StepPlan plan = batch.plan();
    if (plan.parts.empty()) return made;
    batch.commit(plan, active, counts);
    made.tokens.push_back(plan.tokens);
    made.parts.push_back(plan.parts.size());
    Text results;
    for (const auto& part : plan.parts) results.push_back(part.yields ? 1 : kernels::kNoToken);
    batch.receive(plan.parts, results, 1);
  }
  return made;
}

struct NoRows final : engine::RowStates {
  void set_row(std::int32_t, const engine::RowStart&) override {}
  void set_pages(std::int32_t, std::size_t, std::span<const std::int32_t>) override {}
  void set_followed(std::int32_t, std::int32_t) override {}
  void set_mask(std::int32_t, std::span<const std::uint32_t>, const engine::RowDrafts&) override {}
};

Work together(const engine::BatchOptions& options, std::int32_t common, std::int32_t tail) {
  NoRows rows;
  engine::Batch batch(options, rows);
  for (std::int32_t i = 0; i < kRequests; ++i)
    batch.submit(static_cast<std::uint64_t>(i) + 1, request_of(long_text(common, tail, i), 1));
  return work_of(batch);
}

std::int32_t sum(const std::vector<std::int32_t>& numbers) {
  std::int32_t total = 0;
  for (const std::int32_t each : numbers) total += each;
  return total;
}

}  // namespace

TEST_CASE("leader: a beginning that 64 requests share is computed once, all else in one step") {
  const Work found = together(large_options(), kCommon, kTail);
  CHECK(found.tokens == std::vector<std::int32_t>{kCommon + kTail, (kRequests - 1) * kTail});
  CHECK(found.parts == std::vector<std::size_t>{1, kRequests - 1});
  const Work alone = together(large_options(false), kCommon, kTail);
  CHECK(sum(alone.tokens) == kRequests * (kCommon + kTail));
  // A beginning that takes several steps, and the same in steps of one size.
  engine::BatchOptions small = large_options();
  small.schedule.max_tokens = 2048;
  const Work longer = together(small, 7 * 1024, 2);
  CHECK(longer.tokens.size() == 5);
  CHECK(sum(longer.tokens) == 7 * 1024 + kRequests * 2);
  const Work parts = together(large_options(true, true), kCommon, kTail);
  CHECK(sum(parts.tokens) == kCommon + kRequests * kTail);
}

TEST_CASE("leader: short common beginnings of long texts keep nobody waiting") {
  const Work found = together(large_options(), 200, 401);
  CHECK(found.parts.front() > 10);
  CHECK(sum(found.tokens) >= 8 * 601);
  const Work half = together(large_options(), 200, 150);
  CHECK(half.parts.front() == 1);
  CHECK(sum(half.tokens) == 192 + kRequests * (350 - 192));
}

TEST_CASE("leader: short texts that fit into one step with the first do not wait for it") {
  // Texts of 40 tokens, of which 32 are full pages: steps have place for three of them.
  const Work found = together(large_options(), 32, 8);
  CHECK(found.parts == std::vector<std::size_t>{3, kRequests - 3});
  CHECK(found.tokens == std::vector<std::int32_t>{3 * 40, (kRequests - 3) * 8});
  // A part of a long prompt leaves no place.
  NoRows rows;
  engine::Batch batch(large_options(), rows);
  batch.submit(1, request_of(Text(200, 3), 1));
  for (std::uint64_t i = 2; i < 4; ++i)
    batch.submit(i, request_of(long_text(32, 8, static_cast<std::int32_t>(i)), 1));
  CHECK(batch.plan().tokens == 240);
  // A deterministic engine has a step for each prompt.
  const Work steps = together(large_options(true, true), 1024, 8);
  CHECK(sum(steps.tokens) == 1024 + kRequests * 8);
}

TEST_CASE("leader: others pass those that wait, who have their place in the queue again") {
  engine::BatchOptions options = options_of(3, 40, true, 1);  // steps of 7 tokens
  Harness all(options);
  const Text common = {1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6};
  const auto number = [&](std::int32_t last) {
    Request request = request_of(common, 4);
    request.prompt.push_back(last);
    return all.submit(request);
  };
  const auto first = number(0), second = number(1);
  const auto other = all.submit(request_of({6, 6, 6}, 2));
  const auto third = number(2);
  all.step();
  CHECK(all.batch.stats().rows == 2);  // the first, and the one that begins otherwise
  CHECK(all.batch.stats().waiting == 2);
  all.drain();
  all.check_texts();
  CHECK(all.batch.stats().shared_tokens == 2 * 12);
  for (const auto each : {first, second, other, third})
    CHECK(all.ends.at({each, 0}) == Finish::length);
}

TEST_CASE("leader: only a higher priority takes the row of one that waits") {
  for (const std::int32_t priority : {0, 1}) {
    CAPTURE(priority);
    Harness all(options_of(2, 80, true, 1));  // steps of 6 tokens
    const Text common = {1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6};
    const auto first = all.submit(request_of(common, 25));
    Request alike = request_of(common, 2);
    alike.prompt.push_back(1);
    const auto second = all.submit(alike);
    Request other = request_of({6, 6, 6}, 20);
    other.priority = priority;
    const auto last = all.submit(other);
    all.drain();
    all.check_texts();
    for (const auto each : {first, second, last}) CHECK(all.ends.at({each, 0}) == Finish::length);
    const auto place = [&](std::uint64_t number) {
      return std::ranges::find(all.ended, Harness::Key{number, 0}) - all.ended.begin();
    };
    CHECK((place(second) < place(last)) == (priority == 0));
  }
}

TEST_CASE("leader: when it ends or is preempted, those that wait go on") {
  const Text common = {1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6};
  for (const bool cancels : {true, false}) {
    CAPTURE(cancels);
    Harness all(options_of(2, 60, true, 1));  // steps of 6 tokens
    const std::uint64_t first = all.submit(request_of(common, 3));
    const std::uint64_t second = all.submit(request_of(common, 3));
    const std::uint64_t third = all.submit(request_of(common, 3));
    all.step();
    CHECK(all.batch.stats().waiting == 2);
    if (cancels) {
      all.batch.cancel({second, -1, Finish::cancelled});
      all.batch.cancel({first, -1, Finish::cancelled});
    } else {
      for (int i = 0; i < 2; ++i) {
        Request high = request_of({6, 5}, 9);
        high.priority = 1;
        all.submit(high);
      }
    }
    all.collect();
    all.step();
    CHECK(all.batch.stats().rows == (cancels ? 1 : 2));
    all.drain();
    all.check_texts();
    CHECK(all.ends.at({third, 0}) == Finish::length);
    CHECK(all.batch.stats().preemptions == (cancels ? 0 : 1));
    if (cancels) CHECK(all.ends.at({second, 0}) == Finish::cancelled);
  }
}

TEST_CASE("leader: texts of other salts, and texts that know as much already, do not wait") {
  NoRows rows;
  engine::Batch batch(large_options(), rows);
  for (std::uint64_t i = 0; i < 2; ++i) {
    Request request = request_of(long_text(kCommon, kTail, 1), 1);
    request.salt = i;
    batch.submit(i + 1, std::move(request));
  }
  CHECK(batch.plan().parts.size() == 2);
  engine::Batch known(large_options(), rows);
  known.restore_pages(long_text(kCommon, 0, 0), [](std::int32_t, std::span<const std::int32_t>) {});
  for (std::int32_t i = 0; i < 3; ++i)
    known.submit(static_cast<std::uint64_t>(i) + 1, request_of(long_text(kCommon, kTail, i), 1));
  const StepPlan plan = known.plan();
  CHECK(plan.parts.size() == 3);
  CHECK(plan.tokens == 3 * kTail);
}
