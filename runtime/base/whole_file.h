// Files read and written in one piece, by the system's calls alone: streams would bring the C++
// library's locales into every extension.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kernwright {

/// The bytes of the file; nothing when it cannot be opened or read. Thread-safe.
std::optional<std::string> read_whole_file(const std::string& path);

/// Makes the file, or empties it, and writes `bytes`. False when a step failed; what is then left
/// of the file is unspecified. Thread-safe.
[[nodiscard]] bool write_whole_file(const std::string& path, std::string_view bytes);

}  // namespace kernwright
