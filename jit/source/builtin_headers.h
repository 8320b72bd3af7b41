// Device headers that the library itself brings, for every source: #include <kernwright/...>.
#pragma once

#include "jit/source/program_options.h"
#include "jit/source/source.h"

#include <map>
#include <optional>
#include <string>

namespace kernwright {

/// Makes `text` available under the name, for example "kernwright/philox.cuh"; the same name again
/// replaces it. Before the first program that includes it. Thread-safe. Throws InvalidArgument for
/// a name that does not begin with "kernwright/".
void add_builtin_header(const std::string& name, std::string text);

/// For one of the library's own headers, word for word: what asks_for_arch_specific() says of its
/// text and of the headers that it includes, found out once. They include no others than the
/// library's. Nothing for any other header.
std::optional<bool> builtin_asks_for_arch_specific(const std::string& name,
                                                   const std::string& text);

/// All of them, by name.
std::map<std::string, std::string> builtin_headers();

/// `options` with those of the library's headers added that the source, a header in memory or one
/// of those includes; all of them where the source sees folders, whose files may. A header of that
/// name in the options stays.
ProgramOptions with_builtin_headers(const Source& source, ProgramOptions options);

}  // namespace kernwright
