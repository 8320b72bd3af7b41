// Elementwise operations by name, and the rules of promotion.
#include "base/errors.h"
#include "base/format.h"
#include "bindings/kernels/bind_kernels.h"
#include "bindings/kernels/elementwise_operand.h"
#include "bindings/kernels/kernel_calls.h"
#include "bindings/support/python_support.h"
#include "bindings/values/array_support.h"
#include "bindings/values/dtype.h"

#include <algorithm>
#include <string>

namespace kernwright::python {
namespace {

using kernels::Operation;
using kernels::Weak;

[[noreturn]] void refuse_operand(const std::string& name, std::size_t index, py::handle value) {
  throw ArgumentError(
      format("operand {} of {}() is {}, and must be an array of a device or a number: copy host "
             "data there with kernwright.asarray()",
             index + 1, name, short_repr(value)));
}

void read_operands(const std::string& name, const py::tuple& values, Operands& operands) {
  for (const py::handle value : values) {
    if (const Array* const array = find_array(value.ptr())) {
      operands.set_device(array->device());
      break;
    }
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!operands.add(py::handle(values[i]).ptr())) refuse_operand(name, i, values[i]);
  }
}

py::object compute(const std::string& name, const py::tuple& values, const py::object& out) {
  const auto operation = kernels::operation_from_name(name);
  if (!operation) throw InvalidArgument(format("there is no elementwise operation {}", name));
  Operands operands;
  read_operands(name, values, operands);
  const Array* const first = operands.first_array();
  if (out.is_none()) {
    if (first == nullptr) {
      return py::cast(kernels::elementwise(*operation, operands.all()));  // throws, with advice
    }
    const Array made = on_current_stream(*first, [&](const Stream& stream) {
      return kernels::elementwise(*operation, operands.all(), stream);
    });
    const bool is_number = operands.are_numbers() && made.type() != ScalarType::boolean;
    return py::cast(is_number ? made.as_number() : made);
  }
  const Array result = array_operand(out, "out");
  on_current_stream(result, [&](const Stream& stream) {
    kernels::write_elementwise(result, *operation, operands.all(), stream);
  });
  return out;
}

/// The type of an array, of a number with a type, or one that is named; else how weak a number is.
struct TypeOrWeak {
  std::optional<ScalarType> type;
  Weak weak = Weak::none;
};

TypeOrWeak read_type(py::handle value) {
  if (const Array* const array = find_array(value.ptr())) return {array->type()};
  const bool is_class = PyType_Check(value.ptr()) != 0;
  if (!is_class && !PyUnicode_Check(value.ptr())) {
    if (const auto number = scalar_operand(value.ptr())) {
      if (number->weak != Weak::none) return {std::nullopt, number->weak};
      return {number->type};
    }
  }
  return {scalar_argument(value)};
}

py::dtype result_type(const py::args& values) {
  std::optional<ScalarType> strong;
  Weak widest = Weak::none;
  for (const py::handle value : values) {
    const TypeOrWeak read = read_type(value);
    widest = std::max(widest, read.weak);
    if (read.type) strong = strong ? kernels::promote(*strong, *read.type) : *read.type;
  }
  if (strong) return dtype_object(kernels::promote(*strong, widest));
  if (widest != Weak::none) return dtype_object(kernels::default_type(widest));
  throw ArgumentError("result_type() needs at least one array, type or number");
}

bool can_cast(const py::object& from, const py::object& to, const std::string& casting) {
  const Array* const array = find_array(from.ptr());
  const ScalarType source = array != nullptr ? array->type() : scalar_argument(from);
  const ScalarType target = scalar_argument(to);
  if (casting == "safe") return kernels::can_cast(source, target);
  if (casting == "same_kind") return kernels::can_cast_same_kind(source, target);
  throw InvalidArgument(format("casting is \"safe\" or \"same_kind\", not \"{}\"", casting));
}

}  // namespace

void bind_elementwise(py::module_& m) {
  m.def("_elementwise", &compute, py::arg("name"), py::arg("operands"),
        py::arg("out") = py::none());
  m.def("_as_number", &Array::as_number);
  m.def("_is_number", &Array::is_number);
  m.def("_result_type", &result_type);
  m.def("_set_default_dtype",
        [](const py::object& dtype) { kernels::set_default_real(scalar_argument(dtype)); });
  m.def("_promote_types", [](const py::object& a, const py::object& b) {
    return dtype_object(kernels::promote(scalar_argument(a), scalar_argument(b)));
  });
  m.def("_can_cast", &can_cast, py::arg("from_"), py::arg("to"), py::arg("casting"));
}

}  // namespace kernwright::python
