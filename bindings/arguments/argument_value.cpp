// Converters of parameters passed by value: numbers, vectors, structs.
#include "base/errors.h"
#include "base/format.h"
#include "bindings/arguments/argument.h"
#include "bindings/array/tensor_map_object.h"
#include "bindings/array/texture_object.h"
#include "bindings/support/python_support.h"
#include "bindings/values/array_support.h"
#include "bindings/values/dtype.h"
#include "bindings/values/scalar_value.h"

#include <pybind11/numpy.h>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>

namespace kernwright::python {
namespace {

/// "a float (2.5)": a value as messages call it.
std::string shown(PyObject* value) {
  return format("{} ({})", type_name(value), short_repr(value));
}

[[noreturn]] void refuse_value(const ArgumentPlan& plan, PyObject* value, std::string_view wanted,
                               LaunchFrame& frame) {
  frame.refuse(plan, format("got {}: {}", shown(value), wants_text(*plan.parameter, wanted)));
}

[[noreturn]] void refuse_number(const ArgumentPlan& plan, PyObject* value, ScalarType type,
                                LaunchFrame& frame) {
  std::string advice;
  if (find_array(value) != nullptr || py::hasattr(value, "__len__")) {
    advice = "; pass one number, such as x.item()";
  } else if (PyFloat_Check(value) && !is_floating(type)) {
    advice = "; convert it with int(...)";
  }
  frame.refuse(plan, wrong_kind_text(*plan.parameter, shown(value), type) + advice);
}

void write_number(const ArgumentPlan& plan, PyObject* value, ScalarType type, std::byte* slot,
                  LaunchFrame& frame) {
  if (find_array(value) != nullptr) refuse_number(plan, value, type, frame);
  switch (encode(read_number(value), type, slot)) {
    case Fit::exact:
      return;
    case Fit::wrong_kind:
      refuse_number(plan, value, type, frame);
    case Fit::out_of_range:
      frame.refuse_range(plan, out_of_range_text(*plan.parameter, short_repr(value), type));
  }
}

void convert_number(const ArgumentPlan& plan, PyObject* value, std::byte* slot,
                    LaunchFrame& frame) {
  write_number(plan, value, *plan.parameter->scalar, slot, frame);
}

/// Short cut for the commonest types; anything unusual takes the long way.
void convert_float(const ArgumentPlan& plan, PyObject* value, std::byte* slot, LaunchFrame& frame) {
  if (PyFloat_CheckExact(value)) {
    const double wide = PyFloat_AS_DOUBLE(value);
    const auto narrow = static_cast<float>(wide);
    if (!std::isinf(narrow) || std::isinf(wide)) {
      std::memcpy(slot, &narrow, sizeof narrow);
      return;
    }
  }
  convert_number(plan, value, slot, frame);
}

template <typename T>
void convert_integer(const ArgumentPlan& plan, PyObject* value, std::byte* slot,
                     LaunchFrame& frame) {
  if (PyLong_CheckExact(value)) {
    int overflow = 0;
    const long long wide = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow == 0 && wide >= std::numeric_limits<T>::min() &&
        wide <= std::numeric_limits<T>::max()) {
      const T narrow = static_cast<T>(wide);
      std::memcpy(slot, &narrow, sizeof narrow);
      return;
    }
  }
  convert_number(plan, value, slot, frame);
}

/// Copies the bytes of a bytes object, a ctypes structure, a NumPy structured scalar or 0-d array,
/// when there are exactly as many as the parameter has. False: `value` is none of these.
bool copy_bytes(const ArgumentPlan& plan, PyObject* value, std::byte* slot, LaunchFrame& frame) {
  if (PyObject_CheckBuffer(value) == 0) return false;
  Py_buffer view;
  if (PyObject_GetBuffer(value, &view, PyBUF_C_CONTIGUOUS) != 0) {
    PyErr_Clear();
    return false;
  }
  const auto size = static_cast<std::size_t>(view.len);
  const bool fits = size == plan.parameter->size;
  if (fits) std::memcpy(slot, view.buf, size);
  PyBuffer_Release(&view);
  if (!fits) {
    frame.refuse(plan, wrong_size_text(*plan.parameter, type_name(value), size));
  }
  return true;
}

/// The layout of a NumPy value or ctypes structure; nothing for plain bytes.
py::object find_layout(PyObject* value) {
  if (PyBytes_Check(value) || PyByteArray_Check(value) || PyMemoryView_Check(value)) return {};
  const py::handle object(value);
  if (py::hasattr(object, "dtype")) return object.attr("dtype");
  if (py::hasattr(object, "_fields_")) return py::type::of(object);
  return {};
}

/// copy_bytes() for a struct or vector; its layout must equal the value's.
bool copy_struct(const ArgumentPlan& plan, PyObject* value, std::byte* slot, LaunchFrame& frame) {
  if (!copy_bytes(plan, value, slot, frame)) return false;
  const Parameter& parameter = *plan.parameter;
  if (parameter.fields.empty() && parameter.lanes < 2) return true;
  if (const py::object layout = find_layout(value)) frame.check_layout(plan, layout);
  return true;
}

/// Copies the descriptor of a kw.TensorMap. False: `value` is none.
bool copy_tensor_map(const ArgumentPlan& plan, PyObject* value, std::byte* slot,
                     LaunchFrame& frame) {
  const TensorMapObject* const object = find_tensor_map(value);
  if (object == nullptr) return false;
  const TensorMap& map = object->map;
  if (plan.parameter->size != map.bytes().size()) {
    frame.refuse(plan, wrong_size_text(*plan.parameter, "a kw.TensorMap", map.bytes().size()));
  }
  if (&map.device() != &frame.device()) {
    frame.refuse(plan, other_device_text("a kw.TensorMap of memory", map.device(), frame.device()));
  }
  std::memcpy(slot, map.bytes().data(), map.bytes().size());
  if (object->array.owner() != nullptr) frame.note_use(object->array);
  return true;
}

/// A cudaTextureObject_t or cudaSurfaceObject_t, which is the handle, or any other integer of 64
/// bits.
void convert_handle(const ArgumentPlan& plan, PyObject* value, std::byte* slot,
                    LaunchFrame& frame) {
  const std::shared_ptr<TrackedObject>* const object = texture_or_surface(value);
  if (object == nullptr) return convert_number(plan, value, slot, frame);
  if (&(*object)->device() != &frame.device())
    frame.refuse(plan, format("got a {}, but the launch is on {}", (*object)->name(),
                              frame.device().identify()));
  const std::uint64_t handle = (*object)->handle();
  std::memcpy(slot, &handle, sizeof handle);
  frame.note_use(*object);
}

/// A Python or NumPy integer for a parameter of 16 bytes. False: `value` is none.
bool store_wide_integer(const ArgumentPlan& plan, PyObject* value, std::byte* slot,
                        LaunchFrame& frame) {
  const bool is_unsigned = plan.parameter->type.find("unsigned") != std::string::npos;
  if (PyIndex_Check(value) == 0) return false;
  const auto index = py::reinterpret_steal<py::object>(PyNumber_Index(value));
  if (!index) {  // a structured scalar, an array of several
    PyErr_Clear();
    return false;
  }
  try {
    const py::bytes bytes =
        index.attr("to_bytes")(plan.parameter->size, "little", py::arg("signed") = !is_unsigned);
    std::memcpy(slot, PyBytes_AS_STRING(bytes.ptr()), plan.parameter->size);
  } catch (py::error_already_set& error) {
    if (!error.matches(PyExc_OverflowError)) throw;
    frame.refuse_range(plan, format("got {}, outside {}; {}", short_repr(value),
                                    is_unsigned ? "0 ... 2**128 - 1" : "-2**127 ... 2**127 - 1",
                                    wants_text(*plan.parameter, "a smaller number")));
  }
  return true;
}

void convert_wide_integer(const ArgumentPlan& plan, PyObject* value, std::byte* slot,
                          LaunchFrame& frame) {
  const bool is_array = find_array(value) != nullptr;
  if (!is_array && store_wide_integer(plan, value, slot, frame)) return;
  if (!is_array && !PyFloat_Check(value) && copy_bytes(plan, value, slot, frame)) return;
  refuse_value(plan, value, "an integer, or its 16 bytes", frame);
}

void convert_nullptr(const ArgumentPlan& plan, PyObject* value, std::byte* slot,
                     LaunchFrame& frame) {
  if (value != Py_None) refuse_value(plan, value, "None", frame);
  std::memset(slot, 0, plan.parameter->size);
}

void convert_aggregate(const ArgumentPlan& plan, PyObject* value, std::byte* slot,
                       LaunchFrame& frame) {
  if (copy_tensor_map(plan, value, slot, frame)) return;
  if (find_array(value) == nullptr && copy_struct(plan, value, slot, frame)) return;
  if (plan.parameter->type.find("CUtensorMap") != std::string::npos) {
    refuse_value(plan, value, "a kw.TensorMap of an array, or its 128 bytes", frame);
  }
  refuse_value(plan, value,
               format("{} bytes as a NumPy structured scalar, a ctypes structure or bytes",
                      plan.parameter->size),
               frame);
}

/// For object code without types: an integer of either sign, the bytes of a NumPy scalar, or, with
/// 8 bytes, any value valid for a pointer.
void convert_untyped(const ArgumentPlan& plan, PyObject* value, std::byte* slot,
                     LaunchFrame& frame) {
  const std::size_t size = plan.parameter->size;
  const auto numpy_type = type_scalar(Py_TYPE(value));
  const bool is_integer =
      PyLong_Check(value) || (numpy_type && !is_floating(*numpy_type) && !is_complex(*numpy_type));
  if (is_integer) {
    if (encode_untyped(read_number(value), size, slot) == Fit::exact) return;
    frame.refuse_range(plan, out_of_range_text(*plan.parameter, short_repr(value)));
  }
  const bool is_bytes = numpy_type || PyBytes_Check(value) || PyByteArray_Check(value);
  if (is_bytes && copy_bytes(plan, value, slot, frame)) return;
  if (size == sizeof(CUdeviceptr) && !PyFloat_Check(value)) {
    return convert_pointer(plan, value, slot, frame);
  }
  refuse_value(plan, value,
               format("an integer, or {} bytes as a NumPy scalar or bytes: the object code does "
                      "not tell more",
                      size),
               frame);
}

void convert_vector(const ArgumentPlan& plan, PyObject* value, std::byte* slot,
                    LaunchFrame& frame) {
  const Parameter& parameter = *plan.parameter;
  const ScalarType type = *parameter.scalar;
  const std::size_t item = scalar_size(type);
  if (PyTuple_Check(value) || PyList_Check(value)) {
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(value);
    if (count != parameter.lanes) {
      frame.refuse(plan, format("got {} numbers: {}", count,
                                wants_text(parameter, format("{} of them", parameter.lanes))));
    }
    for (Py_ssize_t i = 0; i < count; ++i) {
      write_number(plan, PySequence_Fast_GET_ITEM(value, i), type,
                   slot + static_cast<std::size_t>(i) * item, frame);
    }
    return;
  }
  if (const auto complex_type = find_complex_type(parameter)) {
    const auto numpy_type = type_scalar(Py_TYPE(value));
    if (PyComplex_Check(value) || (numpy_type && is_complex(*numpy_type)))
      return write_number(plan, value, *complex_type, slot, frame);
  }
  if (py::isinstance<py::array>(value) &&
      dtype_scalar(py::reinterpret_borrow<py::array>(value).dtype()) != type &&
      py::reinterpret_borrow<py::array>(value).attr("dtype").attr("fields").is_none()) {
    frame.refuse(plan, format("got an array of {}: {}",
                              py::str(py::handle(value).attr("dtype")).cast<std::string>(),
                              wants_text(parameter, format("{} numbers of {}", parameter.lanes,
                                                           scalar_name(type)))));
  }
  if (find_array(value) == nullptr && !PyFloat_Check(value) &&
      copy_struct(plan, value, slot, frame)) {
    return;
  }
  refuse_value(plan, value, format("{} numbers, as a tuple", parameter.lanes), frame);
}

}  // namespace

ArgumentPlan::Converter value_converter(const Parameter& parameter) {
  std::string_view type = parameter.type;
  if (type.starts_with("const ")) type.remove_prefix(6);
  if (type == "__int128" || type == "unsigned __int128") return &convert_wide_integer;
  if (type == "decltype(nullptr)") return &convert_nullptr;
  if (parameter.kind == ParameterKind::untyped) return &convert_untyped;
  if (parameter.kind == ParameterKind::aggregate || !parameter.scalar) return &convert_aggregate;
  if (parameter.kind == ParameterKind::vector) return &convert_vector;
  switch (*parameter.scalar) {
    case ScalarType::float32:
      return &convert_float;
    case ScalarType::int32:
      return &convert_integer<std::int32_t>;
    case ScalarType::int64:
      return &convert_integer<std::int64_t>;
    case ScalarType::uint32:
      return &convert_integer<std::uint32_t>;
    case ScalarType::uint64:
      return &convert_handle;
    default:
      return &convert_number;
  }
}

}  // namespace kernwright::python
