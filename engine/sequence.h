// A request for text, and the sequences that it becomes.
#pragma once

#include "engine/constraints.h"
#include "engine/row_states.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kernwright::engine {

/// What a step does beside computing logits; a recorded step has a set of them. Without `random`
/// the token of the highest logit is taken.
struct Features {
  static constexpr std::uint32_t random = 1;     ///< tokens are drawn
  static constexpr std::uint32_t penalties = 2;  ///< logits of known tokens are lowered
  static constexpr std::uint32_t details = 4;    ///< such as log-probabilities
  static constexpr std::uint32_t masks = 8;      ///< logits have biases, tokens are masked
  static constexpr std::uint32_t adapters = 16;  ///< products have parts of adapters
  /// No step of the model: a draft model computes tokens behind it.
  static constexpr std::uint32_t catch_up = 32;
};

/// What to generate.
struct Request {
  std::vector<std::int32_t> prompt;
  std::int32_t max_tokens = 1;
  /// None of the first so many tokens is a stop token.
  std::int32_t min_tokens = 0;
  std::vector<std::int32_t> stop_tokens;  ///< end the sequence, and are reported as its last token
  std::int32_t choices = 1;  ///< sequences of the same prompt, with other random numbers
  Sampling sampling{};
  Constraints constraints{};
  /// The mask of the first token. Where it is not empty, the sequence is guided: each further token
  /// waits for a mask from outside.
  TokenMask first_mask{};
  bool wants_details = false;  ///< with each token
  std::int32_t adapter = -1;   ///< the slot of its adapter; -1: none
  /// Texts share pages with those of the same salt alone: an adapter has one of its own.
  std::uint64_t salt = 0;
  std::int32_t priority = 0;  ///< higher ones go first, and may preempt lower ones
  std::string user{};         ///< users have equal shares of what waits
  std::optional<std::chrono::steady_clock::time_point> deadline{};

  std::uint32_t features() const noexcept {
    const bool penalized = sampling.repetition_penalty != 1 || sampling.presence_penalty != 0 ||
                           sampling.frequency_penalty != 0;
    return (sampling.temperature > 0 ? Features::random : 0) |
           (penalized ? Features::penalties : 0) | (wants_details ? Features::details : 0) |
           (constraints.biases.empty() ? 0 : Features::masks);
  }
};

/// Why a sequence ended.
enum class Finish : std::uint8_t {
  none,    ///< it did not
  stop,    ///< a stop token
  length,  ///< max_tokens, or the capacity of a row
  cancelled,
  timeout,     ///< its deadline is over
  bad_logits,  ///< the logits were not finite
  bad_guide,   ///< what gives its masks failed, or left no token
  failed,      ///< with the error of a step, thrown by advance()
};

/// What became of a request with sequences that ended so.
enum class Outcome : std::uint8_t { finished, aborted, failed };

constexpr Outcome outcome_of(Finish finish) noexcept {
  if (finish == Finish::bad_logits || finish == Finish::bad_guide || finish == Finish::failed)
    return Outcome::failed;
  if (finish == Finish::cancelled || finish == Finish::timeout) return Outcome::aborted;
  return Outcome::finished;
}

/// A token of a sequence, its end, or both.
struct TokenEvent {
  std::uint64_t request = 0;
  std::int32_t choice = 0;
  std::int32_t token = -1;  ///< -1: none, only an end
  Finish finish = Finish::none;
  std::vector<std::int32_t> details{};     ///< where the request wants them
  std::int32_t shared = 0;                 ///< tokens of its prompt found in the prefix cache
  std::int32_t drafted = 0, accepted = 0;  ///< drafts of the sequence so far
  std::string error{};                     ///< why it failed
};

/// What one user takes of an engine.
struct Account {
  std::int64_t served = 0;  ///< tokens computed
  std::int32_t active = 0;  ///< sequences
};

/// In the salt of pages of long texts, see BatchOptions::short_length.
inline constexpr std::uint64_t kLongSalt = std::uint64_t{1} << 63;

struct Sequence;

/// A sequence without a row, until another one has computed so many tokens of its own prompt.
struct PrefixWaiter {
  std::shared_ptr<Sequence> sequence;
  std::int32_t tokens = 0;
};

