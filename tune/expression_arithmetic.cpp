// Arithmetic and comparison as Python has them, on 64-bit integers and doubles.
#include "tune/expression_arithmetic.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace kernwright {
namespace {

constexpr const char* kOverflow = "the integer result does not fit 64 bits";
constexpr const char* kDivisionByZero = "division by zero";
constexpr const char* kNotNumbers = "this operation needs numbers, not strings";
constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();

const char* put(std::int64_t value, bool overflow, Scalar& result) {
  result = Scalar::from(value);
  return overflow ? kOverflow : nullptr;
}

std::uint64_t magnitude(std::int64_t value) {
  return value < 0 ? ~static_cast<std::uint64_t>(value) + 1 : static_cast<std::uint64_t>(value);
}

/// a / b rounded once, also if a or b is no double: the quotient has at least 55 bits, and its last
/// bit tells whether there was a remainder.
double true_quotient(std::int64_t a, std::int64_t b) {
  if (a == 0) return b < 0 ? -0.0 : 0.0;
  const std::uint64_t dividend = magnitude(a);
  const std::uint64_t divisor = magnitude(b);
  const auto width = [](std::uint64_t bits) { return static_cast<int>(std::bit_width(bits)); };
  const int shift = std::max(0, 56 + width(divisor) - width(dividend));
  // NOTE: 63 + 56 + 1 bits at most.
  __extension__ using Wide = unsigned __int128;
  const Wide scaled = static_cast<Wide>(dividend) << shift;
  auto quotient = static_cast<std::uint64_t>(scaled / divisor);
  if (scaled % divisor != 0) quotient |= 1;
  const double result = std::ldexp(static_cast<double>(quotient), -shift);
  return (a < 0) != (b < 0) ? -result : result;
}

const char* integer_power(std::int64_t base, std::int64_t exponent, Scalar& result) {
  std::int64_t value = 1;
  bool overflow = false;
  for (auto rest = static_cast<std::uint64_t>(exponent); rest != 0; rest >>= 1) {
    if ((rest & 1) != 0) overflow |= __builtin_mul_overflow(value, base, &value);
    if (rest > 1) overflow |= __builtin_mul_overflow(base, base, &base);
    if (overflow) return kOverflow;
  }
  return put(value, false, result);
}

const char* shift(bool left, std::int64_t value, std::int64_t count, Scalar& result) {
  if (count < 0) return "a shift by a negative count";
  if (!left) return put(value >> std::min<std::int64_t>(count, 63), false, result);
  if (value == 0) return put(0, false, result);
  std::int64_t shifted = 0;
  if (count > 62 || __builtin_mul_overflow(value, std::int64_t{1} << count, &shifted))
    return value == -1 && count == 63 ? put(kLeast, false, result) : kOverflow;
  return put(shifted, false, result);
}

const char* compute_integers(Operation operation, std::int64_t a, std::int64_t b, Scalar& result) {
  std::int64_t value = 0;
  switch (operation) {
    case Operation::add: {
      const bool overflow = __builtin_add_overflow(a, b, &value);
      return put(value, overflow, result);
    }
    case Operation::subtract: {
      const bool overflow = __builtin_sub_overflow(a, b, &value);
      return put(value, overflow, result);
    }
    case Operation::multiply: {
      const bool overflow = __builtin_mul_overflow(a, b, &value);
      return put(value, overflow, result);
    }
    case Operation::divide:
      if (b == 0) return kDivisionByZero;
      result = Scalar::from(true_quotient(a, b));
      return nullptr;
    case Operation::floor_divide:
      if (b == 0) return kDivisionByZero;
      if (b == -1) return put(a == kLeast ? 0 : -a, a == kLeast, result);
      return put(a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0), false, result);
    case Operation::modulo:
      if (b == 0) return kDivisionByZero;
      if (b == -1) return put(0, false, result);
      value = a % b;
      return put(value != 0 && (value < 0) != (b < 0) ? value + b : value, false, result);
    case Operation::bit_and:
      return put(a & b, false, result);
    case Operation::bit_or:
      return put(a | b, false, result);
    case Operation::bit_xor:
      return put(a ^ b, false, result);
    case Operation::shift_left:
    case Operation::shift_right:
      return shift(operation == Operation::shift_left, a, b, result);
    default:
      return integer_power(a, b, result);
  }
}

/// Python's divmod of floats: the remainder has the divisor's sign.
void divide_floored(double a, double b, double& quotient, double& remainder) {
  remainder = std::fmod(a, b);
  double whole = (a - remainder) / b;
  if (remainder != 0) {
    if ((b < 0) != (remainder < 0)) {
      remainder += b;
      whole -= 1.0;
    }
  } else {
    remainder = std::copysign(0.0, b);
  }
  if (whole == 0) {
    quotient = std::copysign(0.0, a / b);
    return;
  }
  quotient = std::floor(whole);
  if (whole - quotient > 0.5) quotient += 1.0;
}

