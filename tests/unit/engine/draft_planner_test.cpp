// Which steps have drafts, and what a draft model catches up with.
#include "engine/draft_planner.h"

#include "unit/engine/batch_harness.h"
#include "unit/engine/plan_fixture.h"

#include <doctest/doctest.h>

#include <memory>
#include <vector>

using namespace kernwright;
using namespace kernwright::engine;
using namespace kernwright::testing;

namespace {

std::vector<int> follows_of(const StepPlan& plan) {
  std::vector<int> follows;
  for (const StepPart& part : plan.parts) follows.push_back(part.follows);
  return follows;
}

}  // namespace

TEST_CASE("draft planner: drafts are for steps of decoding, as many as a text may still get") {
  const Buckets buckets = Buckets::of_limits(8, 64);
  const ScheduleOptions options = {.max_tokens = 64};
  const std::vector running = {sequence_of(5, 4), sequence_of(9, 8, 3), sequence_of(2, 1, 1)};
  StepPlan plan = plan_step(running, options, buckets);
  add_drafts(plan, {.tokens = 7}, options);
  CHECK(counts_of(plan) == std::vector{8, 3, 1});
  CHECK(plan.tokens == 12);
  CHECK(plan.bucket == Bucket{4, 32, 0, 7});
  CHECK(plan.bucket.outputs() == 32);
  CHECK(plan.bucket.decodes());

  // A prompt beside, too few tokens of a step, nothing to guess, a guide, a deterministic engine.
  const auto is_plain = [&](const std::vector<std::shared_ptr<Sequence>>& sequences,
                            std::int32_t drafts, const ScheduleOptions& chosen) {
    StepPlan made = plan_step(sequences, chosen, buckets);
    const auto counts = counts_of(made);
    add_drafts(made, {.tokens = drafts}, chosen);
    return counts_of(made) == counts && made.bucket.drafts == 0;
  };
  CHECK(is_plain({sequence_of(5, 4), sequence_of(5, 2)}, 7, options));
  CHECK(is_plain(running, 16, options));
  CHECK(is_plain(running, 64, {.max_tokens = 1000}));
  CHECK_FALSE(is_plain(running, 63, {.max_tokens = 1000}));
  CHECK(is_plain({sequence_of(2, 1, 1)}, 7, options));
  CHECK(is_plain(running, 7, {.max_tokens = 64, .deterministic = true}));
  auto guided = std::make_shared<Request>();
  guided->first_mask = TokenMask(9, true);
  auto sequence = sequence_of(5, 4);
  sequence->source = guided;
  CHECK(is_plain({sequence}, 7, options));
  // A guide's own guesses are drafts, whatever a draft model knows of the text.
  sequence->guesses = {1, 2, 3};
  StepPlan by_guide = plan_step(std::vector{sequence, sequence_of(5, 4)}, options, buckets);
  add_drafts(by_guide, {.tokens = 2, .context = 3}, options);
  CHECK(counts_of(by_guide) == std::vector{3, 1});
  CHECK(follows_of(by_guide) == std::vector{0, 0});
}

TEST_CASE("draft planner: a draft model is fed rows that it knows, as far as its context goes") {
  const Buckets buckets = Buckets::of_limits(8, 64);
  const std::vector running = {sequence_of(5, 4), sequence_of(9, 8), sequence_of(18, 17),
                               sequence_of(20, 19), sequence_of(21, 20)};
  for (const auto& each : running) each->followed = each->computed;
  running[1]->followed = 3;
  StepPlan plan = plan_step(running, {.max_tokens = 64}, buckets);
  add_drafts(plan, {.tokens = 3, .context = 20}, {.max_tokens = 64});
  CHECK(counts_of(plan) == std::vector{4, 1, 3, 1, 1});
  const int feeds = kernels::kFeeds;
  CHECK(follows_of(plan) == std::vector{feeds, 0, feeds, feeds, 0});
}

