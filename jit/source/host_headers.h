// Texts in place of the host's headers, so sources for nvcc compile as they are: the C headers,
// those of the C++ library with a counterpart in cuda::std, cuda_runtime.h and its parts.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kernwright {

/// The part of the header <name> usable in kernels; nothing if it has no meaning in device code.
/// Its names are in namespace std and, for the C headers, in the global one too.
std::optional<std::string> host_header(std::string_view name);

/// Whether the text of this header includes CUDA's C++ library.
bool host_header_needs_library(std::string_view name);

/// Whether a name is of CUDA's own device headers or of those of the library: such an #include is
/// never the host's alone.
bool is_device_header(std::string_view name);

/// All these texts together: object code made with others is not the same.
const std::string& host_header_texts();

}  // namespace kernwright
