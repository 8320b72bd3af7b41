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

[[noreturn]] void refuse_host_array(PyObject* value) {
  throw ArgumentError(
      format("a {} in host memory cannot be an operand beside a device's array: copy it to the "
             "device with "
             "kernwright.asarray() first",
             type_name(value)));
}

/// How weak a number of the host is that lies on the device.
Weak weak_kind(ScalarType type) { return is_floating(type) ? Weak::real : Weak::integer; }

}  // namespace

std::optional<ScalarOperand> scalar_operand(PyObject* value) {
  if (PyFloat_CheckExact(value)) return ScalarOperand::make(PyFloat_AS_DOUBLE(value));
  if (PyBool_Check(value)) return ScalarOperand::make(value == Py_True);
  if (PyLong_Check(value)) return ScalarOperand{read_number(value), Weak::integer};
  if (const auto type = type_scalar(Py_TYPE(value)))
    return ScalarOperand{read_number(value), Weak::none, *type};
  if (PyFloat_Check(value)) return ScalarOperand{read_number(value), Weak::real};
  if (PyComplex_Check(value)) return ScalarOperand{read_number(value), Weak::complex};
  return std::nullopt;
}

const Array* Operands::first_array() const noexcept {
  for (const kernels::Operand& operand : all()) {
    if (operand.array != nullptr) return operand.array;
  }
  return nullptr;
}

bool Operands::are_numbers() const noexcept {
  bool on_device = false;
  for (const kernels::Operand& operand : all()) {
    if (operand.number.weak == Weak::none) return false;
    on_device = on_device || operand.array != nullptr;
  }
  return on_device;
}

bool Operands::add(PyObject* value) {
  if (count_ == operands_.size()) return false;
  kernels::Operand& operand = operands_[count_];
  if (const Array* const ours = find_array(value)) {
    operand.array = ours;
    if (ours->is_number()) [[unlikely]]
      operand.number.weak = weak_kind(ours->type());
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
