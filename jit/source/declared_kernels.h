// Whether the text of a source shows all its kernels.
#pragma once

#include "jit/source/kernel_scanner.h"
#include "jit/source/program_options.h"
#include "jit/source/source.h"

namespace kernwright {

/// Whether `declared`, of the source's own text, lists every kernel there can be: no macro, #if,
/// header or option may make others.
bool declares_all_kernels(const Source& source, const ProgramOptions& options,
                          const ScannedSource& declared);

}  // namespace kernwright
