// Names that mark a declaration as host code.
#pragma once

#include <string_view>

namespace kernwright {

/// Whether it is a host name of namespace std: "vector", "cout", "string".
bool is_host_std_name(std::string_view name);

/// Outside of it: "FILE", "cublasHandle_t", "host_vector".
bool is_host_type(std::string_view name);

/// Whether it is a host's namespace: "torch".
bool is_host_namespace(std::string_view name);

}  // namespace kernwright
