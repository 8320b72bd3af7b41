// The parts named after the operands of video instructions (%r1.b2, %r2.h10, -%r3), packed into one
// number for the handler.
#pragma once

#include <cstdint>

namespace kernwright::sim::ptx {

/// The selector after one operand.
struct Selector {
  bool given = false;
  bool negated = false;  ///< a minus in front (vmad)
  /// Scalar instructions: 1 to 4 = .b0 to .b3, 5 and 6 = .h0 and .h1. Of two or four parts: 4 bits
  /// for each part, its part of b:a; as a destination 1 bit for each written part.
  std::uint16_t parts = 0;
};

/// Instruction::selectors holds those of operands 0 (d) to 3 (c); none at all is 0.
constexpr std::uint64_t pack_selector(Selector selector, std::size_t operand) {
  if (operand == 3) return selector.negated ? std::uint64_t{1} << 60 : 0;
  const std::uint64_t bits =
      selector.parts | (selector.given ? 1u << 16 : 0u) | (selector.negated ? 1u << 17 : 0u);
  return bits << (20 * operand);
}

constexpr Selector unpack_selector(std::uint64_t packed, std::size_t operand) {
  if (operand == 3) return {false, (packed >> 60 & 1) != 0, 0};
  const std::uint64_t bits = packed >> (20 * operand);
  return {(bits >> 16 & 1) != 0, (bits >> 17 & 1) != 0, static_cast<std::uint16_t>(bits)};
}

}  // namespace kernwright::sim::ptx
