// The options of cuModuleLoadDataEx: log buffers are filled as the real driver does.
#pragma once

#include "driver/driver_types.h"

#include <string_view>

namespace kernwright::sim {

/// A view of the caller's option arrays, checked on construction.
class JitOptions {
 public:
  /// Throws Failure INVALID_VALUE for missing arrays and unknown options.
  JitOptions(unsigned int count, CUjit_option* options, void** values);

  /// Write the text, cut to the caller's buffer, and put the number of bytes used into the size
  /// option's value.
  void write_error_log(std::string_view text) const;
  void write_info_log(std::string_view text) const;
  void write_wall_time(float milliseconds) const;

 private:
  void** find_value(CUjit_option option) const;
  void write_log(CUjit_option buffer, CUjit_option size, std::string_view text) const;

  unsigned int count_;
  CUjit_option* options_;
  void** values_;
};

}  // namespace kernwright::sim
