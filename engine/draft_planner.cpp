// Adds drafts to steps where they pay, and lets a draft model catch up.
#include "engine/draft_planner.h"

#include "kernels_src/steps/step_state.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace kernwright::engine {

namespace {

/// Of a step with drafts. Large batches have enough to compute without them, and more logits would
/// take more memory than those of a large batch do.
constexpr std::int32_t kMostDraftTokens = 256;

/// Drafts of a sequence, once a draft model has caught up with it.
std::int32_t most_drafts(const Sequence& sequence, const DraftOptions& drafts) {
  const std::int32_t most = std::min(drafts.tokens, sequence.most_drafts());
  return drafts.has_model() && !sequence.is_guided()
             ? std::min(most, drafts.context - sequence.length)
             : most;
}

bool is_behind(const Sequence& sequence, const DraftOptions& drafts) {
  return drafts.has_model() && !sequence.is_guided() && sequence.followed < sequence.computed;
}

}  // namespace

void add_drafts(StepPlan& plan, const DraftOptions& drafts, const ScheduleOptions& options) {
  Bucket& bucket = plan.bucket;
  const std::int64_t tokens = std::int64_t{bucket.rows} * (1 + drafts.tokens);
  if (options.deterministic || !bucket.decodes() ||
      tokens > std::min(options.max_tokens, kMostDraftTokens))
    return;
  std::int32_t added = 0;
  for (StepPart& part : plan.parts) {
    const Sequence& sequence = *part.sequence;
    if (is_behind(sequence, drafts)) continue;
    part.drafts = std::max(most_drafts(sequence, drafts), 0);
    part.count += part.drafts;
    added += part.drafts;
    if (drafts.has_model() && !sequence.is_guided() && sequence.length <= drafts.context)
      part.follows = kernels::kFeeds;
  }
  if (added == 0) return;
  plan.tokens += added;
  bucket.drafts = drafts.tokens;
  bucket.tokens = static_cast<std::int32_t>(tokens);
}

DraftPlanner::Rows DraftPlanner::count_rows(const StepPlan& plan) {
  const DraftOptions& drafts = policy_.options();
  Rows rows;
  for (const StepPart& part : plan.parts) {
    Sequence& sequence = *part.sequence;
    float& accepted = sequence.expected_drafts;
    if (accepted < 0) accepted = policy_.expectation();
    const std::int32_t most = most_drafts(sequence, drafts);
    if (most < 1) continue;
    ++(is_behind(sequence, drafts) ? rows.behind : rows.ready);
    rows.accepted += std::min(static_cast<double>(accepted), static_cast<double>(most));
  }
  return rows;
}

void DraftPlanner::plan(StepPlan& plan) {
  const DraftOptions& drafts = policy_.options();
  if (drafts.tokens == 0 || plan.parts.empty() || !plan.bucket.decodes() || schedule_.deterministic)
    return;
  StepPlan drafted = plan;
  add_drafts(drafted, drafts, schedule_);
  const Rows rows = count_rows(plan);
  const std::int64_t tokens = std::int64_t{plan.bucket.rows} * (1 + drafts.tokens);
  if (rows.ready + rows.behind == 0 || tokens > std::min(schedule_.max_tokens, kMostDraftTokens) ||
      pages_.missing(drafted) > 0)
    return;
  const Bucket plain = plan.bucket;
  if (!policy_.wants(plain, rows.accepted / static_cast<double>(plan.parts.size()))) return;
  // New rows do not keep the others from their drafts.
  const bool enough = rows.ready >= rows.behind && drafted.bucket.drafts > 0;
  if (enough) plan = std::move(drafted);
  if (rows.behind > 0) catch_up(plan);
  if (!enough) policy_.postpone(plain);
}

/// The draft model computes behind the step: tokens of the step count, too.
void DraftPlanner::catch_up(StepPlan& plan) {
  const DraftOptions& drafts = policy_.options();
  const std::int32_t most = std::min(schedule_.max_tokens, kMostCatchUp);
  // Behind a step with drafts a head lacks the entries of that step.
  const std::int32_t lacking = drafts.is_head ? 1 + drafts.tokens : 0;
  std::int32_t total = 0;
  for (StepPart& part : plan.parts) {
    Sequence& sequence = *part.sequence;
    if (total == most || !is_behind(sequence, drafts) || most_drafts(sequence, drafts) < 1)
      continue;
    // Others with the same pages may have computed them meanwhile.
    if (const std::int32_t found = pages_.followed(sequence); found > sequence.followed) {
      sequence.followed = found;
      rows_.set_followed(sequence.row, found);
    }
    const std::int32_t behind = sequence.computed + part.count - sequence.followed + lacking;
    part.follows = std::min(behind, most - total);
    total += part.follows;
  }
  plan.catch_up = buckets_.mixed(static_cast<std::int32_t>(plan.parts.size()), total);
  plan.catch_up.features = Features::catch_up;
}

void DraftPlanner::commit(const StepPart& part) {
  Sequence& sequence = *part.sequence;
  if (part.follows == 0) return;
  if (part.follows == kernels::kFeeds) {
    sequence.followed = sequence.computed;
    return;
  }
  sequence.followed = std::min(sequence.followed + part.follows, sequence.computed);
  pages_.keep_followed(sequence);
}

void DraftPlanner::observe(const StepPart& part, std::int32_t tokens) {
  policy_.observe(part.sequence->expected_drafts, tokens - 1);
}

}  // namespace kernwright::engine
