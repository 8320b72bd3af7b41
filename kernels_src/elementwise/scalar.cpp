// Conversion of numbers to element types.
#include "kernels_src/elementwise/scalar.h"

#include "base/errors.h"
#include "base/format.h"

namespace kernwright::kernels {

ScalarOperand ScalarOperand::make(bool value) noexcept {
  return {Number::make(std::uint64_t{value ? 1U : 0U}), Weak::none, ScalarType::boolean};
}

ScalarOperand ScalarOperand::make(std::int64_t value) noexcept {
  return {Number::make(value), Weak::integer, ScalarType::boolean};
}

ScalarOperand ScalarOperand::make(double value) noexcept {
  return {Number::make(value), Weak::real, ScalarType::boolean};
}

void encode(const ScalarOperand& number, ScalarType type, void* to) {
  const Number& value = number.value;
  // A real number beyond the range is written, too.
  if (type == ScalarType::boolean) {
    const bool is_zero = value.as_double() == 0 && value.imaginary == 0;
    (void)kernwright::encode(Number::make(std::uint64_t{is_zero ? 0U : 1U}), type, to);
  } else if (is_complex(type)) {
    (void)kernwright::encode(Number::make(value.as_double(), value.imaginary), type, to);
  } else if (is_floating(type)) {
    (void)kernwright::encode(Number::make(value.as_double()), type, to);
  } else if (kernwright::encode(value, type, to) != Fit::exact) {
    throw ArgumentRangeError(
        format("{} is outside the range of {}; convert the array with "
               "astype() first",
               value.to_string(), scalar_name(type)));
  }
}

}  // namespace kernwright::kernels