TEST_CASE("draft planner: a draft model catches up once, and feeds go on from there") {
  Harness all(options_of(2, 40, true, 2, false, 3, 40));
  all.submit(request_of({1, 2, 3}, 30));
  all.submit(request_of({4}, 17));
  all.drain();
  all.check_texts();
  CHECK(all.texts[{1, 0}].size() == 30);
  CHECK(all.device.caught_up == 3 + 1 + 2);  // the prompts, and a token of a step without drafts
  CHECK(all.draft_steps > 5);
  const BatchStats stats = all.batch.stats();
  CHECK(stats.accepted_tokens > 10);
  CHECK(stats.drafted_tokens > stats.accepted_tokens);
}

TEST_CASE("draft planner: long prompts are caught up with in parts, beside rows with drafts") {
  Harness all(options_of(2, 40, true, 2, false, 3, 40));  // steps of 12 tokens
  all.submit(request_of({1, 2, 3}, 34));
  while (all.draft_steps < 2) all.step();
  Text prompt(30, 1);
  all.submit(request_of(prompt, 6));
  const int before = all.device.caught_up;
  int beside = 0;
  while (all.ends.empty()) {
    const int steps = all.draft_steps, caught_up = all.device.caught_up;
    all.step();
    CHECK(all.device.caught_up - caught_up <= 12);
    beside += all.draft_steps > steps && all.device.caught_up > caught_up ? 1 : 0;
  }
  CHECK(beside >= 2);
  all.drain();
  all.check_texts();
  CHECK(all.device.caught_up - before >= 30);
}

TEST_CASE("draft planner: pages that a draft model has are shared as those of the model") {
  // Another text that begins alike, and the choices of a request: the shared pages once.
  Harness all(options_of(4, 60, true, 2, false, 2, 40));
  Text prompt = {1, 2, 3, 4, 5, 6, 1, 2, 3, 4};
  all.submit(request_of(prompt, 8));
  all.drain();
  const int once = all.device.caught_up;
  all.submit(request_of(prompt, 8));
  all.drain();
  CHECK(all.device.caught_up - once <= 4);
  Request request = request_of(Text(30, 3), 6);
  request.choices = 3;
  all.submit(request);
  const int before = all.device.caught_up;
  all.drain();
  CHECK(all.device.caught_up - before < 2 * 30);
  all.check_texts();
}

TEST_CASE("draft planner: guided texts have the drafts of their guides") {
  for (const std::int32_t context : {0, 40}) {
    Harness all(options_of(4, 60, true, 2, false, 3, context));
    for (std::uint64_t seed = 1; seed < 5; ++seed) {
      Request request = request_of({1, 2, 3}, 30);
      request.sampling.seed = seed;
      request.choices = seed == 2 ? 2 : 1;
      if (seed % 2 == 0) request.first_mask = guide_mask(request.prompt);
      if (seed == 4) request.constraints.bad_tokens = {0};
      all.submit(request);
    }
    all.drain();
    all.check_texts();
    CHECK(all.texts[{2, 0}].size() == 30);
    CHECK(all.steps < 90);
    CHECK(all.batch.stats().accepted_tokens > 20);
  }
}

TEST_CASE("draft planner: texts beyond the draft model's context go on without, guided ones too") {
  Harness all(options_of(2, 40, true, 2, false, 3, 8));
  all.submit(request_of(Text(9, 2), 20));
  Request guided = request_of({1, 2}, 5);
  guided.first_mask = guide_mask(guided.prompt);
  all.submit(guided);
  all.drain();
  all.check_texts();
  CHECK(all.device.caught_up == 0);
  CHECK(all.draft_steps == 0);
  all.submit(request_of({3, 1}, 20));
  all.drain();
  all.check_texts();
  CHECK(all.draft_steps > 0);
}

TEST_CASE("draft planner: a step that waits for the draft model is asked for once more") {
  DraftPolicy policy({.tokens = 3, .context = 40});
  const Bucket plain = {2, 2}, drafted = {2, 8, 0, 3};
  for (int i = 0; i < 40; ++i) policy.measure(i % 2 == 0 ? plain : drafted, i % 2 == 0 ? 1 : 9);
  int waited = 0;
  while (!policy.wants(plain, 0.5)) ++waited;
  CHECK(waited >= 127);  // a draft model has to catch up with each of these steps
  policy.postpone(plain);
  CHECK(policy.wants(plain, 0.5));
  CHECK_FALSE(policy.wants(plain, 0.5));
}
