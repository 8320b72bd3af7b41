// Reads and writes `.file` and `.loc`.
#include "jit/compile/ptx_source_lines.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/format.h"

namespace kernwright {
namespace {

constexpr std::string_view kFile = "\t.file\t";
constexpr std::string_view kLoc = "\t.loc\t";

/// The text between the quotes, with C's escapes resolved.
std::string unescaped(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 >= text.size()) {
      result += text[i];
      continue;
    }
    int value = 0;
    std::size_t digits = 0;
    for (; digits < 3 && i + 1 + digits < text.size(); ++digits) {
      const char c = text[i + 1 + digits];
      if (c < '0' || c > '7') break;
      value = value * 8 + (c - '0');
    }
    ++i;
    if (digits > 0) {
      result += static_cast<char>(value);
      i += digits - 1;
    } else {
      result += text[i] == 'n' ? '\n' : text[i] == 't' ? '\t' : text[i];
    }
  }
  return result;
}

/// The reverse; characters refused by the assembler become octal escapes.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\\') {
      result += "\\\\";
    } else if (c == '"' || byte < 0x20 || byte >= 0x7f) {
      result += format("\\{:03o}", byte);
    } else {
      result += c;
    }
  }
  return result;
}

/// The quoted part of a line, without the quotes.
std::string_view quoted_part(std::string_view line) {
  const auto open = line.find('"');
  const auto close = line.rfind('"');
  if (open == std::string_view::npos || close == open) return {};
  return line.substr(open + 1, close - open - 1);
}

template <std::size_t N>
bool read_numbers(std::string_view text, std::array<int, N>& numbers) {
  for (int& number : numbers) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc()) return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  }
  return true;
}

std::string name_of_file(std::string_view ptx, int wanted) {
  for (auto at = ptx.find(kFile); at != std::string_view::npos; at = ptx.find(kFile, at + 1)) {
    const std::string_view line = ptx.substr(at, ptx.find('\n', at) - at);
    std::array<int, 1> number{};
    if (read_numbers(line.substr(kFile.size()), number) && number[0] == wanted) {
      return unescaped(quoted_part(line));
    }
  }
  return {};
}

}  // namespace

std::string with_files_renamed(std::string_view ptx,
                               const std::function<std::string(const std::string&)>& rename) {
  std::string result;
  std::size_t copied = 0;
  for (auto at = ptx.find(kFile); at != std::string_view::npos; at = ptx.find(kFile, at + 1)) {
    const std::string_view name = quoted_part(ptx.substr(at, ptx.find('\n', at) - at));
    if (name.empty()) continue;
    const auto begin = static_cast<std::size_t>(name.data() - ptx.data());
    result += ptx.substr(copied, begin - copied);
    result += escaped(rename(unescaped(name)));
    copied = begin + name.size();
  }
  result += ptx.substr(copied);
  return result;
}

SourceLine source_of_ptx_line(std::string_view ptx, int number) {
  SourceLine result;
  std::array<int, 2> place{};
  std::size_t at = 0;
  for (int line = 1; line <= number && at < ptx.size(); ++line) {
    const auto end = std::min(ptx.find('\n', at), ptx.size());
    const std::string_view text = ptx.substr(at, end - at);
    if (text == "{") place = {};  // a function begins
    if (text.starts_with(kLoc)) read_numbers(text.substr(kLoc.size()), place);
    at = end + 1;
  }
  if (place[1] > 0) result = {name_of_file(ptx, place[0]), place[1]};
  return result;
}

std::string_view line_of_text(std::string_view text, int number) {
  for (int line = 1; line < number; ++line) {
    const auto end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  return text.substr(0, text.find('\n'));
}

}  // namespace kernwright
