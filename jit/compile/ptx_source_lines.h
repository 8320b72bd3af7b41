// NVRTC's line table in PTX: names of files, and the place of a line.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace kernwright {

/// A line of a source; 0 where none is known.
struct SourceLine {
  std::string file;
  int line = 0;
};

/// `ptx` with each name in its `.file` lines replaced by the result of `rename`.
std::string with_files_renamed(std::string_view ptx,
                               const std::function<std::string(const std::string&)>& rename);

/// The `.loc` valid for line `number`, from 1, of the text.
SourceLine source_of_ptx_line(std::string_view ptx, int number);

/// Line `number`, from 1, of a text; empty beyond it.
std::string_view line_of_text(std::string_view text, int number);

}  // namespace kernwright
