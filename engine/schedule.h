// The plan of a step: which sequences compute how many tokens, and the size of the recorded step.
#pragma once

#include "engine/sequence.h"

#include <compare>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace kernwright::engine {

/// The size of a recorded step. With as many tokens as rows each row has one token: a step of
/// decoding. Else rows have any number of tokens. `features`: of all its rows together. `drafts`:
/// of each row, at most; with them a row has a token of its own and its drafts.
struct Bucket {
  std::int32_t rows = 0, tokens = 0;
  std::uint32_t features = 0;
  std::int32_t drafts = 0;

  bool decodes() const noexcept { return tokens == rows * (1 + drafts); }
  std::int32_t outputs() const noexcept { return rows * (1 + drafts); }
  auto operator<=>(const Bucket&) const = default;
};

/// Sizes of recorded steps, ascending.
struct Buckets {
  std::vector<std::int32_t> decode_rows;  ///< of steps of decoding
  std::vector<std::int32_t> mixed_rows, mixed_tokens;

  /// Few enough that each is soon recorded, near enough that at most an eighth of a long step is
  /// padding. Throws InvalidArgument unless `max_tokens` is above `max_rows`.
  static Buckets of_limits(std::int32_t max_rows, std::int32_t max_tokens);

  Bucket decoding(std::int32_t rows) const;
  Bucket mixed(std::int32_t rows, std::int32_t tokens) const;
};

/// The part of one sequence in a step.
struct StepPart {
  std::shared_ptr<Sequence> sequence;
  std::int32_t count = 0;   ///< tokens to compute
  bool yields = false;      ///< whether its known tokens are all computed then: it gets a new one
  std::int32_t drafts = 0;  ///< of the tokens, at most: the device finds them
  /// Work of a draft model: kernels::kFeeds, or a number of tokens behind the step.
  std::int32_t follows = 0;
};

struct StepPlan {
  std::vector<StepPart> parts;
  std::int32_t tokens = 0;
  Bucket bucket{};
  Bucket catch_up{};  ///< of the draft model behind the step; without rows there is none
};

struct ScheduleOptions {
  std::int32_t max_tokens = 0;  ///< of a step
  /// Every token is computed by the same kernels in the same order, whatever else runs: all steps
  /// of generation have the size of the largest, and prompts run alone, cut at multiples of
  /// max_tokens.
  bool deterministic = false;
  /// The kernels of a deterministic engine sum up a row in the same order in a step of any size:
  /// steps of generation have the rows that they need.
  bool any_rows = false;
};

/// Plans the next step of the running sequences, the earliest admitted first: one token of each
/// in generation, then as many of prompts as `max_tokens` leaves. Changes nothing.
StepPlan plan_step(std::span<const std::shared_ptr<Sequence>> running,
                   const ScheduleOptions& options, const Buckets& buckets);

}  // namespace kernwright::engine
