// Number literals.
#include "sim/ptx/parse/literal.h"

#include <bit>
#include <charconv>

namespace kernwright::sim::ptx {
namespace {

std::optional<std::uint64_t> digits(std::string_view text, int base) noexcept {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value, base);
  if (text.empty() || result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return value;
}

std::optional<Literal> parse_integer(std::string_view text) noexcept {
  bool is_unsigned = false;
  if (text.back() == 'U') {
    is_unsigned = true;
    text.remove_suffix(1);
  }
  int base = 10;
  if (text.size() > 1 && text[0] == '0') {
    const char mark = text[1];
    base = mark == 'x' || mark == 'X' ? 16 : mark == 'b' || mark == 'B' ? 2 : 8;
    text.remove_prefix(base == 8 ? 1 : 2);
  }
  const std::optional<std::uint64_t> value = digits(text, base);
  if (!value) return std::nullopt;
  const bool large = (*value >> 63) != 0;
  return Literal{is_unsigned || large ? Type::u64 : Type::s64, *value};
}

std::optional<Literal> parse_decimal_float(std::string_view text) noexcept {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return Literal{Type::f64, std::bit_cast<std::uint64_t>(value)};
}

}  // namespace

std::optional<Literal> parse_literal(std::string_view text) noexcept {
  if (text.empty()) return std::nullopt;
  if (text.size() > 2 && text[0] == '0') {
    const char mark = text[1];
    const bool is_f32 = mark == 'f' || mark == 'F';
    const bool is_f64 = mark == 'd' || mark == 'D';
    if (is_f32 || is_f64) {
      if (text.size() != (is_f32 ? 10u : 18u)) return std::nullopt;
      const std::optional<std::uint64_t> bits = digits(text.substr(2), 16);
      if (!bits) return std::nullopt;
      return Literal{is_f32 ? Type::f32 : Type::f64, *bits};
    }
    if (mark == 'x' || mark == 'X') return parse_integer(text);
  }
  if (text.find_first_of(".eE") != std::string_view::npos) return parse_decimal_float(text);
  return parse_integer(text);
}

std::optional<std::uint64_t> literal_bits(const Literal& literal, Type type) noexcept {
  const bool to_f32 = type == Type::f32;
  const bool to_f64 = type == Type::f64;
  if (!literal.is_float()) {
    if (to_f32 || to_f64) return std::nullopt;
    return literal.bits;
  }
  const bool from_f32 = literal.type == Type::f32;
  if ((to_f32 || type == Type::b32) && from_f32) return literal.bits;
  if ((to_f64 || type == Type::b64) && !from_f32) return literal.bits;
  if (to_f32) {
    const auto narrow = static_cast<float>(std::bit_cast<double>(literal.bits));
    return std::bit_cast<std::uint32_t>(narrow);
  }
  if (to_f64) {
    const auto pattern = static_cast<std::uint32_t>(literal.bits);
    return std::bit_cast<std::uint64_t>(static_cast<double>(std::bit_cast<float>(pattern)));
  }
  return std::nullopt;
}

Literal negate(const Literal& literal) noexcept {
  if (literal.type == Type::f32) return {Type::f32, literal.bits ^ 0x80000000u};
  if (literal.type == Type::f64) return {Type::f64, literal.bits ^ (std::uint64_t{1} << 63)};
  return {Type::s64, 0 - literal.bits};
}

}  // namespace kernwright::sim::ptx
