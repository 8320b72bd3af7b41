// The operators of Array: in the slots of its type, so no Python code and no look-up runs.
#include "base/errors.h"
#include "base/format.h"
#include "bindings/calls/recorded_calls.h"
#include "bindings/kernels/bind_kernels.h"
#include "bindings/kernels/elementwise_operand.h"
#include "bindings/kernels/kernel_calls.h"
#include "bindings/support/python_support.h"
#include "bindings/values/array_support.h"

namespace kernwright::python {
namespace {

using kernels::Operation;

/// Reads both sides; at least one is our array. False: Python is to try something else.
bool read_sides(PyObject* a, PyObject* b, Operands& operands) {
  const Array* const left = find_array(a);
  const Array* const ours = left != nullptr ? left : find_array(b);
  if (ours == nullptr) return false;
  operands.set_device(ours->device());
  if (operands.add(a) && operands.add(b)) return true;
  // Python would compare the identities of an array and a list of numbers.
  PyObject* const other = left != nullptr ? b : a;
  if (PyList_CheckExact(other) || PyTuple_CheckExact(other)) {
    throw ArgumentError(
        format("a {} cannot be an operand beside a device's array: convert it with "
               "kernwright.asarray() first",
               type_name(other)));
  }
  return false;
}

py::object run(Operation operation, const Operands& operands) {
  Array made = on_current_stream(*operands.first_array(), [&](const Stream& stream) {
    return kernels::elementwise(operation, operands.all(), stream);
  });
  const bool is_number = operands.are_numbers() && made.type() != ScalarType::boolean;
  return new_array_object(is_number ? made.as_number() : std::move(made));
}

PyObject* not_implemented() noexcept {
  Py_INCREF(Py_NotImplemented);
  return Py_NotImplemented;
}

template <Operation operation>
PyObject* unary(PyObject* a) noexcept {
  PyObject* const made = guarded<PyObject*>(nullptr, [&] {
    Operands operands;
    return operands.add(a) ? run(operation, operands).release().ptr() : not_implemented();
  });
  if (!is_recording()) [[likely]]
    return made;
  return note_operator(kernels::info(operation).name, made, a, nullptr);
}

PyObject* call_binary(Operation operation, PyObject* a, PyObject* b) noexcept {
  PyObject* const made = guarded<PyObject*>(nullptr, [&] {
    Operands operands;
    return read_sides(a, b, operands) ? run(operation, operands).release().ptr()
                                      : not_implemented();
  });
  if (!is_recording()) [[likely]]
    return made;
  return note_operator(kernels::info(operation).name, made, a, b);
}

template <Operation operation>
PyObject* binary(PyObject* a, PyObject* b) noexcept {
  return call_binary(operation, a, b);
}

template <Operation operation>
PyObject* in_place(PyObject* a, PyObject* b) noexcept {
  if (is_recording()) [[unlikely]]
    return record_in_place(kernels::info(operation).name, a, b);
  return guarded<PyObject*>(nullptr, [&] {
    const Array* const target = find_array(a);
    Operands operands;
    if (target == nullptr || !read_sides(a, b, operands)) return not_implemented();
    on_current_stream(*target, [&](const Stream& stream) {
      kernels::write_elementwise(*target, operation, operands.all(), stream);
    });
    Py_INCREF(a);
    return a;
  });
}

PyObject* power(PyObject* a, PyObject* b, PyObject* modulus) noexcept {
  return modulus == Py_None ? call_binary(Operation::pow, a, b) : not_implemented();
}

PyObject* power_in_place(PyObject* a, PyObject* b, PyObject* modulus) noexcept {
  return modulus == Py_None ? in_place<Operation::pow>(a, b) : not_implemented();
}

PyObject* quotient_and_rest(PyObject* a, PyObject* b) noexcept {
  return guarded<PyObject*>(nullptr, [&] {
    Operands operands;
    if (!read_sides(a, b, operands)) return not_implemented();
    const py::object quotient = run(Operation::floor_divide, operands);
    py::object rest = run(Operation::remainder, operands);
    if (is_recording()) [[unlikely]] {
      PyObject* const noted = note_operator("remainder", rest.release().ptr(), a, b);
      if (noted == nullptr) throw py::error_already_set();
      rest = py::reinterpret_steal<py::object>(noted);
    }
    return py::make_tuple(quotient, rest).release().ptr();
  });
}

/// Python asks the right side with the mirrored operator where the left one does not know.
PyObject* compare(PyObject* a, PyObject* b, int which) noexcept {
  switch (which) {
    case Py_LT:
      return call_binary(Operation::less, a, b);
    case Py_LE:
      return call_binary(Operation::less_equal, a, b);
    case Py_EQ:
      return call_binary(Operation::equal, a, b);
    case Py_NE:
      return call_binary(Operation::not_equal, a, b);
    case Py_GT:
      return call_binary(Operation::greater, a, b);
    default:
      return call_binary(Operation::greater_equal, a, b);
  }
}

/// The methods behind the operators, for callers by name: x.__add__(y).
void define_methods(py::handle type) {
  const auto define = [&](const char* name, auto&& call) {
    type.attr(name) =
        py::cpp_function(std::forward<decltype(call)>(call), py::name(name), py::is_method(type));
  };
  const auto checked = [](PyObject* made) {
    if (made == nullptr) throw py::error_already_set();
    return py::reinterpret_steal<py::object>(made);
  };
  const auto one = [&](const char* name, unaryfunc call) {
    define(name, [=](const py::object& a) { return checked(call(a.ptr())); });
  };
  const auto two = [&](const char* name, binaryfunc call) {
    define(name, [=](const py::object& a, const py::object& b) {
      return checked(call(a.ptr(), b.ptr()));
    });
  };
  const auto mirrored = [&](const char* name, binaryfunc call) {
    define(name, [=](const py::object& a, const py::object& b) {
      return checked(call(b.ptr(), a.ptr()));
    });
  };
#define KW_METHOD(name, operation)                           \
  two("__" #name "__", &binary<Operation::operation>);       \
  mirrored("__r" #name "__", &binary<Operation::operation>); \
  two("__i" #name "__", &in_place<Operation::operation>);
  KW_METHOD(add, add)
  KW_METHOD(sub, subtract)
  KW_METHOD(mul, multiply)
  KW_METHOD(truediv, divide)
  KW_METHOD(floordiv, floor_divide)
  KW_METHOD(mod, remainder)
  KW_METHOD(pow, pow)
  KW_METHOD(and, bitwise_and)
  KW_METHOD(or, bitwise_or)
  KW_METHOD(xor, bitwise_xor)
  KW_METHOD(lshift, bitwise_left_shift)
  KW_METHOD(rshift, bitwise_right_shift)
#undef KW_METHOD
  two("__divmod__", &quotient_and_rest);
  mirrored("__rdivmod__", &quotient_and_rest);
  one("__neg__", &unary<Operation::negative>);
  one("__pos__", &unary<Operation::positive>);
  one("__abs__", &unary<Operation::abs>);
  one("__invert__", &unary<Operation::bitwise_invert>);
  two("__lt__", &binary<Operation::less>);
  two("__le__", &binary<Operation::less_equal>);
  two("__eq__", &binary<Operation::equal>);
  two("__ne__", &binary<Operation::not_equal>);
  two("__gt__", &binary<Operation::greater>);
  two("__ge__", &binary<Operation::greater_equal>);
}

void set_arithmetic(PyNumberMethods& slots) noexcept {
  slots.nb_add = &binary<Operation::add>;
  slots.nb_subtract = &binary<Operation::subtract>;
  slots.nb_multiply = &binary<Operation::multiply>;
  slots.nb_true_divide = &binary<Operation::divide>;
  slots.nb_floor_divide = &binary<Operation::floor_divide>;
  slots.nb_remainder = &binary<Operation::remainder>;
  slots.nb_divmod = &quotient_and_rest;
  slots.nb_power = &power;
  slots.nb_negative = &unary<Operation::negative>;
  slots.nb_positive = &unary<Operation::positive>;
  slots.nb_absolute = &unary<Operation::abs>;
  slots.nb_inplace_add = &in_place<Operation::add>;
  slots.nb_inplace_subtract = &in_place<Operation::subtract>;
  slots.nb_inplace_multiply = &in_place<Operation::multiply>;
  slots.nb_inplace_true_divide = &in_place<Operation::divide>;
  slots.nb_inplace_floor_divide = &in_place<Operation::floor_divide>;
  slots.nb_inplace_remainder = &in_place<Operation::remainder>;
  slots.nb_inplace_power = &power_in_place;
}

void set_bits(PyNumberMethods& slots) noexcept {
  slots.nb_invert = &unary<Operation::bitwise_invert>;
  slots.nb_and = &binary<Operation::bitwise_and>;
  slots.nb_or = &binary<Operation::bitwise_or>;
  slots.nb_xor = &binary<Operation::bitwise_xor>;
  slots.nb_lshift = &binary<Operation::bitwise_left_shift>;
  slots.nb_rshift = &binary<Operation::bitwise_right_shift>;
  slots.nb_inplace_and = &in_place<Operation::bitwise_and>;
  slots.nb_inplace_or = &in_place<Operation::bitwise_or>;
  slots.nb_inplace_xor = &in_place<Operation::bitwise_xor>;
  slots.nb_inplace_lshift = &in_place<Operation::bitwise_left_shift>;
  slots.nb_inplace_rshift = &in_place<Operation::bitwise_right_shift>;
}

}  // namespace

void bind_operators(py::module_&) {
  const py::object type = py::type::of<Array>();
  define_methods(type);
  // Mutable values have no hash, and equality is element by element.
  type.attr("__hash__") = py::none();
  // NumPy's arrays and scalars leave operations with ours to the slots below.
  type.attr("__array_ufunc__") = py::none();
  // NOTE: an attribute set to the type fills its slot with a look-up of it: the slots come last.
  auto* const raw = reinterpret_cast<PyTypeObject*>(type.ptr());
  set_arithmetic(*raw->tp_as_number);
  set_bits(*raw->tp_as_number);
  raw->tp_richcompare = &compare;
  PyType_Modified(raw);
}

}  // namespace kernwright::python
