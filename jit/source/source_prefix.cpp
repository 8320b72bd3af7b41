// Finds the line where the include part of a source ends.
#include "jit/source/source_prefix.h"

#include <limits>
#include <string>

namespace kernwright {
namespace {

std::string_view trimmed(std::string_view line) {
  const auto begin = line.find_first_not_of(" \t\r\f\v");
  return begin == std::string_view::npos ? std::string_view() : line.substr(begin);
}

/// "include", "if", "endif" ...: the word after the '#' of a line, empty without one.
std::string_view directive(std::string_view line) {
  line = trimmed(line);
  if (!line.starts_with('#')) return {};
  line = trimmed(line.substr(1));
  return line.substr(0, line.find_first_not_of("abcdefghijklmnopqrstuvwxyz"));
}

/// Cuts comments out of line after line.
class CommentCutter {
 public:
  bool in_comment() const { return in_comment_; }

  std::string cut(std::string_view line) {
    std::string result;
    for (std::size_t i = 0; i < line.size(); ++i) {
      const std::string_view two = line.substr(i, 2);
      if (in_comment_) {
        if (two != "*/") continue;
        in_comment_ = false;
        ++i;
        result += ' ';
      } else if (two == "//") {
        break;
      } else if (two == "/*") {
        in_comment_ = true;
        ++i;
      } else if (line[i] == '"') {
        const auto close = line.find('"', i + 1);
        const auto last = close == std::string_view::npos ? line.size() - 1 : close;
        result += line.substr(i, last - i + 1);
        i = last;
      } else {
        result += line[i];
      }
    }
    return result;
  }

 private:
  bool in_comment_ = false;
};

}  // namespace

std::optional<SourcePrefix> source_prefix(std::string_view text, const TokenizedSource& tokens) {
  const int end =
      tokens.tokens.empty() ? std::numeric_limits<int>::max() : tokens.tokens.front().line;
  int last_include = 0;
  for (const IncludeDirective& include : tokens.includes) {
    if (include.line < end) last_include = include.line;
  }
  if (last_include == 0) return std::nullopt;
  SourcePrefix prefix;
  CommentCutter comments;
  int depth = 0;
  bool is_continued = false;
  while (prefix.lines + 1 < end) {
    const auto stop = text.find('\n', prefix.bytes);
    if (stop == std::string_view::npos) return std::nullopt;
    const std::string line = comments.cut(text.substr(prefix.bytes, stop - prefix.bytes));
    const std::string_view word = is_continued ? std::string_view() : directive(line);
    if (word == "if" || word == "ifdef" || word == "ifndef") ++depth;
    if (word == "endif") --depth;
    if (word == "line") return std::nullopt;
    is_continued = line.ends_with('\\') || line.ends_with("\\\r");
    prefix.bytes = stop + 1;
    ++prefix.lines;
    const bool is_whole = depth <= 0 && !comments.in_comment() && !is_continued;
    if (prefix.lines >= last_include && is_whole) return prefix;
  }
  return std::nullopt;
}

}  // namespace kernwright
