// The state of running sequences on the device, and the kernels around a step of a language model.
#pragma once

#include "array/array.h"
#include "core/stream.h"

#include <cstdint>

namespace kernwright::kernels {

/// Words at the begin of a row, in front of the page table and the tokens.
enum class RowWord : std::int32_t {
  length,    ///< tokens known
  computed,  ///< tokens whose keys and values are in pages
  temperature,
  top_k,
  top_p,
  min_p,
  repetition_penalty,
  presence_penalty,
  frequency_penalty,
  prompt_length,
  seed_low,
  seed_high,
  biased,     ///< tokens with a bias
  masked,     ///< masks of the row that count; the last one is that of all further outputs
  adapter,    ///< the slot; -1: none
  drafts,     ///< tokens behind the known ones that the step computes, too
  followed,   ///< tokens whose keys and values a draft model has, too; of a head, entries
  long_text,  ///< 1: the text is past the length of other rotary positions
  count,
};

/// Where everything is in one array of int32 words: the plan of a step (the rows that take part,
/// how many tokens of each, and what a draft model does for it), then a block for each row.
struct StateLayout {
  std::int32_t max_rows = 0;
  std::int32_t capacity = 0;  ///< tokens of a row
  std::int32_t page_size = 0;
  std::int32_t vocabulary = 0;  ///< tokens with a bit in the mask of a row
  std::int32_t biases = 0;      ///< tokens of a row with a bias, at most
  std::int32_t masks = 1;       ///< masks of a row, at most: for the next token and each draft
  bool has_head = false;        ///< what writes drafts is a head of the model: see feed_draft()
  bool keeps_guesses = false;   ///< end_step() keeps outputs behind a wrong draft as guesses

