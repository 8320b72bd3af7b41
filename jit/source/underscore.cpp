// Looks for the name in tokens and directives.
#include "jit/source/underscore.h"

#include <algorithm>
#include <string_view>

#include "jit/source/source_lexer.h"

namespace kernwright {
namespace {

constexpr const char* kName = "_";

bool defines_underscore(const Directive& directive) {
  const std::string_view text = directive.text;
  const auto word = text.find_first_not_of(" \t", 1);
  if (word == std::string_view::npos || !text.substr(word).starts_with("define")) return false;
  const auto name = text.find_first_not_of(" \t", word + 6);
  if (name == std::string_view::npos || text[name] != '_') return false;
  const std::string_view rest = text.substr(name + 1);
  return rest.empty() || rest[0] == '(' || rest[0] == ' ' || rest[0] == '\t';
}

bool mentions_underscore(const std::string& text) {
  const TokenizedSource read = tokenize(text);
  const bool is_macro =
      std::any_of(read.directives.begin(), read.directives.end(), defines_underscore);
  return !is_macro && std::any_of(read.tokens.begin(), read.tokens.end(), [](const Token& token) {
    return token.kind == TokenKind::identifier && token.text == kName;
  });
}

}  // namespace

ProgramOptions with_underscore_renamed(const Source& source, ProgramOptions options) {
  if (source.text.find(kName) == std::string::npos || options.defines.contains(kName)) {
    return options;
  }
  const bool is_header_macro = std::any_of(
      options.headers.begin(), options.headers.end(),
      [](const auto& header) { return header.second.find("define _") != std::string::npos; });
  if (!is_header_macro && mentions_underscore(source.text)) {
    options.defines.emplace(kName, "kernwright_underscore");
  }
  return options;
}

}  // namespace kernwright
