// The lines of source files, for reports.
#include "sim/observe/source_text.h"

#include "base/format.h"

#include <algorithm>

namespace kernwright::sim {
namespace {

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.emplace_back(line);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

std::string_view at(const std::vector<std::string>& lines, int line) {
  const bool exists = line >= 1 && static_cast<std::size_t>(line) <= lines.size();
  return exists ? std::string_view(lines[static_cast<std::size_t>(line - 1)]) : std::string_view();
}

}  // namespace

void SourceText::add(const std::string& file, std::string_view text, int first_line) {
  texts_[{file, first_line}] = split(text);
}

std::string_view SourceText::line(const std::string& file, int line, int first_line) {
  const auto [known, is_new] = texts_.try_emplace({file, first_line});
  if (is_new && find_ && !file.empty()) {
    if (const auto text = find_(file, first_line)) known->second = split(*text);
  }
  return at(known->second, line);
}

std::string SourceText::place(const std::string& file, int line_number, int first_line,
                              std::string_view gap) {
  std::string_view text = line(file, line_number, first_line);
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  const std::string_view name = std::string_view(file).substr(file.rfind('/') + 1);
  return format("{}:{}{}{}", name, line_number + first_line - 1, gap, text);
}

}  // namespace kernwright::sim
