// The texts for the compiler, from a source and its options.
#pragma once

#include "jit/source/include_closure.h"
#include "jit/source/program_options.h"
#include "jit/source/source.h"

#include <map>
#include <set>
#include <string>

namespace kernwright {

/// The source, and every text for an #include before the compiler searches folders. Line numbers
/// are the same as in the user's texts.
struct CompilerTexts {
  std::string text;
  std::string name;  ///< of the source, for a #line
  std::map<std::string, std::string> headers;
  std::set<std::string> files;  ///< the user's files that are included, by path
};

/// Headers in memory include one another as files do. Headers of the host get a text of ours if the
/// user has none. Files of the user are read here if the compiler could not take them unchanged: a
/// byte order mark in front, a '"' in the path, host code to leave out.
CompilerTexts compiler_texts(const Source& source, const ProgramOptions& options,
                             const IncludeClosure& included);

/// NVRTC writes the current folder before a relative name in the line table. The same source must
/// give the same PTX wherever the process stands, and a header in memory lies in no folder: the
/// name without it.
std::string name_as_given(const std::string& file, const CompilerTexts& texts);

/// The assembler refuses a '"' in a file's name, so the compiler gets this byte instead.
/// user_name() translates its messages back.
inline constexpr char kQuoteAlias = '\x01';
std::string compiler_name(std::string name);
std::string user_name(std::string name);

}  // namespace kernwright
