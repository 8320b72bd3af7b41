// The messages of the compiler's front end about a source text, without code generation.
#pragma once

#include "base/diagnostic.h"
#include "driver/nvrtc_loader.h"
#include "jit/source/cuda_headers.h"
#include "jit/source/program_options.h"
#include "jit/source/source.h"

#include <vector>

namespace kernwright {

/// Errors, warnings and hints for `source`, at its own lines; empty when there are none. Compiles
/// in this thread, as Compiler does; needs no device. Parses and checks only: templates are not
/// instantiated, so it takes a fraction of a compile's time and finds fewer errors in them. Without
/// `options.arch` the text is read for compute_80, or for the architecture whose features it names.
/// Throws InvalidArgument for options and texts invalid for every compiler, Timeout, Cancelled,
/// Interrupted. `places`: the folders to search for CUDA's headers. Thread-safe.
std::vector<Diagnostic> lint(const LoadedNvrtc& nvrtc, const Source& source,
                             const ProgramOptions& options = {},
                             const HeaderPlaces& places = HeaderPlaces::of_process());

}  // namespace kernwright
