// Reading operands: our arrays and Python's numbers first.
#include "bindings/kernels/elementwise_operand.h"

#include "base/errors.h"
#include "base/format.h"
#include "bindings/array/dlpack.h"
#include "bindings/array/foreign.h"
#include "bindings/support/current.h"
#include "bindings/support/python_support.h"
#include "bindings/values/array_support.h"
#include "bindings/values/dtype.h"
#include "bindings/values/scalar_value.h"

#include <pybind11/numpy.h>

namespace kernwright::python {
namespace {

using kernels::ScalarOperand;
using kernels::Weak;

/// With the number's own type; the caller makes it weak where it has none.
ScalarOperand scalar_of(const Number& number) {
  ScalarOperand scalar;
  switch (number.kind) {
    case Number::Kind::huge:
      scalar.huge = true;
      [[fallthrough]];
    case Number::Kind::none:
    case Number::Kind::integer:
      scalar.kind = ScalarOperand::Kind::integer;
      break;
    case Number::Kind::real:
      scalar.kind = ScalarOperand::Kind::real;
      break;
    case Number::Kind::complex:
      scalar.kind = ScalarOperand::Kind::complex;
      break;
  }
  scalar.negative = number.negative;
  scalar.bits = number.bits;
  scalar.real = number.real;
  scalar.imaginary = number.imaginary;
  return scalar;
}

[[noreturn]] void refuse_host_array(PyObject* value) {
  throw ArgumentError(
      format("a {} in host memory cannot be an operand beside a device's array: copy it to the "
             "device with "
             "kernwright.asarray() first",
             type_name(value)));
}

}  // namespace

std::optional<ScalarOperand> scalar_operand(PyObject* value) {
  if (PyFloat_CheckExact(value)) return ScalarOperand::of(PyFloat_AS_DOUBLE(value));
  if (PyBool_Check(value)) return ScalarOperand::of(value == Py_True);
  if (PyLong_Check(value)) {
    ScalarOperand scalar = scalar_of(read_number(value));
    scalar.weak = Weak::integer;
    return scalar;
  }
  if (const auto type = scalar_of_type(Py_TYPE(value))) {
    ScalarOperand scalar = scalar_of(read_number(value));
    scalar.type = *type;
    return scalar;
  }
  if (!PyFloat_Check(value) && !PyComplex_Check(value)) return std::nullopt;
  ScalarOperand scalar = scalar_of(read_number(value));
  scalar.weak = PyFloat_Check(value) ? Weak::real : Weak::complex;
  return scalar;
}

const Array* Operands::first_array() const noexcept {
  for (const kernels::Operand& operand : all()) {
    if (operand.array != nullptr) return operand.array;
  }
  return nullptr;
}

bool Operands::add(PyObject* value) {
  if (count_ == operands_.size()) return false;
  kernels::Operand& operand = operands_[count_];
  if (const Array* const ours = array_of(value)) {
    operand.array = ours;
  } else if (const auto number = scalar_operand(value)) {
    operand.number = *number;
  } else {
    if (py::isinstance<py::array>(value)) refuse_host_array(value);
    Device& device = device_ != nullptr ? *device_ : current_device();
    std::optional<Array>& adopted = adopted_[count_];
    adopted = adopt_foreign(value, device, current_stream(device));
    if (!adopted) {
      DLPackPlace place;
      if (dlpack_place(value, place)) refuse_host_array(value);
      return false;
    }
    operand.array = &*adopted;
  }
  ++count_;
  return true;
}

}  // namespace kernwright::python
