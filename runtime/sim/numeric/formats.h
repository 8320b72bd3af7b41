// The binary floating-point formats of PTX as compile-time descriptions.
//
// Everything in this folder lives in the namespace of its instruction-set build, because its code
// is compiled once for each (numeric/isa_namespace.h says why).
#pragma once

#include "sim/numeric/isa_namespace.h"

#include <cstdint>

namespace kernwright::sim::KW_SIM_NS::numeric {

/// sign, kExponentBits, kMantissaBits; IEEE encoding of subnormals. kMax is the largest finite
/// magnitude, kInfinity is 0 where the format has none. kShift: empty bits below the mantissa.
template <int kExponent, int kMantissa, std::uint64_t kLargest, std::uint64_t kInf,
          std::uint64_t kQuietNan, int kEmptyBits = 0>
struct Format {
  static constexpr int kExponentBits = kExponent;
  static constexpr int kMantissaBits = kMantissa;
  static constexpr int kBias = (1 << (kExponent - 1)) - 1;
  static constexpr int kMinExponent = 1 - kBias;
  static constexpr int kSignShift = kExponent + kMantissa;
  static constexpr int kShift = kEmptyBits;
  static constexpr std::uint64_t kMax = kLargest;
  static constexpr std::uint64_t kInfinity = kInf;
  static constexpr std::uint64_t kNan = kQuietNan;  ///< the NaN that GPUs answer with
};

using F64 = Format<11, 52, 0x7fefffffffffffff, 0x7ff0000000000000, 0x7fffffffffffffff>;
using F32 = Format<8, 23, 0x7f7fffff, 0x7f800000, 0x7fffffff>;
using F16 = Format<5, 10, 0x7bff, 0x7c00, 0x7fff>;
using BF16 = Format<8, 7, 0x7f7f, 0x7f80, 0x7fff>;
using TF32 = Format<8, 10, 0x3fbff, 0x3fc00, 0x3ffff, 13>;  ///< in the upper bits of 32
using E4M3 = Format<4, 3, 0x7e, 0, 0x7f>;
using E5M2 = Format<5, 2, 0x7b, 0x7c, 0x7f>;

}  // namespace kernwright::sim::KW_SIM_NS::numeric
