// The rows of sequences as the device knows them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

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

/// A number to add to the logit of a token.
struct Bias {
  std::int32_t token = 0;
  float value = 0;
};

/// What a row starts with. Every token is allowed.
struct RowStart {
  std::span<const std::int32_t> tokens;  ///< all known ones
  std::int32_t prompt_length = 0;        ///< of these; the others were generated
  std::int32_t computed = 0;             ///< tokens with keys and values in pages already
  std::int32_t followed = 0;             ///< of these, tokens of a draft model, too
  Sampling sampling{};
  std::span<const Bias> biases{};  ///< at most those of the layout
  std::int32_t adapter = -1;       ///< the slot of its adapter; -1: none
  bool is_long = false;            ///< see BatchOptions::short_length
};

/// Drafts behind the tokens of a row, all of which are known.
struct RowDrafts {
  std::int32_t length = 0;  ///< tokens of the row
  std::span<const std::int32_t> tokens{};
};

/// Takes the changes of rows, in the order of steps.
class RowStates {
 public:
  virtual ~RowStates() = default;
  /// The row has another sequence from now on. Its page table is set by set_pages().
  virtual void set_row(std::int32_t row, const RowStart& start) = 0;
  /// The page table of the row from entry `first` on.
  virtual void set_pages(std::int32_t row, std::size_t first,
                         std::span<const std::int32_t> pages) = 0;
  /// The bits of the allowed tokens, all of the layout's words; every token with none. Further
  /// masks are those behind each of the drafts, which are those of the next step.
  virtual void set_mask(std::int32_t row, std::span<const std::uint32_t> masks,
                        const RowDrafts& drafts) = 0;
  /// So many tokens of the row have keys and values of a draft model in its pages.
  virtual void set_followed(std::int32_t row, std::int32_t tokens) = 0;

 protected:
  RowStates() = default;
  RowStates(const RowStates&) = default;
  RowStates& operator=(const RowStates&) = default;
};

}  // namespace kernwright::engine