  std::int64_t pages() const noexcept { return (capacity + page_size - 1) / page_size; }
  std::int64_t pages_at() const noexcept { return static_cast<std::int64_t>(RowWord::count); }
  std::int64_t tokens_at() const noexcept { return pages_at() + pages(); }
  std::int64_t biases_at() const noexcept { return tokens_at() + capacity; }
  std::int64_t mask_at() const noexcept { return biases_at() + 2 * std::int64_t{biases}; }
  std::int64_t mask_words() const noexcept { return (std::int64_t{vocabulary} + 31) / 32; }
  std::int64_t row_words() const noexcept { return mask_at() + masks * mask_words(); }
  std::int64_t active_at() const noexcept { return 0; }
  std::int64_t count_at() const noexcept { return max_rows; }
  std::int64_t follow_at() const noexcept { return 2 * std::int64_t{max_rows}; }
  std::int64_t row_at(std::int64_t row) const noexcept {
    return 3 * std::int64_t{max_rows} + row * row_words();
  }
  std::int64_t words() const noexcept { return row_at(max_rows); }
};

/// Input of a step of `rows` rows and `tokens` tokens: leading parts of larger arrays, int32 unless
/// stated. A step with drafts has several outputs (rows of logits) for each row: one for the last
/// known token and one for each possible draft. Without drafts a row has one output.
struct StepArrays {
  Array tokens;        ///< (tokens,): behind the last one 0
  Array positions;     ///< (tokens,): in their sequences; behind the last one 0
  Array token_rows;    ///< (tokens,): the index among the rows of the step; -1 behind the last one
  Array adapters;      ///< (tokens,): the slots of their rows' adapters; -1: none
  Array long_texts;    ///< (tokens,): 1 for rows that are RowWord::long_text
  Array slots;         ///< (tokens,): 1 + the slot among all pages; 0: none
  Array query_starts;  ///< (rows + 1,): the first token of each row
  Array lengths;       ///< (rows,): tokens after this step; 0: no sequence
  Array page_table;    ///< (rows, pages): only pages of the first `lengths` tokens are written
  Array last;          ///< (outputs,): the token whose logits are wanted
  Array places;        ///< (outputs,): the position of the drawn token
  Array temperature, top_p, min_p;                                ///< (outputs,) float32
  Array repetition_penalty, presence_penalty, frequency_penalty;  ///< (outputs,) float32
  Array top_k;                                                    ///< (outputs,)
  Array seeds;                                                    ///< (outputs,) uint64
};

/// The lengths of what draft_ngram() looks for.
struct NgramLengths {
  static constexpr std::int32_t kMost = 64;
  std::int32_t least = 1, most = 1;
};

/// Writes the words of `count` changes to `state` (int32). `block` (int32) has three words for each
/// change: the first word in the state, the first word in the block, the number of words; then the
/// words. The changes do not overlap. Queued on `stream`.
void apply_changes(const Array& state, const Array& block, std::int32_t count,
                   const Stream& stream);

/// Drafts for each of the first `rows` rows of the plan: the tokens that followed the last tokens
/// earlier in the text, by the longest match; of equally long matches the latest. The planned
/// tokens of a row, less the known ones, limit the number of drafts. Earlier drafts of a row stay.
/// Guesses kept by end_step() come first; then a row without a match repeats its last token. Queued
/// on `stream`. Throws InvalidArgument for lengths out of order or above NgramLengths::kMost, and
/// for rows of 2^24 tokens.
void draft_ngram(const Array& state, const StateLayout& layout, std::int32_t rows,
                 const NgramLengths& lengths, const Stream& stream);

/// What the plan has of a row that a draft model computes the tokens of beside the step. Above 0 it
/// is the number of tokens to catch up with.
inline constexpr std::int32_t kFeeds = -1;

/// Fills the first `rows` entries of `step` for a draft model that computes one token of each row.
/// `number` 0 is the last known token, and the planned tokens limit the drafts of the row. Any
/// higher number is a draft: the token of `sampled` (rows,) int32, which becomes part of the text.
/// Rows without this draft, and rows whose plan does not say kFeeds, have a length of 0 and no
/// page. Tokens from `vocabulary` on are read as token 0. Queued on `stream`. Throws
/// InvalidArgument as end_step() does.
///
/// A draft head has an entry for each known token but the last, together with the next token. A
/// head has no `number` 0: begin_catch_up() adds the missing entries, and the row's last logits
/// give draft 1.
void feed_draft(const Array& state, const StateLayout& layout, const StepArrays& step,
                std::int32_t number, const Array* sampled, std::int32_t vocabulary,
                const Stream& stream);

/// begin_step() of a draft model for the computed tokens whose keys and values it does not have,
/// from the first one on and as many as the plan says. end_catch_up() then counts them. `extends`:
/// of a head that writes drafts next for rows whose plan says kFeeds. Each has the entries that
/// it lacks, at least the last one again and as many as there are tokens for each row.
void begin_catch_up(const Array& state, const StateLayout& layout, const StepArrays& step,
                    std::int32_t vocabulary, bool extends, const Stream& stream);
void end_catch_up(const Array& state, const StateLayout& layout, std::int32_t rows,
                  const Stream& stream);

/// Fills `step` from the plan and the rows. Rows behind the planned ones have a length of 0 and no
/// page. Queued on `stream`. Throws InvalidArgument for fewer tokens than rows, or more rows than
/// the state has.
void begin_step(const Array& state, const StateLayout& layout, const StepArrays& step,
                const Stream& stream);

/// Lowers the logits (outputs, vocabulary), float32 and in place, of tokens that occur in a row of
/// the step, drafts included, before the draw of a new token. Each of the `rows` rows has an equal
/// number of outputs. First, the logits of all known tokens are divided by the repetition penalty
/// where they are above 0 and multiplied with it elsewhere; then the frequency penalty is
/// subtracted for each occurrence of a generated token, and the presence penalty once. Queued on
/// `stream`. Throws InvalidArgument as end_step() does, and for more than 2^18 tokens.
void apply_penalties(const Array& state, const StateLayout& layout, const Array& logits,
                     std::int32_t rows, const Stream& stream);

/// Constrains the logits (outputs, vocabulary), float32 and in place, of rows that get a new token:
/// adds the biases of the row, then sets the logits of tokens without a bit in the mask to
/// -infinity; each output of a draft has a mask where the row has several masks. Queued on
/// `stream`. Throws InvalidArgument as end_step() does, and for logits of another vocabulary than
/// the layout's.
void apply_masks(const Array& state, const StateLayout& layout, const Array& logits,
                 std::int32_t rows, const Stream& stream);

/// What end_step() reports of an output without a new token.
inline constexpr std::int32_t kNoToken = -1;   ///< unknown tokens, or no such draft
inline constexpr std::int32_t kNoNumber = -2;  ///< the logit of the sampled token is not finite
inline constexpr std::int32_t kNotTaken = -3;  ///< a draft before it was not the sampled token

/// Counts the tokens of the step as computed. Each of the `rows` rows whose known tokens are all
/// computed then appends the first token of `sampled` (outputs,) int32, and each next token while
/// the previous token equals the draft. `results` (outputs, words), int32, gets the token and then
/// the row of `details` (outputs, at most words - 1), if given. `logits` (outputs, vocabulary)
/// float32 are the sampled logits, or none. Queued on `stream`. Throws InvalidArgument for wrong
/// shapes and types.
void end_step(const Array& state, const StateLayout& layout, const Array& sampled,
              const Array* logits, const Array* details, const Array& results, std::int32_t rows,
              const Stream& stream);

}  // namespace kernwright::kernels
