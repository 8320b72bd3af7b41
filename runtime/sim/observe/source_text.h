// The lines of source files, for reports.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kernwright::sim {

/// The compiler's name of a file may mean a text within it, a string in a .py file: `first_line` is
/// its first line in the file on disk. Only the finder reads files: a #line gives a text any name.
/// Not thread-safe.
class SourceText {
 public:
  /// The text from `first_line` of `file` on; nothing if it is unknown, or must not be shown.
  using Finder = std::function<std::optional<std::string>(const std::string& file, int first_line)>;

  /// `find` is called for texts not added before, once for each.
  explicit SourceText(Finder find = {}) : find_(std::move(find)) {}

  void add(const std::string& file, std::string_view text, int first_line = 1);
  /// Line `line` of the text, from 1; empty when it is not known.
  std::string_view line(const std::string& file, int line, int first_line = 1);
  /// "name.cu:12" and its text, with `gap` between the two.
  std::string place(const std::string& file, int line, int first_line, std::string_view gap);

 private:
  using Lines = std::vector<std::string>;
  Finder find_;
  std::map<std::pair<std::string, int>, Lines> texts_;
};

}  // namespace kernwright::sim
