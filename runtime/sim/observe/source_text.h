// The lines of source files, for reports that show them.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kernwright::sim {

/// What the compiler calls a file may be a text within one, a string in a .py file: `first_line`
/// says on which line of the file on disk it begins. Files are read by nobody but the finder: a
/// #line gives a text any name. Not thread-safe.
class SourceText {
 public:
  /// The text that begins on `first_line` of `file`; nothing where it is not known, or not to be
  /// shown.
  using Finder = std::function<std::optional<std::string>(const std::string& file, int first_line)>;

  /// `find` is asked for what was not added, once for each text.
  explicit SourceText(Finder find = {}) : find_(std::move(find)) {}

  void add(const std::string& file, std::string_view text, int first_line = 1);
  /// Line `line` of the text, from 1; empty when it is not known.
  std::string_view line(const std::string& file, int line, int first_line = 1);
  /// "name.cu:12" and what stands there, `gap` between the two.
  std::string place(const std::string& file, int line, int first_line, std::string_view gap);

 private:
  using Lines = std::vector<std::string>;
  Finder find_;
  std::map<std::pair<std::string, int>, Lines> texts_;
};

}  // namespace kernwright::sim
