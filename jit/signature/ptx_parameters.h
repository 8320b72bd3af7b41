// Sizes of a kernel's parameters as its PTX declares them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernwright {

struct PtxParameter {
  std::size_t size = 0;       ///< bytes
  std::size_t alignment = 1;  ///< bytes
  bool is_pointer = false;    ///< the compiler marked it `.ptr`
  bool is_floating = false;   ///< `.f32` or `.f64`
  bool is_bytes = false;      ///< an array of bytes: a struct or the like
};

/// The .param declarations of `.entry name(...)`; nothing when the text has no such entry.
/// Never throws for odd text.
std::optional<std::vector<PtxParameter>> ptx_parameters(std::string_view ptx,
                                                        std::string_view name);

/// The text with blanks in the place of comments.
std::string without_ptx_comments(std::string_view ptx);

/// Names of all kernels defined by the text, in its order. Comments count as text.
std::vector<std::string> ptx_entries(std::string_view ptx);

/// Names of the variables defined outside of functions, in the text's order.
std::vector<std::string> ptx_variables(std::string_view ptx);

}  // namespace kernwright
