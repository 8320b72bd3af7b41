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
  /// Sizes, in order. Nothing if the cubin does not give them in a known form.
  std::optional<std::vector<PtxParameter>> parameters;
};

struct CubinContents {
  std::vector<CubinKernel> kernels;
  std::vector<std::string> variables;  ///< lowered names
};

/// Throws Error for a truncated or damaged cubin.
CubinContents read_cubin(std::string_view cubin);

}  // namespace kernwright
