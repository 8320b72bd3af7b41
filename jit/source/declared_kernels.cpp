// Looks for possible sources of kernels not shown by the text.
#include "jit/source/declared_kernels.h"

#include <algorithm>

namespace kernwright {

bool declares_all_kernels(const Source& source, const ProgramOptions& options,
                          const ScannedSource& declared) {
  const bool found_elsewhere = !options.headers.empty() || !options.include_dirs.empty();
  const bool includes = source.text.find("include") != std::string::npos;
  return declared.is_whole && !(found_elsewhere && includes) && options.extra.empty() &&
         std::none_of(options.defines.begin(), options.defines.end(), [](const auto& define) {
           return define.second.find("__global__") != std::string::npos;
         });
}

}  // namespace kernwright
