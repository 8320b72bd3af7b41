// The rows of running sequences on the device, and changes on the way there.
#pragma once

#include "core/event.h"
#include "core/stream.h"
#include "kernels_src/steps/step_state.h"
#include "memory/pinned_buffer.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace kernwright::engine {

/// How the tokens of a sequence are drawn, as kernels::SamplingOptions has it. Penalties of
/// presence and frequency count generated tokens, that of repetition all tokens.
struct Sampling {
  float temperature = 0.0f;  ///< 0: the token of the highest logit
  std::int32_t top_k = 0;
  float top_p = 1.0f;
  float min_p = 0.0f;
  float repetition_penalty = 1.0f;
  float presence_penalty = 0.0f;
  float frequency_penalty = 0.0f;
  std::uint64_t seed = 0;
};

/// A number that is added to the logit of a token.
struct Bias {
  std::int32_t token = 0;
  float value = 0;
};

/// The state of all rows in one array at a fixed address. Changes are collected on the host;
/// flush() sends them with one copy and one kernel. Not thread-safe.
class Rows {
 public:
  /// All of it is used on `stream` alone. Throws InvalidArgument for a layout without rows, tokens
  /// or pages, or of 2^31 words and more.
  Rows(Device& device, const kernels::StateLayout& layout, const Stream& stream);

  const kernels::StateLayout& layout() const noexcept { return layout_; }
  const Array& state() const noexcept { return state_; }

  /// The row has a sequence with these tokens, of which `computed` are in pages already, and every
  /// token is allowed. Its page table is set by set_pages(). `biases`: at most those of the layout.
  void set_row(std::int32_t row, std::span<const std::int32_t> tokens, std::int32_t computed,
               const Sampling& sampling, std::span<const Bias> biases = {});
  /// The bits of the tokens that the row may get, all of the layout's words; every token with none.
  void set_mask(std::int32_t row, std::span<const std::uint32_t> mask);
  /// The page table of the row from entry `first` on.
  void set_pages(std::int32_t row, std::size_t first, std::span<const std::int32_t> pages);
  /// The rows of the next step and the number of tokens of each. Behind them there is none, up to
  /// `padded` rows. Nothing is sent where it is the plan of the step before.
  void set_plan(std::span<const std::int32_t> active, std::span<const std::int32_t> counts,
                std::size_t padded);

  std::size_t changed_words() const noexcept { return words_.size(); }
  /// Queues all changes.
  void flush();
  /// Forgets changes that were not sent, and what the device knows of the plan: after a failure.
  void discard() noexcept;

 private:
  static constexpr std::size_t kSlots = 4;
  static constexpr std::size_t kChangeWords = 1024;  ///< of one change; longer ones are cut
  struct Change {
    std::int64_t to = 0;   ///< in the state
    std::size_t from = 0;  ///< in words_
    std::size_t count = 0;
  };
  /// A block of changes on its way: the copy may still read it.
  struct Slot {
    PinnedBuffer host;
    Array device;
    std::optional<Event> copied;
  };

  void begin_row(std::int32_t row);
  void add(std::int64_t to, std::span<const std::int32_t> words);
  void clear() noexcept;
  std::size_t send(std::size_t first);

  kernels::StateLayout layout_;
  Stream stream_;
  Array state_;
  std::array<Slot, kSlots> slots_;
  std::size_t next_slot_ = 0;
  std::vector<Change> changes_;
  std::vector<std::int32_t> words_;
  std::vector<std::int32_t> set_rows_;         ///< by changes that were not sent
  std::vector<std::int32_t> active_, counts_;  ///< on the device after the changes
  bool plan_known_ = true;
};

}  // namespace kernwright::engine
