// Python numbers as C values, and their bytes in the type of a kernel or an array.
#pragma once

#include "base/scalar_type.h"

#include <pybind11/pybind11.h>
#include <complex>
#include <cstddef>
#include <cstdint>

namespace kernwright::python {

/// A number read from Python. `kind` names the field with its value.
struct Number {
  enum class Kind { none, integer, huge, real, complex };
  Kind kind = Kind::none;  ///< none: not a number
  bool is_bool = false;    ///< an integer made of a bool
  bool negative = false;   ///< of an integer: `bits` is its two's complement
  std::uint64_t bits = 0;  ///< integer: the value; huge ones do not fit 64 bits
  double real = 0;         ///< real and complex; also the value of a huge integer (may be inf)
  double imaginary = 0;
};

/// Reads a Python int, float, bool or complex, a NumPy or ml_dtypes scalar, a 0-d NumPy array, a
/// ctypes scalar, or an object with __index__. Allocates nothing for the first two families.
Number read_number(PyObject* value);

/// Why a number does not go into a type.
enum class Fit { exact, wrong_kind, out_of_range };

/// Writes `number` as `type` to `to`. Integers must fit; reals are rounded to nearest even, and a
/// finite one must not become infinite; NaN and inf pass. A real is no integer, a complex no real.
Fit encode(const Number& number, ScalarType type, void* to) noexcept;

/// "-128 ... 127", or the largest finite value of a floating type: for messages.
std::string range_text(ScalarType type);

}  // namespace kernwright::python
