// Sizes of a kernel's parameters as its PTX declares them.
#pragma once

#include <cstddef>
#include <optional>
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

}  // namespace kernwright
