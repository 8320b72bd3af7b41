// Finds declarators in the bodies of structs.
#include "jit/source/member_names.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

namespace kernwright {
namespace {

constexpr std::size_t kMaxNames = 128;

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
  constexpr std::string_view kDefine = "define";
  const auto is_of_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  };
  for (auto at = text.find(kDefine); at != text.npos; at = text.find(kDefine, at + 1)) {
    const auto begin = text.find_first_not_of(" \t", at + kDefine.size());
    if (begin == text.npos || !text.substr(begin).starts_with(name)) continue;
    const std::size_t end = begin + name.size();
    if (end >= text.size() || !is_of_word(text[end])) return true;
  }
  return false;
}

/// The text between "struct" and its brace.
class StructHead {
 public:
  void read(const std::vector<Token>& tokens, std::size_t i) {
    const std::string_view word = tokens[i].text;
    if (opens_struct(word)) {
      *this = {};
      is_open_ = true;
    } else if (word == ";" || word == "=" || (word == "(" && !is_attribute(tokens, i))) {
      is_open_ = false;
    } else if (word == "(" || word == "[") {
      ++depth_;
    } else if (word == ")" || word == "]") {
      --depth_;
    } else if (word == "<" || word == ">") {
      angles_ += word == "<" ? 1 : -1;
    } else if (word == ":") {
      has_bases_ = true;
    } else if (tokens[i].kind == TokenKind::identifier && depth_ + angles_ == 0 && !has_bases_ &&
               word != "final" && word != "alignas" && !word.starts_with("__")) {
      name_ = word;
    }
  }

  /// The name of the struct opened by this brace: empty if the compiler has no name for it. Nothing
  /// if the brace opens no struct.
  std::optional<std::string> struct_of_brace(std::string_view text) const {
    if (!is_open_) return std::nullopt;
    return is_defined(text, name_) ? std::string() : std::string(name_);
  }

 private:
  static bool is_attribute(const std::vector<Token>& tokens, std::size_t i) {
    return i > 0 && (tokens[i - 1].text == "alignas" || tokens[i - 1].text.starts_with("__"));
  }

  bool is_open_ = false;
  bool has_bases_ = false;
  int depth_ = 0;   ///< of parentheses and brackets
  int angles_ = 0;  ///< of arguments
  std::string_view name_;
};

}  // namespace

void MemberNames::add(std::string_view text, const TokenizedSource& source) {
  const std::vector<Token>& tokens = source.tokens;
  std::vector<std::optional<std::string>> braces;  // the struct of each open brace
  StructHead head;
  for (std::size_t i = 0; i < tokens.size() && names_.size() < kMaxNames; ++i) {
    const std::string_view word = tokens[i].text;
    if (word == "{") {
      braces.push_back(head.struct_of_brace(text));
      head = {};
    } else if (word == "}") {
      if (!braces.empty()) braces.pop_back();
    } else {
      head.read(tokens, i);
      const bool is_member = i > 0 && i + 1 < tokens.size() && !braces.empty() && braces.back() &&
                             (is_declarator(tokens[i - 1], tokens[i], tokens[i + 1]) ||
                              is_in_parentheses(tokens, i)) &&
                             !is_defined(text, word);
      if (!is_member) continue;
      std::string name = *braces.back() + "::" + std::string(word);
      if (known_.insert(name).second) names_.push_back(std::move(name));
    }
  }
}

}  // namespace kernwright
