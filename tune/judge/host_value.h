// A kernel argument on the host: an array, or a value passed unchanged.
#pragma once

#include "base/scalar_type.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kernwright {

/// An array in C order, or a single value. A value: copy freely.
struct HostValue {
  enum class Kind {
    array,    ///< goes into a buffer; the kernel gets its address
    integer,  ///< `integer`, whatever the width of the parameter
    real,     ///< `real`
    bytes,    ///< a struct: `bytes` as they are
    null,     ///< the null pointer
  };
  Kind kind = Kind::array;
  ScalarType dtype = ScalarType::float32;  ///< of an array's elements
  std::vector<std::int64_t> shape{};       ///< of an array; empty: one element
  std::vector<std::byte> bytes{};
  std::int64_t integer = 0;
  double real = 0;

  static HostValue make_integer(std::int64_t value);
  static HostValue make_real(double value);
  /// An array of elements in memory order. Throws InvalidArgument when the sizes do not match.
  static HostValue make_array(ScalarType dtype, std::vector<std::int64_t> shape,
                              std::span<const std::byte> bytes);
  /// An array from a vector, with one dimension.
  template <typename T>
  static HostValue from(ScalarType dtype, const std::vector<T>& elements) {
    return make_array(dtype, {static_cast<std::int64_t>(elements.size())},
                      std::as_bytes(std::span(elements)));
  }

  bool is_array() const noexcept { return kind == Kind::array; }
  /// Elements of an array; 1 for an array without dimensions.
  std::int64_t elements() const noexcept;
  /// "float32[3, 4]", "3", "0.5", "bytes[16]", "null"
  std::string to_string() const;
};

/// The element of an array as a number; of a complex one its real (`part` 0) or imaginary part.
/// Integers beyond 2**53 are rounded.
double element_as_double(ScalarType dtype, const std::byte* element, int part = 0) noexcept;

/// The element as text: "1.5", "-3", "(1+2j)", "nan".
std::string element_text(ScalarType dtype, const std::byte* element);

/// Whether a float or complex array holds a NaN; the index of the first, counted in elements.
std::optional<std::int64_t> first_nan(const HostValue& value);
/// The same for values that are not finite: NaN and infinities.
std::optional<std::int64_t> first_not_finite(const HostValue& value);

/// "[3, 4]" for the element at this index in C order; "" for an array without dimensions.
std::string index_text(std::span<const std::int64_t> shape, std::int64_t flat);

}  // namespace kernwright
