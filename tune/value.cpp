// Spelling and equality of values.
#include "tune/value.h"

#include "base/format.h"

namespace kernwright {
namespace {

/// The shortest digits for the same number, with a point: 1.0, 0.1, 1e+30.
std::string real_text(double value) {
  std::string text = format("{}", value);  // NOTE: std::to_chars of a double has tables of 100 kB
  if (text.find_first_not_of("-0123456789") == std::string::npos) text += ".0";
  return text;
}

std::string quoted(const std::string& text) {
  const char quote = text.find('\'') == std::string::npos ? '\'' : '"';
  std::string result(1, quote);
  for (const char c : text) {
    if (c == quote || c == '\\') result += '\\';
    if (c == '\n') {
      result += "\\n";
    } else {
      result += c;
    }
  }
  return result + quote;
}

}  // namespace

std::string value_text(const Value& value) {
  if (const auto* boolean = std::get_if<bool>(&value)) return *boolean ? "True" : "False";
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return format("{}", *integer);
  if (const auto* real = std::get_if<double>(&value)) return real_text(*real);
  return quoted(std::get<std::string>(value));
}

bool values_equal(const Value& a, const Value& b) {
  return scalars_equal(Scalar::from(a), Scalar::from(b));
}

Scalar Scalar::from(const Value& value) {
  if (const auto* boolean = std::get_if<bool>(&value)) return from(*boolean);
  if (const auto* number = std::get_if<std::int64_t>(&value)) return from(*number);
  if (const auto* floating = std::get_if<double>(&value)) return from(*floating);
  return from(std::get<std::string>(value));
}

Value Scalar::to_value() const {
  switch (kind) {
    case Kind::boolean:
      return integer != 0;
    case Kind::integer:
      return integer;
    case Kind::real:
      return real;
    default:
      return *text;
  }
}

bool is_true(const Scalar& value) {
  if (value.is_text()) return !value.text->empty();
  return value.is_real() ? value.real != 0.0 : value.integer != 0;
}

bool scalars_equal(const Scalar& a, const Scalar& b) {
  if (a.is_text() || b.is_text()) return a.is_text() && b.is_text() && *a.text == *b.text;
  if (a.is_integral() && b.is_integral()) return a.integer == b.integer;
  // NOTE: long double holds every 64-bit integer exactly, so that 2**53 + 1 differs from 2.0**53.
  const auto exact = [](const Scalar& s) {
    return s.is_real() ? static_cast<long double>(s.real) : static_cast<long double>(s.integer);
  };
  return exact(a) == exact(b);
}

}  // namespace kernwright
