// Possible names of struct members, for the compiler to check.
#pragma once

#include "jit/source/source_lexer.h"

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace kernwright {

/// Collects from several texts. Wrong candidates only cost time.
class MemberNames {
 public:
  /// Names at the end of a declarator within the braces of a struct, class or union of `text`,
  /// behind the struct's name: "S::x", and "::x" for a struct without one. No macro is expanded:
  /// names of the text's own #defines are left out. Never throws for odd text.
  void add(std::string_view text) { add(text, tokenize(text)); }
  /// `source`: the tokens of `text`.
  void add(std::string_view text, const TokenizedSource& source);
  /// In order of appearance, each once; at most 128.
  std::vector<std::string> take() { return std::move(names_); }

 private:
  std::set<std::string> known_;
  std::vector<std::string> names_;
};

}  // namespace kernwright
