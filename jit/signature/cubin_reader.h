// Kernels, their parameters and variables in a cubin, from its ELF tables.
#pragma once

#include "jit/signature/ptx_parameters.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernwright {

struct CubinKernel {
  std::string lowered;
  /// Sizes, in order. Nothing where the cubin does not tell them in a form that is known here.
  std::optional<std::vector<PtxParameter>> parameters;
};

struct CubinContents {
  std::vector<CubinKernel> kernels;
  std::vector<std::string> variables;  ///< lowered names
};

/// Throws Error for a cubin that is cut short or damaged.
CubinContents read_cubin(std::string_view cubin);

}  // namespace kernwright
