// Cuts CUDA C++ text into tokens, without macros: enough to find declarations in it.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernwright {

enum class TokenKind { identifier, number, string, character, punctuation };

/// One token; `text` points into the tokenized text. `::` and `->` are one token, all other
/// punctuation is a single character.
struct Token {
  TokenKind kind = TokenKind::punctuation;
  std::string_view text;
  int line = 1;  ///< counted from 1
};

/// A preprocessor line as the compiler reads it: "#" also where the text has "%:", lines joined,
/// comments replaced by a blank.
struct Directive {
  std::string text;
  std::size_t begin = 0, end = 0;  ///< bytes of it in the text, without the line break
  int line = 1;
};

/// An #include line with a literal name.
struct IncludeDirective {
  std::string name;  ///< what stands between the quotes or angle brackets
  bool quoted = false;
  int line = 1;
};

struct TokenizedSource {
  std::vector<Token> tokens;
  std::vector<IncludeDirective> includes;
  std::vector<Directive> directives;  ///< all preprocessor lines, those behind a false #if too
};

/// Skips comments; understands raw strings and continued lines. Never fails: an unterminated
/// literal or comment ends at the end of its line or of the text. The result points into `text`, so
/// `text` must outlive it.
TokenizedSource tokenize(std::string_view text);

/// Whether the word may stand before parentheses in a declaration without being its name.
bool is_declaration_specifier_call(std::string_view word);

/// Index after the bracket that closes the one at `index`; the number of tokens when none does.
std::size_t behind_bracket(std::span<const Token> tokens, std::size_t index);

/// Index after the '>' that closes the '<' at `index`; `index` + 1 when it is no bracket.
std::size_t behind_angle(std::span<const Token> tokens, std::size_t index);

}  // namespace kernwright
