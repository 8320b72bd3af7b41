// A source text and where it came from.
#pragma once

#include <filesystem>
#include <string>

namespace kernwright {

/// A source text and where it came from, for messages.
struct Source {
  std::string text;
  std::string name = "kernel.cu";  ///< file name shown in diagnostics
  int first_line = 1;     ///< line of `name` on which `text` begins (a string inside a .py file)
  std::string directory;  ///< folder for relative includes; empty for a string

  /// Reads a file; its folder becomes the folder for `#include "..."`.
  /// Throws InvalidArgument naming the path and the reason.
  static Source from_file(const std::filesystem::path& path);
};

/// The text without a UTF-8 byte order mark, which some editors write at its front.
std::string without_byte_order_mark(std::string text);

/// Largest accepted source text, in bytes.
inline constexpr std::size_t kMaxSourceBytes = std::size_t{64} << 20;

/// The source with its folder made absolute by the current folder of the process, so a later change
/// of it selects no other headers. Throws InvalidArgument if there is none.
Source with_absolute_folder(Source source);

/// Throws InvalidArgument: empty or too large text, a NUL in it, a line break or NUL in its name.
void validate(const Source& source);

}  // namespace kernwright
