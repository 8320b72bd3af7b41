// Reads the head of one .entry.
#include "jit/signature/ptx_parameters.h"

#include <algorithm>
#include <charconv>

namespace kernwright {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/// The next word of `text`: runs of blanks, and the brackets around an array's extent, divide
/// words.
std::string_view next_word(std::string_view& text) {
  const auto divides = [](char c) { return is_blank(c) || c == '[' || c == ']'; };
  while (!text.empty() && divides(text.front())) text.remove_prefix(1);
  std::size_t length = 0;
  while (length < text.size() && !divides(text[length])) ++length;
  const auto word = text.substr(0, length);
  text.remove_prefix(length);
  return word;
}

std::size_t to_number(std::string_view word) {
  std::size_t value = 0;
  std::from_chars(word.data(), word.data() + word.size(), value);
  return value;
}

/// ".u64" is 8 bytes; 0 for a word other than a type.
std::size_t type_size(std::string_view word) {
  if (word.size() < 3 || word[0] != '.') return 0;
  const char kind = word[1];
  if (kind != 'u' && kind != 's' && kind != 'f' && kind != 'b') return 0;
  const std::size_t bits = to_number(word.substr(2));
  return bits % 8 == 0 && bits <= 128 ? bits / 8 : 0;
}

PtxParameter read_parameter(std::string_view text) {
  PtxParameter result;
  std::size_t alignment = 0;
  for (std::string_view word = next_word(text); !word.empty(); word = next_word(text)) {
    if (word == ".ptr") {
      result.is_pointer = true;
    } else if (word == ".align") {
      const std::size_t value = to_number(next_word(text));
      if (!result.is_pointer) alignment = value;  // behind .ptr it is the pointee's
    } else if (const std::size_t size = type_size(word); size != 0 && result.size == 0) {
      result.size = size;
      result.is_floating = word[1] == 'f';
    } else if (word[0] >= '0' && word[0] <= '9') {
      result.is_bytes = true;
      result.size = to_number(word);
    }
  }
  result.alignment = alignment != 0 ? alignment : result.size;
  return result;
}

/// Place of the '(' of `.entry name(`, or npos.
std::size_t find_entry(std::string_view ptx, std::string_view name) {
  constexpr std::string_view kEntryWord = ".entry";
  for (auto at = ptx.find(kEntryWord); at != std::string_view::npos;
       at = ptx.find(kEntryWord, at + 1)) {
    auto begin = at + kEntryWord.size();
    while (begin < ptx.size() && is_blank(ptx[begin])) ++begin;
    if (ptx.substr(begin, name.size()) != name) continue;
    begin += name.size();
    while (begin < ptx.size() && is_blank(ptx[begin])) ++begin;
    if (begin < ptx.size() && (ptx[begin] == '(' || ptx[begin] == '{' || ptx[begin] == '.')) {
      return begin;
    }
  }
  return std::string_view::npos;
}

bool is_ptx_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '$' || c == '%';
}

/// The last name in front of an initialiser, an extent or the end of a declaration.
std::string declared_name(std::string_view line) {
  const auto stop = line.find_first_of("=[;");
  if (stop == std::string_view::npos) return {};
  auto end = line.find_last_not_of(" \t", stop == 0 ? 0 : stop - 1) + 1;
  auto begin = end;
  while (begin > 0 && is_ptx_name_char(line[begin - 1])) --begin;
  return std::string(line.substr(begin, end - begin));
}

}  // namespace

std::string without_ptx_comments(std::string_view ptx) {
  std::string result(ptx);
  for (std::size_t at = 0; at < result.size(); ++at) {
    const std::string_view rest = std::string_view(result).substr(at);
    std::size_t end = std::string_view::npos;
    if (rest.starts_with("//")) {
      end = rest.find('\n');
    } else if (rest.starts_with("/*")) {
      end = rest.find("*/", 2);
      if (end != std::string_view::npos) end += 2;
    } else {
      if (rest[0] == '"') at += std::min(rest.find('"', 1), rest.size() - 1);
      continue;
    }
    end = at + std::min(end, rest.size());
    for (; at < end; ++at) {
      if (result[at] != '\n') result[at] = ' ';
    }
    --at;
  }
  return result;
}

std::vector<std::string> ptx_entries(std::string_view ptx) {
  constexpr std::string_view kEntryWord = ".entry";
  std::vector<std::string> names;
  for (auto at = ptx.find(kEntryWord); at != std::string_view::npos;
       at = ptx.find(kEntryWord, at + 1)) {
    auto begin = at + kEntryWord.size();
    if (begin >= ptx.size() || !is_blank(ptx[begin])) continue;
    while (begin < ptx.size() && is_blank(ptx[begin])) ++begin;
    auto end = begin;
    while (end < ptx.size() && is_ptx_name_char(ptx[end])) ++end;
    std::string name(ptx.substr(begin, end - begin));
    const bool is_new = std::find(names.begin(), names.end(), name) == names.end();
    if (!name.empty() && is_new) names.push_back(std::move(name));
  }
  return names;
}

std::vector<std::string> ptx_variables(std::string_view ptx) {
  std::vector<std::string> names;
  int depth = 0;
  while (!ptx.empty()) {
    const auto end = std::min(ptx.find('\n'), ptx.size());
    const std::string_view line = ptx.substr(0, end);
    ptx.remove_prefix(std::min(end + 1, ptx.size()));
    const auto first = line.find_first_not_of(" \t");
    const bool directive = depth == 0 && first != std::string_view::npos && line[first] == '.';
    const bool is_variable = directive && line.find(".extern") == std::string_view::npos &&
                             (line.find(".global ") != std::string_view::npos ||
                              line.find(".const ") != std::string_view::npos);
    if (is_variable) {
      if (std::string name = declared_name(line); !name.empty()) names.push_back(std::move(name));
    }
    for (const char c : line) depth += c == '{' ? 1 : c == '}' ? -1 : 0;
  }
  return names;
}

std::optional<std::vector<PtxParameter>> ptx_parameters(std::string_view ptx,
                                                        std::string_view name) {
  const auto begin = name.empty() ? std::string_view::npos : find_entry(ptx, name);
  if (begin == std::string_view::npos) return std::nullopt;
  std::vector<PtxParameter> result;
  if (ptx[begin] != '(') return result;
  const auto end = ptx.find(')', begin);
  std::string_view list =
      ptx.substr(begin + 1, end == std::string_view::npos ? end : end - begin - 1);
  while (!list.empty()) {
    const auto comma = list.find(',');
    const PtxParameter parameter = read_parameter(list.substr(0, comma));
    if (parameter.size != 0) result.push_back(parameter);
    if (comma == std::string_view::npos) break;
    list.remove_prefix(comma + 1);
  }
  return result;
}

}  // namespace kernwright
