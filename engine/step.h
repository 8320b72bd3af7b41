// The buffers of a step: what its recorded graph reads and writes, at fixed addresses.
#pragma once

#include "core/event.h"
#include "core/stream.h"
#include "engine/rows.h"
#include "kernels_src/steps/step_state.h"
#include "memory/pinned_buffer.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>

namespace kernwright::engine {

/// One set of arrays as large as the largest step. A step of fewer rows or tokens uses their
/// leading parts. Not thread-safe.
class Step {
 public:
  /// `tokens`: of the largest step, at least a token for each row. `detail_words`: of each output,
  /// at most, beside its token. `drafts`: of a row, at most.
  Step(Rows& rows, std::int32_t tokens, std::int32_t detail_words, const Stream& stream,
       std::int32_t drafts = 0);

  std::int32_t max_tokens() const noexcept { return static_cast<std::int32_t>(all_.tokens.size()); }
  /// The arrays of a step of that size, with place for so many drafts of each row. Throws
  /// InvalidArgument for rows or tokens that are none, and where they are more than there are.
  kernels::StepArrays arrays(std::int32_t rows, std::int32_t tokens, std::int32_t drafts = 0) const;

  /// The work before begin() of a step with drafts: finds them in the texts so far.
  void draft(std::int32_t rows, const kernels::NgramLengths& lengths, const Stream& stream) const;
  /// The work before begin() of a step with drafts of a draft model: see kernels::feed_draft(),
  /// whose arrays are those of a step of `rows` rows and tokens.
  void feed_draft(std::int32_t rows, std::int32_t number, const Array* sampled,
                  std::int32_t vocabulary, const Stream& stream) const;
  /// Around the work of a draft model behind the model: see kernels::begin_catch_up().
  void begin_catch_up(std::int32_t rows, std::int32_t tokens, std::int32_t vocabulary,
                      const Stream& stream, bool extends = false) const;
  void end_catch_up(std::int32_t rows, const Stream& stream) const;
  /// The first work of a step: fills its arrays from the rows.
  void begin(std::int32_t rows, std::int32_t tokens, const Stream& stream,
             std::int32_t drafts = 0) const;
  /// Lowers the logits (outputs, vocabulary) by the penalties of their rows, before tokens are
  /// drawn.
  void penalize(const Array& logits, std::int32_t rows, const Stream& stream) const;
  /// Adds biases to the logits (outputs, vocabulary) and hides masked tokens, as their rows say.
  void mask(const Array& logits, std::int32_t rows, const Stream& stream) const;
  /// The last work of a step: appends `sampled` (outputs,) to the rows. `details`, (outputs, words)
  /// of int32, go to the host with the tokens.
  void end(const Array& sampled, std::int32_t rows, const Array* logits, const Array* details,
           const Stream& stream) const;

  /// Queues the copy of the results of a step of so many outputs to the host. The results of the
  /// step before it may still be unread, not those of earlier ones.
  void queue_results(std::int32_t outputs);
  /// Waits for the oldest results that were queued and not read. row_words() for each output: a
  /// token, or kNoToken and so on, and the details. They stay until the next call but one of
  /// queue_results().
  std::span<const std::int32_t> read_results();
  std::size_t row_words() const noexcept { return static_cast<std::size_t>(results_.shape()[1]); }
  /// Forgets unread results.
  void discard_results() noexcept { unread_ = 0; }

 private:
  static constexpr std::size_t kSlots = 2;
  struct Results {
    PinnedBuffer host;
    std::optional<Event> copied;
    std::size_t outputs = 0;
  };

  Rows& rows_;
  Stream stream_;
  kernels::StepArrays all_;
  Array results_;
  std::array<Results, kSlots> slots_;
  std::size_t next_ = 0, unread_ = 0;
};

}  // namespace kernwright::engine
