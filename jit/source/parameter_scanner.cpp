// Tells names from types in a parameter list, by the shape of the declarators.
#include "jit/source/parameter_scanner.h"

#include <algorithm>
#include <array>
#include <optional>

namespace kernwright {
namespace {

template <std::size_t N>
bool is_one_of(std::string_view word, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// Words that cannot be a parameter's name.
bool is_type_word(std::string_view word) {
  static constexpr std::array<std::string_view, 23> kWords{"void",
                                                           "bool",
                                                           "char",
                                                           "short",
                                                           "int",
                                                           "long",
                                                           "float",
                                                           "double",
                                                           "signed",
                                                           "unsigned",
                                                           "auto",
                                                           "wchar_t",
                                                           "char8_t",
                                                           "char16_t",
                                                           "char32_t",
                                                           "__int128",
                                                           "const",
                                                           "volatile",
                                                           "constexpr",
                                                           "decltype",
                                                           "__restrict__",
                                                           "__restrict",
                                                           "__grid_constant__"};
  return is_one_of(word, kWords);
}

/// Words without meaning for the type: the rest must still name one.
bool is_qualifier(std::string_view word) {
  static constexpr std::array<std::string_view, 12> kWords{
      "const", "volatile", "__restrict__", "__restrict", "__grid_constant__", "struct",
      "class", "enum",     "union",        "typename",   "register",          "restrict"};
  return is_one_of(word, kWords);
}

char bracket(const Token& token) {
  return token.kind == TokenKind::punctuation && token.text.size() == 1 ? token.text[0] : '\0';
}

/// Calls visit(index, depth) for each token with the depth of brackets around it.
template <typename Visit>
void walk(std::span<const Token> tokens, Visit visit) {
  int depth = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const char c = bracket(tokens[i]);
    if (c == ')' || c == ']' || c == '}' || c == '>') depth = std::max(depth - 1, 0);
    visit(i, depth);
    if (c == '(' || c == '[' || c == '{' || c == '<') ++depth;
  }
}

std::vector<std::span<const Token>> split(std::span<const Token> tokens) {
  std::vector<std::span<const Token>> parts;
  std::size_t begin = 0;
  walk(tokens, [&](std::size_t i, int depth) {
    if (depth == 0 && bracket(tokens[i]) == ',') {
      parts.push_back(tokens.subspan(begin, i - begin));
      begin = i + 1;
    }
  });
  parts.push_back(tokens.subspan(begin));
  return parts;
}

std::span<const Token> without_default(std::span<const Token> tokens) {
  auto end = tokens.size();
  walk(tokens, [&](std::size_t i, int depth) {
    if (depth == 0 && bracket(tokens[i]) == '=') end = std::min(end, i);
  });
  return tokens.first(end);
}

/// Place of the name in `int (*f)(float)`, `float (&a)[4]`.
std::optional<std::size_t> nested_name(std::span<const Token> tokens) {
  for (std::size_t i = 0; i + 2 < tokens.size(); ++i) {
    if (bracket(tokens[i]) != '(') continue;
    auto next = i + 1;
    while (next + 1 < tokens.size() &&
           (tokens[next].kind == TokenKind::identifier || tokens[next].text == "::") &&
           bracket(tokens[next]) == '\0' && tokens[next + 1].text != ")") {
      ++next;  // `(Class::*name)`
    }
    const char c = bracket(tokens[next]);
    if (c != '*' && c != '&') continue;
    std::optional<std::size_t> name;
    for (++next; next < tokens.size() && bracket(tokens[next]) != ')'; ++next) {
      const bool word = tokens[next].kind == TokenKind::identifier;
      if (bracket(tokens[next]) == '[' || bracket(tokens[next]) == '(') break;
      if (word && !is_type_word(tokens[next].text)) name = next;
    }
    return name;
  }
  return std::nullopt;
}

bool names_a_type(std::span<const Token> tokens) {
  return std::any_of(tokens.begin(), tokens.end(), [](const Token& t) {
    return t.kind == TokenKind::identifier && !is_qualifier(t.text);
  });
}

/// Place of the name in `const T* name` and `float name[4]`.
std::optional<std::size_t> plain_name(std::span<const Token> tokens) {
  auto end = tokens.size();
  walk(tokens, [&](std::size_t i, int depth) {
    if (depth == 0 && bracket(tokens[i]) == '[' && i > 0 && i < end &&
        !(i + 1 < tokens.size() && bracket(tokens[i + 1]) == '[')) {
      end = i;
    }
  });
  if (end < 2) return std::nullopt;
  const Token& last = tokens[end - 1];
  const bool candidate = last.kind == TokenKind::identifier && !is_type_word(last.text) &&
                         tokens[end - 2].text != "::" && !is_qualifier(tokens[end - 2].text);
  if (candidate && names_a_type(tokens.first(end - 1))) return end - 1;
  // `T const x`: the qualifier stands between the type and the name.
  const bool after_qualifier = last.kind == TokenKind::identifier && !is_type_word(last.text) &&
                               is_qualifier(tokens[end - 2].text) &&
                               names_a_type(tokens.first(end - 2));
  return after_qualifier ? std::optional(end - 1) : std::nullopt;
}

std::span<const Token> without_attributes(std::span<const Token> tokens) {
  while (tokens.size() > 1 && bracket(tokens[0]) == '[' && bracket(tokens[1]) == '[') {
    int depth = 0;
    std::size_t i = 0;
    for (; i < tokens.size(); ++i) {
      if (bracket(tokens[i]) == '[') ++depth;
      if (bracket(tokens[i]) == ']' && --depth == 0) break;
    }
    tokens = tokens.subspan(std::min(i + 1, tokens.size()));
  }
  return tokens;
}

bool is_pack(std::span<const Token> tokens) {
  for (std::size_t i = 0; i + 2 < tokens.size(); ++i) {
    if (bracket(tokens[i]) == '.' && bracket(tokens[i + 1]) == '.' && bracket(tokens[i + 2]) == '.')
      return true;
  }
  return false;
}

ScannedParameter scan_parameter(std::span<const Token> tokens) {
  tokens = without_default(without_attributes(tokens));
  auto place = nested_name(tokens);
  if (!place) place = plain_name(tokens);
  ScannedParameter result;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (place == i) continue;
    if (!result.type.empty()) result.type += ' ';
    result.type += tokens[i].text;
  }
  if (place) result.name = std::string(tokens[*place].text) + (is_pack(tokens) ? "..." : "");
  return result;
}

}  // namespace

std::vector<ScannedParameter> scan_parameters(std::span<const Token> tokens) {
  std::vector<ScannedParameter> result;
  if (tokens.empty() || (tokens.size() == 1 && tokens[0].text == "void")) return result;
  for (const auto part : split(tokens)) result.push_back(scan_parameter(part));
  return result;
}

}  // namespace kernwright
