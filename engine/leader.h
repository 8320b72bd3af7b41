// A running sequence that computes the beginning of a text which waits.
#pragma once

#include "engine/schedule.h"
#include "engine/sequence.h"
#include "engine/sequence_pages.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace kernwright::engine {

struct Leader {
  std::shared_ptr<Sequence> sequence;
  /// The prefix cache has the pages that both share once so many tokens of the leader's prompt are
  /// computed.
  std::int32_t tokens = 0;
};

/// The one of `running` whose prompt has the longest common beginning with the text of `sequence`,
/// as far as it is not computed yet. `sequence` already has the pages that the prefix cache finds
/// for it. None where so few tokens are common that `sequence` does better to compute them itself:
/// fewer than kLeastCommon, and less than half of what it lacks; or where a step of kFreeTokens has
/// place for what it lacks beside the tokens of `running`.
std::optional<Leader> find_leader(const Sequence& sequence,
                                  std::span<const std::shared_ptr<Sequence>> running,
                                  const SequencePages& pages, const ScheduleOptions& steps);

/// Steps of so many tokens take longer than the read of the weights.
inline constexpr std::int32_t kLeastCommon = 256;
/// Steps of so many tokens take no longer than the read of the weights: on an H200 that holds for
/// 184 tokens with weights in bfloat16, for 158 with 8 bits.
inline constexpr std::int32_t kFreeTokens = 128;

}  // namespace kernwright::engine
