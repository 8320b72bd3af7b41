// The macros defined by options and texts.
#pragma once

#include "jit/source/program_options.h"
#include "jit/source/source_lexer.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace kernwright {

/// A macro of the options: "N" or "MAX(a,b)", and its value, empty for a bare define.
using MacroDefinition = std::pair<std::string, std::string>;

/// The macros of `defines`, then those of -D in `extra`.
std::vector<MacroDefinition> macro_definitions(const ProgramOptions& options);

/// The options without macros, and the #define lines in their place.
ProgramOptions without_macros(ProgramOptions options);
std::string define_lines(const ProgramOptions& options);

/// Names of the macros of the options and of the #define lines of the text.
std::set<std::string> macro_names(const ProgramOptions& options, const TokenizedSource& source);

}  // namespace kernwright
