// Reads NVRTC's log and translates it to the user's text.
#pragma once

#include "base/diagnostic.h"

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernwright {

/// A message of the log with data for the library itself.
struct LogMessage {
  Diagnostic diagnostic;
  /// The name expression of the message, empty for a message about source text.
  std::string name_expression;
  bool at_end = false;  ///< about the end of the source, which the compiler gives no place
  int ptx_line = 0;     ///< the assembler's place, 0 for a message about source text
};

/// NVRTC's file name for name expressions.
inline constexpr std::string_view kNameMapFile = "__nv_name_map";

/// Every message of a log of NVRTC or ptxas, in order; other lines are skipped. Places are the
/// compiler's, columns count characters. Never throws for odd text.
std::vector<LogMessage> parse_compile_log(std::string_view log);

/// File name of NVRTC's text before every source.
inline constexpr std::string_view kPreambleFile = "__nv_nvrtc_builtin_header.h";

/// Adds the usual remedy for usual causes (`hint` of each diagnostic). Contents of CUDA's header
/// folders are not to be installed. `macros` are the user's, by name.
void add_hints(std::vector<Diagnostic>& diagnostics,
               std::span<const std::string> header_folders = {},
               const std::set<std::string>& macros = {});

/// Gives messages about the end of the source its name and the last line of its text.
void place_at_end(std::vector<LogMessage>& messages, const std::string& name,
                  std::string_view text);

/// Moves the lines of messages in `file` by `first_line` - 1, for a text inside a file. Also lines
/// named in messages ("previous definition at line 3").
void shift_lines(std::vector<Diagnostic>& diagnostics, std::string_view file, int first_line);

/// The same for a log.
std::string shifted_log(std::string_view log, std::string_view file, int first_line);

/// The text of CompileError::what(): the errors with their places, carets and hints, the first ten
/// of many, then the count.
std::string summarize(const std::vector<Diagnostic>& diagnostics, const std::string& source_name,
                      std::string_view log);

}  // namespace kernwright