/// One running or waiting text. Numbers of tokens are those after all steps planned so far: the
/// host knows how many tokens there are before it knows them. While a step with drafts is on its
/// way, they are the most that there may be.
struct Sequence {
  std::uint64_t request = 0;
  std::int32_t choice = 0;
  std::shared_ptr<const Request> source;
  std::shared_ptr<Account> account;
  std::uint64_t seed = 0;
  std::int32_t limit = 0;         ///< tokens to generate, at most
  std::uint64_t admitted = 0;     ///< higher for those admitted later
  bool preempted = false;         ///< it had a row before
  bool is_long = false;           ///< it was admitted with more tokens than `short_length`
  std::int32_t short_length = 0;  ///< see BatchOptions

  std::vector<std::int32_t> tokens;  ///< whose values are known: the prompt, and what was read
  std::int32_t row = -1;             ///< -1: waiting, or finished
  std::vector<std::int32_t> pages;
  std::size_t sent_pages = 0;            ///< of the row's page table on the device
  std::int32_t length = 0;               ///< tokens known
  std::int32_t computed = 0;             ///< tokens with keys and values in pages
  std::int32_t followed = 0;             ///< of these, tokens in pages of a draft model
  std::int32_t planned = 0;              ///< tokens that planned steps generate
  std::int32_t produced = 0;             ///< tokens whose values were read
  const TokenMask* sent_mask = nullptr;  ///< that the row on the device has
  TokenMask guide_mask{};                ///< of the next token to plan, of a guided sequence
  std::vector<std::int32_t> guesses{};   ///< of its next tokens
  std::vector<TokenMask> guess_masks{};  ///< behind each of these
  bool waits_for_mask = false;           ///< it is left out of plans
  bool finished = false;
  bool had_turn = false;       ///< it was the first of the queue, and waited for a beginning
  bool prompt_cached = false;  ///< the full pages of its prompt are in the prefix cache
  std::int32_t shared = 0;     ///< tokens of its prompt found there when it was admitted
  std::int32_t drafted = 0, accepted = 0;
  float expected_drafts = -1;  ///< that a step accepts; below 0: nobody knows
  /// Other choices of the request, until they get the pages of this one.
  std::vector<std::shared_ptr<Sequence>> followers;
  /// Sequences of other requests that begin alike: they find its pages in the prefix cache.
  std::vector<PrefixWaiter> prefix_waiters{};

  std::int32_t prompt_length() const noexcept {
    return static_cast<std::int32_t>(source->prompt.size());
  }
  /// Tokens that the next steps have to compute; 0 once all are planned, or until its mask comes.
  std::int32_t due() const noexcept {
    return planned == limit || waits_for_mask ? 0 : length - computed;
  }
  /// Whether each of its tokens waits for a mask from outside.
  bool is_guided() const noexcept { return !source->first_mask.is_empty(); }
  /// Drafts that its next step may have. Those of a guided sequence come with the masks behind
  /// them, else the mask must be one for all of them.
  std::int32_t most_drafts() const noexcept {
    const bool changes = planned < source->min_tokens && !source->constraints.early_mask.is_empty();
    const std::int32_t most = changes ? 0 : limit - planned - 1;
    // A text outgrows the short length by a token that is certain to come.
    const std::int32_t left = short_length == 0 || is_long
                                  ? most
                                  : std::min(most, std::max(short_length - length - 1, 0));
    return is_guided() ? std::min(left, static_cast<std::int32_t>(guesses.size())) : left;
  }
  /// Whether its next step has a token that needs other rotations than those in its pages.
  bool outgrows() const noexcept {
    return short_length > 0 && !is_long && length > short_length && planned < limit;
  }
  /// The salt of its pages: those of long texts are no others' beginning.
  std::uint64_t salt() const noexcept { return source->salt | (is_long ? kLongSalt : 0); }
  /// The mask of the next token to plan; none where every token is allowed.
  const TokenMask* next_mask() const noexcept {
    if (!guide_mask.is_empty()) return &guide_mask;
    const Constraints& each = source->constraints;
    if (planned < source->min_tokens && !each.early_mask.is_empty()) return &each.early_mask;
    return each.mask.is_empty() ? nullptr : &each.mask;
  }
  /// The features of a step that gives this sequence a token.
  std::uint32_t features() const noexcept {
    return source->features() | (next_mask() != nullptr ? Features::masks : 0);
  }
  /// Tokens in pages at the longest: the last token's keys and values are never needed.
  std::int32_t most_computed() const noexcept { return prompt_length() + limit - 1; }
};

}  // namespace kernwright::engine
