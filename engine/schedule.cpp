// One budget of tokens for all sequences, and the smallest recorded step that holds a plan.
#include "engine/schedule.h"

#include "base/errors.h"
#include "base/format.h"

#include <algorithm>
#include <bit>

namespace kernwright::engine {

namespace {

/// The weights take the time of a step of so few tokens: more of them cost hardly more.
constexpr std::int32_t kShortStep = 64;

std::int32_t smallest(const std::vector<std::int32_t>& sizes, std::int32_t least) {
  return *std::ranges::lower_bound(sizes, least);
}

/// From `first` to `last`, each followed by `next(size)`.
template <typename Next>
std::vector<std::int32_t> sizes_up_to(std::int32_t first, std::int32_t last, const Next& next) {
  std::vector<std::int32_t> sizes;
  for (std::int32_t size = first; size < last; size = next(size)) sizes.push_back(size);
  sizes.push_back(last);
  return sizes;
}

std::int32_t eighth(std::int32_t size, std::int32_t least) {
  const auto power = static_cast<std::int32_t>(std::bit_floor(static_cast<std::uint32_t>(size)));
  return std::max(power / 8, least);
}

}  // namespace

Buckets Buckets::of_limits(std::int32_t max_rows, std::int32_t max_tokens) {
  if (max_tokens <= max_rows)
    throw InvalidArgument(
        format("a step has more tokens than rows, so that prompts go on beside "
               "rows that generate: {} tokens are not enough for {} rows",
               max_tokens, max_rows));
  Buckets made;
  made.decode_rows = sizes_up_to(
      1, max_rows, [](std::int32_t size) { return size < 8 ? 2 * size : size + eighth(size, 8); });
  made.mixed_rows = sizes_up_to(1, max_rows, [](std::int32_t size) { return 4 * size; });
  made.mixed_tokens = sizes_up_to(16, max_tokens, [](std::int32_t size) {
    return size < kShortStep ? 2 * size : size + eighth(size, kShortStep);
  });
  return made;
}

Bucket Buckets::decoding(std::int32_t rows) const {
  const std::int32_t padded = smallest(decode_rows, rows);
  return {padded, padded};
}

Bucket Buckets::mixed(std::int32_t rows, std::int32_t tokens) const {
  const std::int32_t padded = smallest(mixed_rows, rows);
  return {padded, smallest(mixed_tokens, std::max(tokens, padded + 1))};
}

namespace {

/// A part of the earliest prompt alone, or all rows in generation.
StepPlan deterministic_plan(std::span<const std::shared_ptr<Sequence>> running,
                            const ScheduleOptions& options, const Buckets& buckets) {
  StepPlan plan;
  const auto add = [&](const std::shared_ptr<Sequence>& sequence, std::int32_t count) {
    plan.tokens += count;
    plan.parts.push_back({sequence, count, count == sequence->due()});
  };
  const auto prompt = std::ranges::find_if(running, [](const auto& each) {
    return each->computed < each->prompt_length() && each->due() > 0;
  });
  if (prompt != running.end()) {
    const std::int32_t whole = options.max_tokens - (*prompt)->computed % options.max_tokens;
    add(*prompt, std::min((*prompt)->due(), whole));
    plan.bucket = {1, buckets.mixed_tokens.back()};
    return plan;
  }
  for (const auto& sequence : running) {
    if (sequence->due() > 0) add(sequence, 1);
  }
  plan.bucket = buckets.decoding(options.any_rows ? plan.tokens : buckets.decode_rows.back());
  return plan;
}

/// One token of each row in generation; prompts share what these leave.
StepPlan shared_plan(std::span<const std::shared_ptr<Sequence>> running, std::int32_t max_tokens,
                     const Buckets& buckets) {
  StepPlan plan;
  std::int32_t left = max_tokens;
  for (const auto& sequence : running) left -= sequence->due() == 1 ? 1 : 0;
  for (const auto& sequence : running) {
    const std::int32_t due = sequence->due();
    const std::int32_t count = due <= 1 ? due : std::min(due, left);
    if (count == 0) continue;
    if (due > 1) left -= count;
    plan.tokens += count;
    plan.parts.push_back({sequence, count, count == due});
  }
  if (plan.parts.empty()) return plan;
  const auto rows = static_cast<std::int32_t>(plan.parts.size());
  plan.bucket = plan.tokens == rows ? buckets.decoding(rows) : buckets.mixed(rows, plan.tokens);
  return plan;
}

}  // namespace

StepPlan plan_step(std::span<const std::shared_ptr<Sequence>> running,
                   const ScheduleOptions& options, const Buckets& buckets) {
  StepPlan plan = options.deterministic ? deterministic_plan(running, options, buckets)
                                        : shared_plan(running, options.max_tokens, buckets);
  for (const StepPart& part : plan.parts) {
    if (part.yields) plan.bucket.features |= part.sequence->features();
    if (part.sequence->source->adapter >= 0) plan.bucket.features |= Features::adapters;
  }
  return plan;
}

}  // namespace kernwright::engine
