// Cuts CUDA C++ text into tokens, without macros: enough to find declarations in it.
#pragma once

#include <string_view>
#include <vector>

namespace kernwright {

enum class TokenKind { identifier, number, string, character, punctuation };

/// One token; `text` points into the text that was cut. `::` and `->` are one token, every other
/// punctuation is a single character.
struct Token {
  TokenKind kind = TokenKind::punctuation;
  std::string_view text;
  int line = 1;  ///< counted from 1
};

/// An #include line.
struct IncludeDirective {
  std::string_view name;  ///< what stands between the quotes or angle brackets
  bool quoted = false;
  int line = 1;
};

struct TokenizedSource {
  std::vector<Token> tokens;
  std::vector<IncludeDirective> includes;
  std::vector<std::string_view> probed;  ///< names inside __has_include(...)
  bool has_computed_include = false;     ///< an #include whose name only the preprocessor knows
};

/// Skips comments and preprocessor lines; raw strings and continued lines are understood.
/// Never fails: an unterminated literal or comment ends at the end of its line or of the text.
/// The result points into `text`, which must outlive it.
TokenizedSource tokenize(std::string_view text);

}  // namespace kernwright
