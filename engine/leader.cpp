// Compares the prompts that running sequences have yet to compute with a text.
#include "engine/leader.h"

#include <algorithm>

namespace kernwright::engine {

std::optional<Leader> find_leader(const Sequence& sequence,
                                  std::span<const std::shared_ptr<Sequence>> running,
                                  const SequencePages& pages, const ScheduleOptions& steps) {
  // A deterministic engine computes one prompt in a step: no step has place for another one.
  const std::int32_t free = steps.deterministic ? 0 : std::min(kFreeTokens, steps.max_tokens);
  std::int32_t due = sequence.length - sequence.computed;
  for (const auto& each : running) due += each->due();
  if (due <= free) return std::nullopt;
  Leader found;
  for (const auto& each : running) {
    if (each->computed >= each->prompt_length() || each->salt() != sequence.salt()) continue;
    const auto& prompt = each->source->prompt;
    const auto common = static_cast<std::int32_t>(
        std::ranges::mismatch(prompt, sequence.tokens).in1 - prompt.begin());
    const std::int32_t tokens =
        pages.shared_pages(std::min(common + 1, sequence.length)) * pages.options().page_size;
    if (tokens > std::max(each->computed, found.tokens)) found = {each, tokens};
  }
  const std::int32_t saved = found.tokens - sequence.computed;
  const std::int32_t half = (sequence.length - sequence.computed + 1) / 2;
  if (saved <= 0 || saved < std::min(kLeastCommon, half)) return std::nullopt;
  return found;
}

}  // namespace kernwright::engine
