// Reading Python numbers and writing them in the types of a kernel's parameters.
#include "bindings/values/scalar_value.h"

#include "base/format.h"
#include "base/small_float.h"
#include "bindings/support/python_support.h"
#include "bindings/values/dtype.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>

namespace kernwright::python {
namespace {

template <typename T>
T load(const void* from) noexcept {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <typename T>
Number integer_number(T value) noexcept {
  Number number;
  number.kind = Number::Kind::integer;
  number.negative = value < T{0};
  number.bits = static_cast<std::uint64_t>(value);
  return number;
}

Number real_number(double value) noexcept {
  Number number;
  number.kind = Number::Kind::real;
  number.real = value;
  return number;
}

Number complex_number(double real, double imaginary) noexcept {
  Number number;
  number.kind = Number::Kind::complex;
  number.real = real;
  number.imaginary = imaginary;
  return number;
}

Number bool_number(bool value) noexcept {
  Number number = integer_number(static_cast<int>(value));
  number.is_bool = true;
  return number;
}

Number read_int(PyObject* value) {
  int overflow = 0;
  const long long small = PyLong_AsLongLongAndOverflow(value, &overflow);
  if (overflow == 0) {
    if (small == -1 && PyErr_Occurred() != nullptr) throw py::error_already_set();
    return integer_number(small);
  }
  if (overflow > 0) {
    const unsigned long long large = PyLong_AsUnsignedLongLong(value);
    if (PyErr_Occurred() == nullptr) return integer_number(large);
    PyErr_Clear();
  }
  Number number;
  number.kind = Number::Kind::huge;
  number.negative = overflow < 0;
  number.real = PyLong_AsDouble(value);
  if (PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    number.real = std::copysign(std::numeric_limits<double>::infinity(), overflow);
  }
  return number;
}

Number read_scalar(ScalarType type, const void* from) noexcept {
  switch (type) {
    case ScalarType::boolean:
      return bool_number(load<std::uint8_t>(from) != 0);
    case ScalarType::int8:
      return integer_number(load<std::int8_t>(from));
    case ScalarType::int16:
      return integer_number(load<std::int16_t>(from));
    case ScalarType::int32:
      return integer_number(load<std::int32_t>(from));
    case ScalarType::int64:
      return integer_number(load<std::int64_t>(from));
    case ScalarType::uint8:
      return integer_number(load<std::uint8_t>(from));
    case ScalarType::uint16:
      return integer_number(load<std::uint16_t>(from));
    case ScalarType::uint32:
      return integer_number(load<std::uint32_t>(from));
    case ScalarType::uint64:
      return integer_number(load<std::uint64_t>(from));
    case ScalarType::float32:
      return real_number(load<float>(from));
    case ScalarType::float64:
      return real_number(load<double>(from));
    case ScalarType::complex64:
      return complex_number(load<std::complex<float>>(from).real(),
                            load<std::complex<float>>(from).imag());
    case ScalarType::complex128:
      return complex_number(load<std::complex<double>>(from).real(),
                            load<std::complex<double>>(from).imag());
    default:
      return real_number(decode_small_float(type, from));
  }
}

/// The Python number inside a ctypes scalar or a 0-d NumPy array; empty for anything else.
py::object inner_value(py::handle value) {
  static PyObject* simple =
      py::module_::import("_ctypes").attr("_SimpleCData").cast<py::object>().release().ptr();
  if (PyObject_IsInstance(value.ptr(), simple) == 1) {
    py::object inner = value.attr("value");
    return PyBytes_Check(inner.ptr()) || PyUnicode_Check(inner.ptr()) ? py::object() : inner;
  }
  if (py::isinstance<py::array>(value) && value.attr("ndim").cast<int>() == 0) {
    return value[py::tuple()];
  }
  return {};
}

Number read_unusual(PyObject* value) {
  // NumPy's float64 and complex128 are Python floats and complexes too, and were read before.
  if (PyFloat_Check(value)) return real_number(PyFloat_AS_DOUBLE(value));
  if (PyComplex_Check(value)) {
    return complex_number(PyComplex_RealAsDouble(value), PyComplex_ImagAsDouble(value));
  }
  if (const py::object inner = inner_value(value)) {
    return inner.ptr() == value ? Number{} : read_number(inner.ptr());
  }
  const bool is_array =
      PyObject_HasAttrString(value, "__len__") != 0 || PyObject_HasAttrString(value, "shape") != 0;
  if (!is_array && PyIndex_Check(value)) {
    const auto index = py::reinterpret_steal<py::object>(PyNumber_Index(value));
    if (!index) throw py::error_already_set();
    return read_int(index.ptr());
  }
  return {};
}

template <typename T>
Fit store_integer(const Number& number, void* to) noexcept {
  if (number.kind == Number::Kind::huge) return Fit::out_of_range;
  if (number.kind != Number::Kind::integer) return Fit::wrong_kind;
  if constexpr (std::numeric_limits<T>::is_signed) {
    const auto value = static_cast<std::int64_t>(number.bits);
    const bool fits = number.negative == (value < 0) && value >= std::numeric_limits<T>::min() &&
                      value <= std::numeric_limits<T>::max();
    if (!fits) return Fit::out_of_range;
  } else if (number.negative || number.bits > std::numeric_limits<T>::max()) {
    return Fit::out_of_range;
  }
  const T value = static_cast<T>(number.bits);
  std::memcpy(to, &value, sizeof value);
  return Fit::exact;
}

Fit store_bool(const Number& number, void* to) noexcept {
  if (number.kind == Number::Kind::huge) return Fit::out_of_range;
  if (number.kind != Number::Kind::integer) return Fit::wrong_kind;
  if (number.negative || number.bits > 1) return Fit::out_of_range;
  const auto value = static_cast<std::uint8_t>(number.bits);
  std::memcpy(to, &value, sizeof value);
  return Fit::exact;
}

/// The value as a double; integers beyond 2^53 are rounded as Python's float() does.
double as_double(const Number& number) noexcept {
  if (number.kind != Number::Kind::integer) return number.real;
  return number.negative ? static_cast<double>(static_cast<std::int64_t>(number.bits))
                         : static_cast<double>(number.bits);
}

Fit store_float(double value, void* to) noexcept {
  const auto narrow = static_cast<float>(value);
  std::memcpy(to, &narrow, sizeof narrow);
  return std::isinf(narrow) && std::isfinite(value) ? Fit::out_of_range : Fit::exact;
}

Fit store_real(const Number& number, ScalarType type, void* to) noexcept {
  if (number.kind == Number::Kind::none || number.kind == Number::Kind::complex) {
    return Fit::wrong_kind;
  }
  const double value = as_double(number);
  if (number.kind == Number::Kind::huge && std::isinf(value)) return Fit::out_of_range;
  if (type == ScalarType::float32) return store_float(value, to);
  if (type != ScalarType::float64) {
    return encode_small_float(value, type, to) ? Fit::exact : Fit::out_of_range;
  }
  std::memcpy(to, &value, sizeof value);
  return Fit::exact;
}

Fit store_complex(const Number& number, ScalarType type, void* to) noexcept {
  if (number.kind == Number::Kind::none) return Fit::wrong_kind;
  const bool wide = type == ScalarType::complex128;
  Number part = real_number(as_double(number));
  part.kind = number.kind == Number::Kind::huge ? Number::Kind::huge : Number::Kind::real;
  const ScalarType part_type = wide ? ScalarType::float64 : ScalarType::float32;
  const Fit real = store_real(part, part_type, to);
  const Fit imaginary =
      store_real(real_number(number.imaginary), part_type, static_cast<char*>(to) + (wide ? 8 : 4));
  return real == Fit::exact ? imaginary : real;
}

}  // namespace

Number read_number(PyObject* value) {
  if (PyFloat_CheckExact(value)) return real_number(PyFloat_AS_DOUBLE(value));
  if (PyBool_Check(value)) return bool_number(value == Py_True);
  if (PyLong_Check(value)) return read_int(value);
  if (const auto type = scalar_of_type(Py_TYPE(value))) {
    return read_scalar(*type, scalar_bytes(value));
  }
  return read_unusual(value);
}

Fit encode(const Number& number, ScalarType type, void* to) noexcept {
  switch (type) {
    case ScalarType::boolean:
      return store_bool(number, to);
    case ScalarType::int8:
      return store_integer<std::int8_t>(number, to);
    case ScalarType::int16:
      return store_integer<std::int16_t>(number, to);
    case ScalarType::int32:
      return store_integer<std::int32_t>(number, to);
    case ScalarType::int64:
      return store_integer<std::int64_t>(number, to);
    case ScalarType::uint8:
      return store_integer<std::uint8_t>(number, to);
    case ScalarType::uint16:
      return store_integer<std::uint16_t>(number, to);
    case ScalarType::uint32:
      return store_integer<std::uint32_t>(number, to);
    case ScalarType::uint64:
      return store_integer<std::uint64_t>(number, to);
    case ScalarType::complex64:
    case ScalarType::complex128:
      return store_complex(number, type, to);
    default:
      return store_real(number, type, to);
  }
}

std::string range_text(ScalarType type) {
  switch (type) {
    case ScalarType::boolean:
      return "0 ... 1";
    case ScalarType::float16:
      return "-65504 ... 65504";
    case ScalarType::bfloat16:
      return "-3.39e38 ... 3.39e38";
    case ScalarType::float32:
    case ScalarType::complex64:
      return "-3.40e38 ... 3.40e38";
    case ScalarType::float8_e4m3fn:
      return "-448 ... 448";
    case ScalarType::float8_e5m2:
      return "-57344 ... 57344";
    case ScalarType::float64:
    case ScalarType::complex128:
      return "-1.80e308 ... 1.80e308";
    default:
      break;
  }
  const int bits = static_cast<int>(scalar_size(type)) * 8;
  if (is_unsigned_integer(type)) return format("0 ... {}", ~std::uint64_t{0} >> (64 - bits));
  const std::int64_t largest = static_cast<std::int64_t>(~std::uint64_t{0} >> (65 - bits));
  return format("{} ... {}", -largest - 1, largest);
}

}  // namespace kernwright::python
