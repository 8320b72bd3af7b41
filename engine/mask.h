// Which tokens a sequence may get: a bit for each token of a vocabulary.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace kernwright::engine {

/// Bits of tokens, 32 in a word; bit i of word w is token 32 w + i. Bits behind the vocabulary are
/// clear. An empty mask has no words and allows every token.
class TokenMask {
 public:
  TokenMask() = default;
  /// All tokens are allowed, or none.
  TokenMask(std::int32_t vocabulary, bool allowed);
  /// The mask of these words. Throws InvalidArgument for another number of words.
  TokenMask(std::int32_t vocabulary, std::span<const std::uint32_t> words);

  bool is_empty() const noexcept { return words_.empty(); }
  std::span<const std::uint32_t> words() const noexcept { return words_; }
  bool allows(std::int32_t token) const noexcept;
  bool allows_any() const noexcept;

  /// Tokens outside of the vocabulary are ignored. The mask is not empty.
  void allow(std::span<const std::int32_t> tokens) noexcept;
  void forbid(std::span<const std::int32_t> tokens) noexcept;
  /// Keeps the tokens that `other` allows too, a mask of the same vocabulary or an empty one.
  void keep(const TokenMask& other) noexcept;

 private:
  std::int32_t vocabulary_ = 0;
  std::vector<std::uint32_t> words_;
};

}  // namespace kernwright::engine
