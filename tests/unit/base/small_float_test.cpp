// Small floats against their definitions: every pattern comes back, and halves round to even.
#include "base/small_float.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

using namespace kernwright;

namespace {

std::uint16_t bits_of(double value, ScalarType type, bool fits = true) {
  std::uint16_t bits = 0;
  CHECK(encode_small_float(value, type, &bits) == fits);
  return bits;
}

}  // namespace

TEST_CASE("small float: every value comes back as the same bits") {
  for (const ScalarType type : {ScalarType::float16, ScalarType::bfloat16,
                                ScalarType::float8_e4m3fn, ScalarType::float8_e5m2}) {
    CAPTURE(scalar_name(type));
    const std::uint32_t patterns = 1U << (8 * scalar_size(type));
    for (std::uint32_t pattern = 0; pattern < patterns; ++pattern) {
      const auto bits = static_cast<std::uint16_t>(pattern);
      const double value = decode_small_float(type, &bits);
      if (!std::isnan(value)) REQUIRE(bits_of(value, type) == bits);
    }
  }
}

TEST_CASE("small float: rounding, and what is beyond the range") {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  CHECK(bits_of(1 + std::ldexp(1, -11), ScalarType::float16) == 0x3c00);
  CHECK(bits_of(1 + 3 * std::ldexp(1, -11), ScalarType::float16) == 0x3c02);
  CHECK(bits_of(65519, ScalarType::float16) == 0x7bff);
  CHECK(bits_of(65520, ScalarType::float16, false) == 0x7c00);
  CHECK(bits_of(-1e300, ScalarType::bfloat16, false) == 0xff80);
  CHECK(bits_of(kInf, ScalarType::float8_e5m2) == 0x7c);
  CHECK(bits_of(464, ScalarType::float8_e4m3fn) == 0x7e);
  CHECK(bits_of(465, ScalarType::float8_e4m3fn, false) == 0x7f);
  CHECK(bits_of(std::ldexp(1, -25), ScalarType::float16) == 0);
  CHECK(bits_of(-0.0, ScalarType::bfloat16) == 0x8000);
}