const char* real_power(double a, double b, double& result) {
  if (a == 0 && b < 0) return kDivisionByZero;
  if (a < 0 && std::isfinite(a) && std::isfinite(b) && b != std::floor(b))
    return "a negative number to a power with a fraction is not a real number";
  result = std::pow(a, b);
  if (std::isinf(result) && std::isfinite(a) && std::isfinite(b))
    return "the power does not fit a float";
  return nullptr;
}

const char* compute_reals(Operation operation, double a, double b, Scalar& result) {
  double value = 0;
  double other = 0;
  const char* failure = nullptr;
  switch (operation) {
    case Operation::add:
      value = a + b;
      break;
    case Operation::subtract:
      value = a - b;
      break;
    case Operation::multiply:
      value = a * b;
      break;
    case Operation::divide:
      if (b == 0) return kDivisionByZero;
      value = a / b;
      break;
    case Operation::floor_divide:
      if (b == 0) return kDivisionByZero;
      divide_floored(a, b, value, other);
      break;
    case Operation::modulo:
      if (b == 0) return kDivisionByZero;
      divide_floored(a, b, other, value);
      break;
    case Operation::power:
      failure = real_power(a, b, value);
      break;
    default:
      return "bit operations and shifts need integers";
  }
  result = Scalar::from(value);
  return failure;
}

const char* to_integer(const Scalar& operand, Scalar& result) {
  if (operand.is_integral()) return put(operand.integer, false, result);
  const double whole = std::trunc(operand.real);
  if (std::isnan(whole)) return "int() of NaN";
  if (!(whole >= -0x1p63 && whole < 0x1p63)) return kOverflow;
  return put(static_cast<std::int64_t>(whole), false, result);
}

}  // namespace

const char* compute_unary(Operation operation, const Scalar& operand, Scalar& result) {
  if (operation == Operation::logical_not || operation == Operation::to_boolean) {
    result = Scalar::from(is_true(operand) == (operation == Operation::to_boolean));
    return nullptr;
  }
  if (operand.is_text()) return kNotNumbers;
  if (operation == Operation::to_integer) return to_integer(operand, result);
  if (operation == Operation::to_real) {
    result = Scalar::from(operand.as_real());
    return nullptr;
  }
  if (operation == Operation::invert && operand.is_real()) return "~ wants an integer";
  if (operand.is_real()) {
    const double value = operand.real;
    result = Scalar::from(operation == Operation::negate     ? -value
                          : operation == Operation::absolute ? std::fabs(value)
                                                             : value);
    return nullptr;
  }
  const std::int64_t value = operand.integer;
  if (operation == Operation::invert) return put(~value, false, result);
  const bool negates =
      operation == Operation::negate || (operation == Operation::absolute && value < 0);
  if (!negates) return put(value, false, result);
  if (value == kLeast) return kOverflow;
  return put(-value, false, result);
}

const char* compute_binary(Operation operation, const Scalar& left, const Scalar& right,
                           Scalar& result) {
  if (left.is_text() || right.is_text()) return kNotNumbers;
  const bool integers = left.is_integral() && right.is_integral();
  const bool root = operation == Operation::power && right.is_integral() && right.integer < 0;
  if (!integers || root) return compute_reals(operation, left.as_real(), right.as_real(), result);
  const bool bits = operation == Operation::bit_and || operation == Operation::bit_or ||
                    operation == Operation::bit_xor;
  const bool booleans = left.kind == Scalar::Kind::boolean && right.kind == Scalar::Kind::boolean;
  const char* failure = compute_integers(operation, left.integer, right.integer, result);
  if (bits && booleans) result = Scalar::from(result.integer != 0);
  return failure;
}

namespace {

template <typename T>
bool holds(Comparison comparison, const T& a, const T& b) {
  switch (comparison) {
    case Comparison::less:
      return a < b;
    case Comparison::less_equal:
      return a <= b;
    case Comparison::greater:
      return a > b;
    default:
      return a >= b;
  }
}

}  // namespace

const char* compare_scalars(Comparison comparison, const Scalar& left, const Scalar& right,
                            bool& result) {
  if (comparison == Comparison::equal || comparison == Comparison::unequal) {
    result = scalars_equal(left, right) == (comparison == Comparison::equal);
  } else if (left.is_text() && right.is_text()) {
    result = holds(comparison, *left.text, *right.text);
  } else if (left.is_text() || right.is_text()) {
    return "strings and numbers have no order";
  } else if (left.is_integral() && right.is_integral()) {
    result = holds(comparison, left.integer, right.integer);
  } else {
    const auto exact = [](const Scalar& s) {
      return s.is_real() ? static_cast<long double>(s.real) : static_cast<long double>(s.integer);
    };
    result = holds(comparison, exact(left), exact(right));
  }
  return nullptr;
}

}  // namespace kernwright
