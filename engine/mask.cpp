// Sets, clears and joins bits of tokens.
#include "engine/mask.h"

#include "base/errors.h"
#include "base/format.h"

#include <algorithm>

namespace kernwright::engine {

namespace {

std::size_t word_count(std::int32_t vocabulary) {
  return (static_cast<std::size_t>(vocabulary) + 31) / 32;
}

std::uint32_t token_bit(std::int32_t token) noexcept { return std::uint32_t{1} << token % 32; }

}  // namespace

TokenMask::TokenMask(std::int32_t vocabulary, bool allowed)
    : vocabulary_(vocabulary), words_(word_count(vocabulary), allowed ? ~std::uint32_t{0} : 0) {
  if (allowed && vocabulary % 32 != 0) words_.back() = token_bit(vocabulary) - 1;
}

TokenMask::TokenMask(std::int32_t vocabulary, std::span<const std::uint32_t> words)
    : vocabulary_(vocabulary), words_(words.begin(), words.end()) {
  if (words.size() != word_count(vocabulary))
    throw InvalidArgument(format("the mask of a vocabulary of {} tokens has {} words, not {}",
                                 vocabulary, word_count(vocabulary), words.size()));
  if (vocabulary % 32 != 0) words_.back() &= token_bit(vocabulary) - 1;
}

bool TokenMask::allows(std::int32_t token) const noexcept {
  if (words_.empty()) return true;
  if (token < 0 || token >= vocabulary_) return false;
  return (words_[static_cast<std::size_t>(token / 32)] & token_bit(token)) != 0;
}

bool TokenMask::allows_any() const noexcept {
  return words_.empty() ||
         std::ranges::any_of(words_, [](std::uint32_t word) { return word != 0; });
}

void TokenMask::allow(std::span<const std::int32_t> tokens) noexcept {
  for (const std::int32_t token : tokens)
    if (token >= 0 && token < vocabulary_)
      words_[static_cast<std::size_t>(token / 32)] |= token_bit(token);
}

void TokenMask::forbid(std::span<const std::int32_t> tokens) noexcept {
  for (const std::int32_t token : tokens)
    if (token >= 0 && token < vocabulary_)
      words_[static_cast<std::size_t>(token / 32)] &= ~token_bit(token);
}

void TokenMask::keep(const TokenMask& other) noexcept {
  for (std::size_t i = 0; i < other.words_.size(); ++i) words_[i] &= other.words_[i];
}

}  // namespace kernwright::engine
