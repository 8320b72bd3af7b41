// Conversion of numbers to element types.
#include "kernels_src/elementwise/scalar.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/small_float.h"

#include <cstring>
#include <string>

namespace kernwright::kernels {
namespace {

std::string text_of(const ScalarOperand& number) {
  if (number.huge) return format("{:g}", number.real);
  return number.negative ? format("{}", static_cast<std::int64_t>(number.bits))
                         : format("{}", number.bits);
}

void store_real(double value, ScalarType type, void* to) noexcept {
  if (type == ScalarType::float64) {
    std::memcpy(to, &value, sizeof value);
  } else if (type == ScalarType::float32) {
    const auto narrow = static_cast<float>(value);
    std::memcpy(to, &narrow, sizeof narrow);
  } else {
    (void)encode_small_float(value, type, to);
  }
}

}  // namespace

ScalarOperand ScalarOperand::of(bool value) noexcept {
  ScalarOperand number;
  number.bits = value ? 1 : 0;
  return number;
}

ScalarOperand ScalarOperand::of(std::int64_t value) noexcept {
  ScalarOperand number;
  number.weak = Weak::integer;
  number.negative = value < 0;
  number.bits = static_cast<std::uint64_t>(value);
  return number;
}

ScalarOperand ScalarOperand::of(double value) noexcept {
  ScalarOperand number;
  number.kind = Kind::real;
  number.weak = Weak::real;
  number.real = value;
  return number;
}

ScalarOperand ScalarOperand::of(std::complex<double> value) noexcept {
  ScalarOperand number;
  number.kind = Kind::complex;
  number.weak = Weak::complex;
  number.real = value.real();
  number.imaginary = value.imag();
  return number;
}

double ScalarOperand::as_double() const noexcept {
  if (kind != Kind::integer || huge) return real;
  return negative ? static_cast<double>(static_cast<std::int64_t>(bits))
                  : static_cast<double>(bits);
}

bool ScalarOperand::is_zero() const noexcept { return as_double() == 0 && imaginary == 0; }

bool ScalarOperand::fits(ScalarType integer_type) const noexcept {
  if (huge) return false;
  if (integer_type == ScalarType::boolean) return !negative && bits <= 1;
  const int width = 8 * static_cast<int>(scalar_size(integer_type));
  if (is_unsigned_integer(integer_type)) return !negative && (width == 64 || bits >> width == 0);
  const std::uint64_t limit = std::uint64_t{1} << (width - 1);
  return negative ? ~bits < limit : bits < limit;
}

void encode(const ScalarOperand& number, ScalarType type, void* to) {
  if (type == ScalarType::boolean) {
    const auto value = static_cast<std::uint8_t>(number.is_zero() ? 0 : 1);
    std::memcpy(to, &value, 1);
  } else if (is_complex(type)) {
    const ScalarType part = real_type_of(type);
    store_real(number.as_double(), part, to);
    store_real(number.imaginary, part, static_cast<char*>(to) + scalar_size(part));
  } else if (is_floating(type)) {
    store_real(number.as_double(), type, to);
  } else {
    if (!number.fits(type)) {
      throw ArgumentRangeError(
          format("{} is outside the range of {}; convert the array with "
                 "astype() first",
                 text_of(number), scalar_name(type)));
    }
    std::memcpy(to, &number.bits, scalar_size(type));  // the low bytes: little-endian hosts only
  }
}

}  // namespace kernwright::kernels
