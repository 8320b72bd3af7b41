// What the compiler reads for a source and its options.
#pragma once

#include "jit/source/include_closure.h"
#include "jit/source/program_options.h"
#include "jit/source/source.h"

#include <map>
#include <set>
#include <string>

namespace kernwright {

/// The source, and every text that an #include may find before the compiler looks into folders.
/// Lines stand where they stand in the user's own texts.
struct CompilerTexts {
  std::string text;
  std::string name;  ///< of the source, for a #line
  std::map<std::string, std::string> headers;
  std::set<std::string> files;  ///< the user's files that are included, by path
};

/// Headers in memory include one another as files do. Headers of the host get a text of ours where
/// the user has none. Files of the user are read here where the compiler could not take them as
/// they are: a byte order mark in front, a '"' in the path, host code that is to be left out.
CompilerTexts compiler_texts(const Source& source, const ProgramOptions& options,
                             const IncludeClosure& included);

/// NVRTC writes the current folder before a relative name in the line table. The same source must
/// give the same PTX wherever the process stands, and a header in memory lies in no folder: the
/// name without it.
std::string name_as_given(const std::string& file, const CompilerTexts& texts);

/// The assembler refuses a '"' in a file's name: the compiler is given this byte for it, and what
/// the compiler says is translated back with user_name().
inline constexpr char kQuoteAlias = '\x01';
std::string compiler_name(std::string name);
std::string user_name(std::string name);

}  // namespace kernwright
