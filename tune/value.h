// Values of tuning parameters, and their form inside expressions.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

namespace kernwright {

/// A value of a parameter or of the problem.
using Value = std::variant<bool, std::int64_t, double, std::string>;

/// As Python writes it: True, 3, 0.5, 'row'.
std::string value_text(const Value& value);

/// Python's equality: True == 1 == 1.0.
bool values_equal(const Value& a, const Value& b);

/// A value without ownership: the owner of `text` must live longer.
struct Scalar {
  enum class Kind : std::uint8_t { boolean, integer, real, text };

  Kind kind = Kind::integer;
  union {
    std::int64_t integer;  ///< also of a boolean: 0 or 1
    double real;
    const std::string* text;
  };

  Scalar() : integer(0) {}
  static Scalar from(bool value) { return Scalar(Kind::boolean, value ? 1 : 0); }
  static Scalar from(std::int64_t value) { return Scalar(Kind::integer, value); }
  static Scalar from(double value) {
    Scalar result;
    result.kind = Kind::real;
    result.real = value;
    return result;
  }
  static Scalar from(const std::string& value) {
    Scalar result;
    result.kind = Kind::text;
    result.text = &value;
    return result;
  }
  /// Refers to the string inside `value`, if there is one.
  static Scalar from(const Value& value);

  bool is_text() const { return kind == Kind::text; }
  bool is_real() const { return kind == Kind::real; }
  bool is_integral() const { return kind == Kind::boolean || kind == Kind::integer; }
  double as_real() const { return is_real() ? real : static_cast<double>(integer); }
  Value to_value() const;

 private:
  Scalar(Kind its_kind, std::int64_t value) : kind(its_kind), integer(value) {}
};

/// Python's truth: not zero, not empty.
bool is_true(const Scalar& value);

/// Python's equality.
bool scalars_equal(const Scalar& a, const Scalar& b);

}  // namespace kernwright
