// Finds declarators in the bodies of structs.
#include "jit/source/member_names.h"

#include <algorithm>
#include <array>

#include "jit/source/source_lexer.h"

namespace kernwright {
namespace {

constexpr std::size_t kMaxNames = 64;

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool opens_struct(std::string_view word) { return is_one_of(word, {"struct", "class", "union"}); }

/// Whether a member's name may stand behind `before` and in front of `behind`.
bool is_declarator(const Token& before, const Token& name, const Token& behind) {
  if (name.kind != TokenKind::identifier) return false;
  if (behind.kind != TokenKind::punctuation) return false;
  if (!is_one_of(behind.text, {";", ",", "[", "=", "{", ":"})) return false;
  if (is_one_of(name.text, {"operator", "const", "default", "delete", "override", "final", "int",
                            "float", "double", "char", "bool", "long", "short", "unsigned",
                            "public", "private", "protected", "noexcept"})) {
    return false;
  }
  if (before.kind == TokenKind::punctuation)
    return is_one_of(before.text, {"*", "&", ">", ",", "]", "}"});
  return before.kind == TokenKind::identifier && !opens_struct(before.text) &&
         !is_one_of(before.text, {"enum", "typename", "return", "namespace", "goto", "case"});
}

/// Whether tokens[i] is the name in "(*name)(int)" or "(*name)[4]".
bool is_in_parentheses(const std::vector<Token>& tokens, std::size_t i) {
  return i > 1 && tokens[i].kind == TokenKind::identifier && tokens[i - 1].text == "*" &&
         tokens[i - 2].text == "(" && tokens[i + 1].text == ")";
}

bool is_defined(std::string_view text, std::string_view name) {
  const std::string directive = "define " + std::string(name);
  return text.find(directive) != std::string_view::npos;
}

}  // namespace

void MemberNames::add(std::string_view text) {
  const TokenizedSource source = tokenize(text);
  const std::vector<Token>& tokens = source.tokens;
  std::vector<bool> braces;  // whether each that is open is a struct's
  bool is_head = false;      // between "struct" and its brace
  for (std::size_t i = 0; i < tokens.size() && names_.size() < kMaxNames; ++i) {
    const std::string_view word = tokens[i].text;
    if (opens_struct(word)) is_head = true;
    const bool is_attribute =
        i > 0 && (tokens[i - 1].text == "alignas" || tokens[i - 1].text.starts_with("__"));
    if (word == ";" || word == "=" || (word == "(" && !is_attribute)) is_head = false;
    if (word == "{") {
      braces.push_back(is_head);
      is_head = false;
    } else if (word == "}") {
      if (!braces.empty()) braces.pop_back();
    } else if (i > 0 && i + 1 < tokens.size() && !braces.empty() && braces.back() &&
               (is_declarator(tokens[i - 1], tokens[i], tokens[i + 1]) ||
                is_in_parentheses(tokens, i)) &&
               !is_defined(text, word) &&
               known_.insert(std::string(word)).second) {
      names_.emplace_back(word);
    }
  }
}

}  // namespace kernwright
