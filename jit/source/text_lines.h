// Where in a file a text stands, for messages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kernwright {

/// The lines of a file, counted from 1, on which it has these very bytes, in order. None where it
/// has not, where it cannot be read, and where it has carriage returns: what counts as a line then
/// is for whoever reads it as text. The file read last is kept while it does not change,
/// since most programs have all their kernels in one. Thread-safe.
std::vector<int> lines_of_text(const std::string& path, std::string_view text);

}  // namespace kernwright
