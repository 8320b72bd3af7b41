// Variables named "_".
#pragma once

#include "jit/source/program_options.h"
#include "jit/source/source.h"

namespace kernwright {

/// `options` with a macro that renames "_" if it is a name in the text and no macro yet. NVRTC
/// gives a global variable its own name in PTX, where "_" alone is none: ptxas would refuse it.
ProgramOptions with_underscore_renamed(const Source& source, ProgramOptions options);

}  // namespace kernwright
