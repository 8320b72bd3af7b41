// Reading Python numbers.
#include "bindings/values/scalar_value.h"

#include "bindings/support/python_support.h"
#include "bindings/values/dtype.h"

#include <cmath>
#include <limits>

namespace kernwright::python {
namespace {

Number read_int(PyObject* value) {
  int overflow = 0;
  const long long small = PyLong_AsLongLongAndOverflow(value, &overflow);
  if (overflow == 0) {
    if (small == -1 && PyErr_Occurred() != nullptr) throw py::error_already_set();
    return Number::make(std::int64_t{small});
  }
  if (overflow > 0) {
    const unsigned long long large = PyLong_AsUnsignedLongLong(value);
    if (PyErr_Occurred() == nullptr) return Number::make(std::uint64_t{large});
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

/// The Python number inside a ctypes scalar or a 0-d NumPy array; empty for anything else.
py::object inner_value(py::handle value) {
  static constinit KeptObject simple;
  if (PyObject_IsInstance(value.ptr(), simple.member("_ctypes", "_SimpleCData")) == 1) {
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
  if (PyFloat_Check(value)) return Number::make(PyFloat_AS_DOUBLE(value));
  if (PyComplex_Check(value)) {
    return Number::make(PyComplex_RealAsDouble(value), PyComplex_ImagAsDouble(value));
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

}  // namespace

Number read_number(PyObject* value) {
  if (PyFloat_CheckExact(value)) return Number::make(PyFloat_AS_DOUBLE(value));
  if (PyBool_Check(value)) return Number::make(std::uint64_t{value == Py_True ? 1U : 0U});
  if (PyLong_Check(value)) return read_int(value);
  if (const auto type = type_scalar(Py_TYPE(value))) {
    return Number::read(*type, scalar_bytes(value));
  }
  return read_unusual(value);
}

}  // namespace kernwright::python
