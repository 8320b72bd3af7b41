// The lines of source files, for reports that show them.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kernwright::sim {

/// What the compiler calls a file may be a text within one, a string in a .py file: `first_line`
/// says on which line of the file on disk it begins. Files are read when a line of them is first
/// asked for. Not thread-safe.
class SourceText {
 public:
  /// The text itself, so that the file on disk is not asked.
  void add(const std::string& file, std::string_view text, int first_line = 1);
  /// Line `line` of the text, from 1; empty when it is not known.
  std::string_view line(const std::string& file, int line, int first_line = 1);

 private:
  using Lines = std::vector<std::string>;
  std::map<std::pair<std::string, int>, Lines> texts_;
  std::map<std::string, Lines> files_;
};

}  // namespace kernwright::sim
