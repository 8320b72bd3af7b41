// The place of a text in a file, for messages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kernwright {

/// The lines of a file, counted from 1, with these very bytes, in order. None if it lacks them, if
/// it cannot be read, and if it has carriage returns: a reader of text decides how lines count
/// then. The last file stays in memory while it does not change: most programs have all their
/// kernels in one. Thread-safe.
std::vector<int> lines_of_text(const std::string& path, std::string_view text);

}  // namespace kernwright
