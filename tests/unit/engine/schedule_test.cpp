// Plans of steps, and the sizes of recorded steps.
#include "engine/schedule.h"

#include "base/errors.h"
#include "unit/engine/plan_fixture.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

using namespace kernwright;
using namespace kernwright::engine;
using namespace kernwright::testing;

TEST_CASE("schedule: rows that generate have one token each") {
  const Buckets buckets = Buckets::of_limits(16, 64);
  const std::vector running = {sequence_of(5, 4), sequence_of(9, 8), sequence_of(2, 1)};
  const StepPlan plan = plan_step(running, {.max_tokens = 64}, buckets);
  CHECK(counts_of(plan) == std::vector{1, 1, 1});
  CHECK(plan.bucket == Bucket{4, 4});
  for (const StepPart& part : plan.parts) CHECK(part.yields);
}

TEST_CASE("schedule: prompts get what generating rows leave of the budget") {
  const Buckets buckets = Buckets::of_limits(4, 32);
  const std::vector running = {sequence_of(40, 16), sequence_of(9, 8), sequence_of(30, 0),
                               sequence_of(7, 6)};
  const StepPlan plan = plan_step(running, {.max_tokens = 32}, buckets);
  CHECK(counts_of(plan) == std::vector{24, 1, 6, 1});
  CHECK(plan.tokens == 32);
  CHECK(plan.bucket == Bucket{4, 32});
  CHECK(plan.parts[0].yields);
  CHECK_FALSE(plan.parts[2].yields);
}

TEST_CASE("schedule: a row whose tokens are all planned takes no part") {
  const Buckets buckets = Buckets::of_limits(4, 32);
  auto done = sequence_of(9, 8, 3);
  done->planned = 3;
  CHECK(plan_step(std::vector{done}, {.max_tokens = 32}, buckets).parts.empty());
  CHECK(counts_of(plan_step(std::vector{done, sequence_of(2, 1)}, {.max_tokens = 32}, buckets)) ==
        std::vector{1});
  CHECK(plan_step({}, {.max_tokens = 32}, buckets).parts.empty());
}

TEST_CASE("schedule: the last token of a prompt alone is a step of decoding") {
  const StepPlan plan =
      plan_step(std::vector{sequence_of(1, 0)}, {.max_tokens = 32}, Buckets::of_limits(4, 32));
  CHECK(plan.bucket == Bucket{1, 1});
}

TEST_CASE("schedule: deterministic plans keep prompts apart, cut at multiples of a step") {
  const Buckets buckets = Buckets::of_limits(4, 32);
  const ScheduleOptions options = {.max_tokens = 32, .deterministic = true};
  const auto with_prompt = [](int prompt, int length, int computed) {
    auto made = sequence_of(length, computed);
    auto source = std::make_shared<Request>();
    source->prompt.resize(static_cast<std::size_t>(prompt));
    made->source = source;
    return made;
  };
  std::vector running = {with_prompt(3, 9, 8), with_prompt(80, 80, 24), with_prompt(2, 2, 0)};
  StepPlan plan = plan_step(running, options, buckets);
  CHECK(counts_of(plan) == std::vector{8});
  CHECK(plan.bucket == Bucket{1, 32});
  CHECK_FALSE(plan.parts[0].yields);
  running = {with_prompt(3, 9, 8), with_prompt(2, 4, 3)};
  plan = plan_step(running, options, buckets);
  CHECK(counts_of(plan) == std::vector{1, 1});
  CHECK(plan.bucket == Bucket{4, 4});
  ScheduleOptions any = options;
  any.any_rows = true;
  CHECK(plan_step(running, any, buckets).bucket == Bucket{2, 2});
  running.resize(1);
  CHECK(plan_step(running, any, buckets).bucket == Bucket{1, 1});
  CHECK(plan_step(std::vector{with_prompt(80, 80, 24)}, any, buckets).bucket == Bucket{1, 32});
}

TEST_CASE("schedule: a recorded step has the features of all rows that get a token") {
  auto drawn = std::make_shared<Request>(), penalised = std::make_shared<Request>();
  drawn->sampling.temperature = 1;
  penalised->sampling.presence_penalty = 0.5f;
  penalised->wants_details = true;
  const std::vector running = {sequence_of(5, 4), sequence_of(5, 4), sequence_of(90, 0)};
  running[0]->source = drawn;
  running[2]->source = penalised;
  const Buckets buckets = Buckets::of_limits(4, 32);
  CHECK(plan_step(running, {.max_tokens = 32}, buckets).bucket.features == Features::random);
  running[2]->computed = 80;
  CHECK(plan_step(running, {.max_tokens = 32}, buckets).bucket.features ==
        (Features::random | Features::penalties | Features::details));
}

TEST_CASE("schedule: a part of a prompt with an adapter needs the products of adapters") {
  const Buckets buckets = Buckets::of_limits(4, 32);
  auto adapted = sequence_of(90, 0);
  Request request;
  request.adapter = 0;
  adapted->source = std::make_shared<Request>(request);
  const std::vector both = {sequence_of(5, 4), adapted};
  const StepPlan plan = plan_step(both, {.max_tokens = 32}, buckets);
  CHECK_FALSE(plan.parts[1].yields);
  CHECK(plan.bucket.features == Features::adapters);
  CHECK(plan_step(std::vector{both[0]}, {.max_tokens = 32}, buckets).bucket.features == 0);
}

TEST_CASE("buckets: the smallest size that holds a step") {
  CHECK_THROWS_AS(Buckets::of_limits(8, 8), InvalidArgument);
  for (const auto& [rows, tokens] :
       {std::pair{1, 2}, {3, 17}, {64, 65}, {256, 8192}, {100, 512}, {7, 1000}}) {
    CAPTURE(rows);
    const Buckets buckets = Buckets::of_limits(rows, tokens);
    for (const auto* sizes : {&buckets.decode_rows, &buckets.mixed_rows, &buckets.mixed_tokens})
      CHECK(std::ranges::is_sorted(*sizes, std::less_equal()));
    for (int n = 1; n <= rows; ++n) {
      const Bucket found = buckets.decoding(n);
      REQUIRE(found.rows >= n);
      REQUIRE(found.rows <= std::min(rows, n <= 8 ? 2 * n : n + std::max(7, n / 8)));
      REQUIRE(found.tokens == found.rows);
    }
    std::mt19937 random(1);
    for (int i = 0; i < 200; ++i) {
      const int n = 1 + static_cast<int>(random() % static_cast<unsigned>(rows));
      const int t = n + 1 + static_cast<int>(random() % static_cast<unsigned>(tokens - n));
      const Bucket found = buckets.mixed(n, t);
      REQUIRE(found.rows >= n);
      REQUIRE(found.rows <= std::min(rows, 4 * n));
      REQUIRE(found.tokens >= t);
      REQUIRE(found.tokens > found.rows);
      REQUIRE(found.tokens <= tokens);
      const int needed = std::max(t, found.rows + 1);
      REQUIRE(found.tokens <= needed + std::max(64, needed / 8));
    }
  }
}
