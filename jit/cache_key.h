// The identity of a compile: equal keys mean equal results.
#pragma once

#include "base/hash.h"
#include "jit/compiler.h"
#include "jit/include_closure.h"

namespace kernwright {

/// Hash of everything that decides what `request` compiles to: text and name of the source, every
/// option, names, target, contents of the included files, CUDA's header folders, path and version
/// of NVRTC. A pure function of its arguments.
Hash128 cache_key(const CompileRequest& request, const IncludeClosure& included,
                  const LoadedNvrtc& nvrtc);

}  // namespace kernwright
