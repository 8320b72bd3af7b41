// Checks what a request says about single tokens, and makes masks of it.
#include "engine/constraints.h"

#include "base/errors.h"
#include "base/format.h"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace kernwright::engine {

namespace {

void require_known(std::int32_t token, std::int32_t vocabulary, std::string_view name) {
  if (token < 0 || token >= vocabulary)
    throw InvalidArgument(format("{} has the token {}, which is none of the vocabulary of {}", name,
                                 token, vocabulary));
}

void check_biases(const std::vector<Bias>& biases, std::int32_t vocabulary) {
  if (biases.size() > static_cast<std::size_t>(Constraints::kMostBiases))
    throw InvalidArgument(format("logit_bias is for at most {} tokens, got {}",
                                 Constraints::kMostBiases, biases.size()));
  std::vector<std::int32_t> tokens;
  for (const Bias& bias : biases) {
    require_known(bias.token, vocabulary, "logit_bias");
    if (!std::isfinite(bias.value))
      throw InvalidArgument(
          format("logit_bias of token {} is {}, which is not finite", bias.token, bias.value));
    tokens.push_back(bias.token);
  }
  std::ranges::sort(tokens);
  if (const auto twice = std::ranges::adjacent_find(tokens); twice != tokens.end())
    throw InvalidArgument(format("logit_bias has the token {} twice", *twice));
}

}  // namespace

void Constraints::prepare(std::int32_t vocabulary, std::int32_t min_tokens,
                          std::span<const std::int32_t> stop_tokens) {
  check_biases(biases, vocabulary);
  for (const std::int32_t token : bad_tokens) require_known(token, vocabulary, "bad_tokens");
  if (allowed_tokens) {
    for (const std::int32_t token : *allowed_tokens)
      require_known(token, vocabulary, "allowed_tokens");
    mask = TokenMask(vocabulary, false);
    mask.allow(*allowed_tokens);
  } else if (!bad_tokens.empty()) {
    mask = TokenMask(vocabulary, true);
  }
  if (!mask.is_empty()) mask.forbid(bad_tokens);
  if (!mask.allows_any())
    throw InvalidArgument(
        format("no token is left: {} allowed_tokens without {} bad_tokens",
               allowed_tokens ? allowed_tokens->size() : static_cast<std::size_t>(vocabulary),
               bad_tokens.size()));
  if (min_tokens < 1 || stop_tokens.empty()) return;
  early_mask = mask.is_empty() ? TokenMask(vocabulary, true) : mask;
  early_mask.forbid(stop_tokens);
  if (!early_mask.allows_any())
    throw InvalidArgument(
        format("no token is left for the first {} tokens (min_tokens): each allowed one ends the "
               "text",
               min_tokens));
}

void Constraints::guide(TokenMask& first_mask) const {
  if (!early_mask.is_empty())
    throw InvalidArgument("min_tokens and masks of each token exclude each other");
  first_mask.keep(mask);
  if (!first_mask.allows_any())
    throw InvalidArgument(
        "no token is left of those that may come first: bad_tokens or allowed_tokens forbid them");
}

}  // namespace kernwright::engine
