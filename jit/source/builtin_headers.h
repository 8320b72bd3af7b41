// Device headers of the library itself, for every source: #include <kernwright/...>.
#pragma once

#include "jit/source/program_options.h"
#include "jit/source/source.h"

#include <map>
#include <optional>
#include <string>

namespace kernwright {

/// Makes `text` available under the name, for example "kernwright/philox.cuh"; the same name again
/// replaces it. Before the first program with this include. Thread-safe. Throws InvalidArgument
/// unless the name begins with "kernwright/".
void add_builtin_header(const std::string& name, std::string text);

/// For one of the library's own headers, word for word: the answer of asks_for_arch_specific() for
/// its text and the headers it includes, found out once. They include no others than the library's.
/// Nothing for any other header.
std::optional<bool> builtin_asks_for_arch_specific(const std::string& name,
                                                   const std::string& text);

/// All of them, by name.
std::map<std::string, std::string> builtin_headers();

/// `options` plus the library's headers included by the source, by a header in memory or by one of
/// those. All of them if the source sees folders: their files may include any. A header already in
/// the options stays.
ProgramOptions with_builtin_headers(const Source& source, ProgramOptions options);

}  // namespace kernwright
