// Checks that the formats share.
#pragma once

#include "array/array.h"
#include "base/errors.h"
#include "base/format.h"
#include "core/launch/launch_config.h"

#include <algorithm>

namespace kernwright::kernels {

inline constexpr std::uint32_t kFormatThreads = 256;

inline void require_numbers(ScalarType type, const char* what) {
  if (type != ScalarType::float16 && type != ScalarType::bfloat16 && type != ScalarType::float32)
    throw InvalidArgument(
        format("{} is float16, bfloat16 or float32, not {}", what, scalar_name(type)));
}

inline void require_type(const Array& array, ScalarType type, const char* what) {
  if (array.type() != type)
    throw InvalidArgument(format("{} is of {}, not {}", what, scalar_name(type), array.identify()));
}

inline void require_shape(const Array& array, const Shape& shape, const char* what) {
  if (array.shape() != shape)
    throw InvalidArgument(format("Incompatible dimensions: {} has the shape {}, not {}", what,
                                 shape_to_string(shape), shape_to_string(array.shape())));
}

inline void require_device_match(const Array& array, const Array& first, const char* what) {
  if (&array.device() != &first.device())
    throw InvalidArgument(format("{} is not on the same device: {} and {}", what, array.identify(),
                                 first.identify()));
}

/// A launch of threads that go on in steps of the grid.
inline LaunchConfig format_grid(std::uint64_t threads, const Stream& on) {
  LaunchConfig config;
  const std::uint64_t blocks = (threads + kFormatThreads - 1) / kFormatThreads;
  config.grid = {static_cast<std::uint32_t>(std::min<std::uint64_t>(blocks, 1 << 20))};
  config.block = {kFormatThreads};
  config.stream = on;
  return config;
}

}  // namespace kernwright::kernels
