// What a request says about single tokens: biases of their logits, tokens that it never gets.
#pragma once

#include "engine/mask.h"
#include "engine/row_states.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace kernwright::engine {

struct Constraints {
  static constexpr std::int32_t kMostBiases = 300;

  std::vector<Bias> biases{};                                 ///< of different tokens
  std::optional<std::vector<std::int32_t>> allowed_tokens{};  ///< none: all
  std::vector<std::int32_t> bad_tokens{};                     ///< never sampled

  TokenMask mask{};        ///< of every token; empty where all are allowed
  TokenMask early_mask{};  ///< of the first min_tokens; empty where it is that of every token

  /// Makes the masks of a request with these `stop_tokens`, none of which is allowed among the
  /// first `min_tokens`. Throws InvalidArgument for tokens outside of the vocabulary, biases that
  /// are too many, twice for one token or not finite, and where a mask leaves no token.
  void prepare(std::int32_t vocabulary, std::int32_t min_tokens,
               std::span<const std::int32_t> stop_tokens);
  /// Keeps the allowed tokens of a guide's first mask. Throws InvalidArgument where none is left,
  /// and for min_tokens: a guide decides where a text ends.
  void guide(TokenMask& first_mask) const;
};

}  // namespace kernwright::engine
