// Numbers of PTX text: integers in four bases, decimal and hexadecimal floating point.
#pragma once

#include "sim/ptx/types.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace kernwright::sim::ptx {

/// A literal before its context is known. `bits` of an integer is its value, of a float its IEEE
/// pattern in `type` (f32 for 0f........, f64 for the rest).
struct Literal {
  Type type = Type::s64;  ///< s64, u64 (suffix U or too large for s64), f32 or f64
  std::uint64_t bits = 0;
  bool is_float() const noexcept { return type == Type::f32 || type == Type::f64; }
};

/// Nothing when `text` is no number or does not fit into 64 bits.
std::optional<Literal> parse_literal(std::string_view text) noexcept;

/// The literal as bits of `type`: floats are converted to f32 or f64, kept as a pattern for untyped
/// (b) types of their size. Nothing when a float meets an integer type or an integer a float type.
std::optional<std::uint64_t> literal_bits(const Literal& literal, Type type) noexcept;

/// The literal with its sign flipped.
Literal negate(const Literal& literal) noexcept;

}  // namespace kernwright::sim::ptx
