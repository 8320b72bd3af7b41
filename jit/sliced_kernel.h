// A kernel compiled once more, so that parts of its grid can be launched.
#pragma once

#include "core/kernel.h"
#include "core/module.h"
#include "jit/program.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kernwright {

/// The twin of a kernel, on the same device. Its parameters are those of SliceForm
/// (slice/slice_text.h) and then those of the kernel.
struct SlicedKernel {
  Kernel kernel;
  bool yields = false;
  bool asks_in_loop = false;  ///< each block stays for many tiles and asks in front of each
  /// __constant__ variables of the kernel's module and of the twin's: a launch of the twin needs
  /// the values of the first in the second.
  std::vector<std::pair<ModuleSymbol, ModuleSymbol>> constants = {};
  /// For reports: the twin's code, and the text as its author wrote it with its options; an empty
  /// text for object code.
  std::shared_ptr<const ObjectCode> code = nullptr;
  Source source = {};
  ProgramOptions options = {};

  std::size_t leading_parameters() const noexcept { return yields ? 4 : 2; }
};

/// Compiles and loads the twin of `kernel`, the kernel `name` of `program`, whose scope is `scope`.
/// Program::sliced() keeps it. Throws NotSliceable, and what a compile throws.
SlicedKernel make_sliced_kernel(const Program& program, ProgramScope scope, const Kernel& kernel,
                                const std::string& name, bool yields);

}  // namespace kernwright
