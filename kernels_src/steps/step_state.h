// The state of running sequences on the device, and the kernels around a step of a language model.
#pragma once

#include "array/array.h"
#include "core/stream.h"

#include <cstdint>

namespace kernwright::kernels {

/// Words at the begin of a row, before its page table and its tokens.
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
  adapter,    ///< its slot; -1: none
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
  std::int32_t masks = 1;       ///< of a row, at most: of its next token, and behind each draft
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

/// What a step of `rows` rows and `tokens` tokens reads: leading parts of larger arrays. All are
/// int32 but where said. A step with drafts has as many outputs for each row, logits that are
/// wanted, as a row may compute tokens: of its last known token, and of its drafts. Else each row
/// has one.
struct StepArrays {
  Array tokens;        ///< (tokens,): behind the last one 0
  Array positions;     ///< (tokens,): in their sequences; behind the last one 0
  Array token_rows;    ///< (tokens,): the index among the rows of the step; -1 behind the last one
  Array adapters;      ///< (tokens,): the slots of their rows' adapters; -1: none
  Array long_texts;    ///< (tokens,): 1 for rows that are RowWord::long_text
  Array slots;         ///< (tokens,): 1 + their places among those of all pages; else 0
  Array query_starts;  ///< (rows + 1,): the first token of each row
  Array lengths;       ///< (rows,): tokens of the sequence with those of this step; 0: no sequence
  Array page_table;    ///< (rows, pages): only pages of the first `lengths` tokens are written
  Array last;          ///< (outputs,): the token whose logits are wanted
  Array places;        ///< (outputs,): the place of the token that is drawn in its sequence
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

/// Writes the words of `count` changes to `state` (int32). `block` (int32) has for each change its
/// first word in the state, its first word in the block, the number of words; then the words. The
/// changes do not overlap. Queued on `stream`.
void apply_changes(const Array& state, const Array& block, std::int32_t count,
                   const Stream& stream);

/// Gives each of the first `rows` rows of the plan drafts: the tokens that followed its last ones
/// before, of the longest match and of equal ones the latest. A row gets as many as its planned
/// tokens leave place behind the known ones, or none. Drafts that a row has stay. Guesses that
/// end_step() kept come first; a row without a match repeats its last token then. Queued on
/// `stream`. Throws InvalidArgument for lengths out of order or above NgramLengths::kMost, and rows
/// of 2^24 tokens.
void draft_ngram(const Array& state, const StateLayout& layout, std::int32_t rows,
                 const NgramLengths& lengths, const Stream& stream);

/// What the plan has of a row that a draft model computes the tokens of beside the step. Above 0 it
/// is the number of tokens to catch up with.
inline constexpr std::int32_t kFeeds = -1;

/// Fills the first `rows` entries of `step` for a draft model that computes one token of each row.
/// With `number` 0 that is the last known one, and the row gets as many drafts as its planned
/// tokens leave place; else draft `number`, which is the token of `sampled` (rows,) int32 and
/// becomes part of the text. Rows without such a draft, and those whose plan does not say kFeeds,
/// have a length of 0 and no page. Tokens from `vocabulary` on are read as token 0. Queued on
/// `stream`. Throws InvalidArgument as end_step() does.
///
/// A head has an entry for each known token but the last, with the token behind it. It has no
/// `number` 0: begin_catch_up() adds the entries that it lacks, the row's last logits give draft 1.
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

/// Lowers the logits (outputs, vocabulary), float32 and in place, of tokens that rows of the step
/// have already, drafts among them, before a new one is drawn. Each of the `rows` rows has as many
/// outputs. In this order: those of all known tokens are divided by the
/// repetition penalty where they are above 0 and multiplied with it elsewhere; for each generated
/// token the frequency penalty is subtracted as often as it stands there, then the presence penalty
/// once. Queued on `stream`. Throws InvalidArgument as end_step() does, and for more than 2^18
/// tokens.
void apply_penalties(const Array& state, const StateLayout& layout, const Array& logits,
                     std::int32_t rows, const Stream& stream);

/// Constrains the logits (outputs, vocabulary), float32 and in place, of rows that get a new token:
/// adds the biases of the row, then sets the logits of tokens without a bit in its mask to
/// -infinity; the outputs of drafts have masks of their own where the row has several. Queued on
/// `stream`. Throws InvalidArgument as end_step() does, and for logits of another vocabulary than
/// the layout's.
void apply_masks(const Array& state, const StateLayout& layout, const Array& logits,
                 std::int32_t rows, const Stream& stream);

/// What end_step() reports of an output without a new token.
inline constexpr std::int32_t kNoToken = -1;   ///< its row has unknown tokens, or no such draft
inline constexpr std::int32_t kNoNumber = -2;  ///< the logit of the sampled token is not finite
inline constexpr std::int32_t kNotTaken = -3;  ///< a draft before it was not the sampled token

/// Counts the tokens of the step as computed. Each of the `rows` rows whose known tokens are all
/// computed then gets its first token of `sampled` (outputs,) int32 appended. It gets the next one,
/// too, while its draft is the token before. `results` (outputs, words), int32, gets the token in
/// front and then the row of `details` (outputs, at most words - 1), if there are any. `logits`
/// (outputs, vocabulary) float32, or none, are those that were sampled from. Queued on `stream`.
/// Throws InvalidArgument for other shapes and types.
void end_step(const Array& state, const StateLayout& layout, const Array& sampled,
              const Array* logits, const Array* details, const Array& results, std::int32_t rows,
              const Stream& stream);

}  // namespace kernwright::kernels
