// The element types that arrays and kernel parameters share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace kernwright {

enum class ScalarType : std::uint8_t {
  boolean,
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  float16,
  bfloat16,
  float32,
  float64,
  float8_e4m3fn,
  float8_e5m2,
  complex64,
  complex128,
};

inline constexpr int kScalarTypeCount = 17;

/// Of one element in bytes, in the order of ScalarType. Powers of two.
inline constexpr std::uint8_t kScalarSizes[kScalarTypeCount] = {1, 1, 2, 4, 8, 1, 2, 4, 8,
                                                                2, 2, 4, 8, 1, 1, 8, 16};

/// Size of one element in bytes. Every launch asks for it many times, so it is no call.
constexpr std::size_t scalar_size(ScalarType type) noexcept {
  const auto index = static_cast<std::size_t>(type);
  return index < kScalarTypeCount ? kScalarSizes[index] : 0;
}
/// NumPy's or ml_dtypes' name: "bool", "int8", ..., "bfloat16", "float8_e4m3fn", "complex64".
std::string_view scalar_name(ScalarType type) noexcept;
/// The type of that name, or nothing.
std::optional<ScalarType> scalar_from_name(std::string_view name) noexcept;

bool is_signed_integer(ScalarType type) noexcept;
bool is_unsigned_integer(ScalarType type) noexcept;
bool is_floating(ScalarType type) noexcept;  ///< all real floating types
bool is_complex(ScalarType type) noexcept;
/// float16 or bfloat16.
constexpr bool is_half(ScalarType type) noexcept {
  return type == ScalarType::float16 || type == ScalarType::bfloat16;
}
/// float8_e4m3fn or float8_e5m2.
constexpr bool is_float8(ScalarType type) noexcept {
  return type == ScalarType::float8_e4m3fn || type == ScalarType::float8_e5m2;
}
/// The type of a complex type's two parts; any other type itself.
ScalarType real_part_type(ScalarType type) noexcept;

}  // namespace kernwright
