// Number encodings and fragment layouts for matrix tests, from the tables of the PTX manual.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kernwright::sim {

/// Bits of `value`, which the format must be able to hold exactly (normal numbers and zero).
inline std::uint32_t encode_float(double value, int exponent_bits, int mantissa_bits) {
  if (value == 0) return 0;
  int exponent = 0;
  const double mantissa = std::frexp(std::fabs(value), &exponent);  // in [0.5, 1)
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const auto fraction = static_cast<std::uint32_t>(std::ldexp(mantissa * 2 - 1, mantissa_bits));
  const auto biased = static_cast<std::uint32_t>(exponent - 1 + bias);
  return (value < 0 ? 1u << (exponent_bits + mantissa_bits) : 0u) | biased << mantissa_bits |
         fraction;
}

/// An element type of A or B.
struct ElementType {
  const char* name;
  int bits;
  bool is_signed = true;
  bool is(std::string_view other) const { return other == name; }
  std::uint64_t encode(double value) const {
    if (is("f16")) return encode_float(value, 5, 10);
    if (is("bf16")) return encode_float(value, 8, 7);
    if (is("tf32")) return std::bit_cast<std::uint32_t>(static_cast<float>(value));
    if (is("e4m3")) return encode_float(value, 4, 3);
    if (is("e5m2")) return encode_float(value, 5, 2);
    if (is("f64")) return std::bit_cast<std::uint64_t>(value);
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(value)) &
           ((std::uint64_t{1} << bits) - 1);
  }
  /// Small values that every format holds exactly.
  double sample(std::uint32_t seed) const {
    const int mixed = static_cast<int>((seed * 2654435761u) >> 27);  // 0 to 31
    if (bits == 1) return mixed & 1;
    if (!is_signed) return mixed % 16;
    return mixed % 16 - 8 == -8 && name[0] == 'e' ? 0 : mixed % 16 - 8;
  }
};

struct MatrixPlace {
  int row, column;
};

/// Where element `i` of a lane's A fragment lies (mma, `per_register` elements in a register).
inline MatrixPlace place_in_a(int lane, int i, int per_register, int m) {
  const int group = lane / 4, thread = lane % 4, reg = i / per_register, e = i % per_register;
  const int upper = m == 16 ? reg % 2 : 0, half = m == 16 ? reg / 2 : reg;
  return {group + 8 * upper, thread * per_register + e + half * 4 * per_register};
}
inline MatrixPlace place_in_b(int lane, int i, int per_register) {
  const int reg = i / per_register, e = i % per_register;
  return {lane % 4 * per_register + e + reg * 4 * per_register, lane / 4};
}
inline MatrixPlace place_in_c(int lane, int i) {
  return {lane / 4 + (i < 2 ? 0 : 8), lane % 4 * 2 + i % 2};
}

}  // namespace kernwright::sim
