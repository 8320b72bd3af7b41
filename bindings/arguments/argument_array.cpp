// The converter of pointer parameters: arrays of any library, addresses, null, host data.
#include "base/errors.h"
#include "base/format.h"
#include "bindings/arguments/argument.h"
#include "bindings/arguments/argument_advice.h"
#include "bindings/array/foreign.h"
#include "bindings/array/tensor_map_object.h"
#include "bindings/support/python_support.h"
#include "bindings/values/array_support.h"
#include "bindings/values/dtype.h"
#include "core/device.h"

#include <pybind11/numpy.h>
#include <cstring>

namespace kernwright::python {
namespace {

std::string type_text(const ArrayArgument& array) {
  return array.type ? std::string(scalar_name(*array.type)) : array.type_text;
}

/// "S<>*" of "S<float*>*": template arguments tell nothing of the pointer.
std::string without_arguments(const std::string& type) {
  std::string text;
  int depth = 0;
  for (const char c : type) {
    if (c == '>') --depth;
    if (depth == 0) text += c;
    if (c == '<') ++depth;
  }
  return text;
}

bool points_to_pointers(const Parameter& parameter) {
  const std::string type = without_arguments(parameter.type);
  return type.find('*') != type.rfind('*');
}

/// Whether elements of `type` may lie behind the pointer, sizes and alignment apart.
bool takes(const ArgumentPlan& plan, ScalarType type) {
  const Parameter& parameter = *plan.parameter;
  if (plan.is_void) return true;
  if (parameter.any_byte_pointee) return scalar_size(type) == 1;
  if (!parameter.scalar) {
    // A pointer to pointers takes addresses, a pointer to a struct its raw bytes.
    if (points_to_pointers(parameter))
      return type == ScalarType::uint64 || type == ScalarType::int64;
    return scalar_size(type) == 1;
  }
  if (type == *parameter.scalar) return true;
  // cuFloatComplex is float2, cuDoubleComplex double2.
  return parameter.lanes == 2 &&
         ((type == ScalarType::complex64 && *parameter.scalar == ScalarType::float32) ||
          (type == ScalarType::complex128 && *parameter.scalar == ScalarType::float64));
}

std::string wanted_elements(const ArgumentPlan& plan) {
  const Parameter& parameter = *plan.parameter;
  if (parameter.any_byte_pointee) return "elements of 1 byte";
  if (parameter.scalar) return std::string(scalar_name(*parameter.scalar));
  return points_to_pointers(parameter) ? "uint64 (addresses)" : "uint8 (the bytes of structs)";
}

/// The element type for making an array for the pointer.
ScalarType wanted_type(const ArgumentPlan& plan) {
  const Parameter& parameter = *plan.parameter;
  if (parameter.any_byte_pointee) return ScalarType::uint8;
  if (parameter.scalar) return *parameter.scalar;
  return points_to_pointers(parameter) ? ScalarType::uint64 : ScalarType::uint8;
}

void check_type(const ArgumentPlan& plan, const ArrayArgument& array, Holder holder,
                LaunchFrame& frame) {
  if (plan.is_void || (array.type && takes(plan, *array.type))) return;
  frame.refuse(plan,
               format("got an array of {}: {} wants {}{}", type_text(array), named(plan),
                      wanted_elements(plan), type_advice(plan, array, wanted_type(plan), holder)));
}

/// Vector and struct pointees: whole elements, aligned as the hardware wants them.
void check_pointee(const ArgumentPlan& plan, const ArrayArgument& array, LaunchFrame& frame) {
  const std::size_t size = plan.parameter->pointee_size;
  if (size <= 1 || plan.is_void || (array.type && scalar_size(*array.type) == size)) return;
  if (array.nbytes % size != 0) {
    frame.refuse(plan,
                 format("got an array of {} bytes, no multiple of the {} bytes of an element: "
                        "pad {}",
                        array.nbytes, size, named(plan)));
  }
  const std::size_t alignment = plan.parameter->lanes > 1 && (size & (size - 1)) == 0 ? size : 1;
  if (array.address % std::min<std::size_t>(alignment, 16) != 0) {
    frame.refuse(plan, format("got an array at address {:#x}, not aligned to {} bytes: {}",
                              array.address, alignment,
                              plan.parameter->pointee_const
                                  ? "pass a copy"
                                  : "launch on an array of its own and copy back"));
  }
}

void check_array(const ArgumentPlan& plan, const ArrayArgument& array, bool strided, Holder holder,
                 LaunchFrame& frame) {
  if (!frame.is_checked()) return;
  check_type(plan, array, holder, frame);
  if (!array.contiguous && !strided) {
    frame.refuse(plan, "got an array that is not contiguous: " + contiguity_advice(plan));
  }
  if (array.read_only && !plan.parameter->pointee_const) {
    frame.refuse(plan, format("got a read-only array: the kernel may write to {}; declare it const "
                              "or pass an array that may be written",
                              named(plan)));
  }
  check_pointee(plan, array, frame);
}

void store(CUdeviceptr address, std::byte* slot) { std::memcpy(slot, &address, sizeof address); }

void convert_ours(const ArgumentPlan& plan, const Array& array, bool strided, std::byte* slot,
                  LaunchFrame& frame) {
  frame.note_use(array);
  // The common kinds of arguments, told at a glance; errors in others are found below.
  const bool fits = &array.device() == &frame.device() && plan.element == array.type() &&
                    array.is_contiguous() && (!array.read_only() || plan.parameter->pointee_const);
  if (fits || !frame.is_checked()) [[likely]] {
    store(array.address(), slot);
    return;
  }
  if (&array.device() != &frame.device()) {
    frame.refuse(plan, format("got an array on {}, but the launch is on {}: pass x.to(device)",
                              array.device().identify(), frame.device().identify()));
  }
  ArrayArgument argument;
  argument.address = array.address();
  argument.type = array.type();
  argument.nbytes = array.nbytes();
  argument.contiguous = array.is_contiguous();
  argument.read_only = array.read_only();
  check_array(plan, argument, strided, Holder::ours, frame);
  store(argument.address, slot);
}

[[noreturn]] void refuse_host(const ArgumentPlan& plan, const std::string& what,
                              LaunchFrame& frame) {
  frame.refuse(plan, format("got {} in host memory: copy it to the device once with kw.asarray(x), "
                            "or around the launch with kw.In(x), kw.Out(x) or kw.InOut(x)",
                            what));
}

void convert_address(const ArgumentPlan& plan, const PointerArgument& pointer, std::byte* slot,
                     LaunchFrame& frame) {
  if (pointer.type && !takes(plan, *pointer.type)) {
    frame.refuse(plan, format("got a kw.Pointer to {}: {} wants {}", scalar_name(*pointer.type),
                              named(plan), wanted_elements(plan)));
  }
  store(pointer.address, slot);
}

/// Structured elements as raw bytes, in the same memory where something is copied back into it.
HostArgument bytes_of(const HostArgument& host) {
  const py::module_ numpy = py::module_::import("numpy");
  if (host.copy_out && !host.values.attr("flags").attr("c_contiguous").cast<bool>()) {
    throw ArgumentError("kw.Out and kw.InOut take structured arrays that are contiguous");
  }
  HostArgument bytes = host;
  bytes.values =
      numpy.attr("ascontiguousarray")(host.values).attr("reshape")(-1).attr("view")("u1");
  return bytes;
}

/// Arrays of structs, for pointers to such structs, to vectors, to bytes and to anything.
void convert_structured(const ArgumentPlan& plan, const HostArgument& host, const py::dtype& dtype,
                        std::byte* slot, LaunchFrame& frame) {
  const Parameter& parameter = *plan.parameter;
  const bool takes_any = plan.is_void || parameter.any_byte_pointee || !frame.is_checked();
  const bool is_number = parameter.scalar && parameter.lanes < 2;
  const bool to_pointers = points_to_pointers(parameter);
  const auto item = static_cast<std::size_t>(dtype.itemsize());
  const std::size_t size =
      parameter.element_size != 0 ? parameter.element_size : parameter.pointee_size;
  if (!takes_any && (is_number || to_pointers)) {
    frame.refuse(plan, format("got an array of {}: {} wants {}", py::str(dtype).cast<std::string>(),
                              named(plan), wanted_elements(plan)));
  }
  if (!takes_any && size != 0 && item != size) {
    frame.refuse(plan,
                 format("got an array of elements of {} bytes: {} wants elements of {}{}", item,
                        named(plan), size,
                        parameter.fields.empty()
                            ? std::string()
                            : format(", as parameters[{}].dtype of the kernel has", plan.index)));
  }
  if (!takes_any) frame.check_layout(plan, dtype);
  const HostArgument bytes = bytes_of(host);
  store(frame.stage(plan, bytes, bytes.values, ScalarType::uint8), slot);
}

void convert_host(const ArgumentPlan& plan, const HostArgument& host, std::byte* slot,
                  LaunchFrame& frame) {
  const auto values = py::reinterpret_borrow<py::array>(host.values);
  if (host.copy_out && plan.parameter->pointee_const) {
    frame.refuse(plan, format("got kw.Out or kw.InOut, but is const: pass kw.In({})", named(plan)));
  }
  ArrayArgument argument;
  argument.type = scalar_of_dtype(values.dtype());
  const bool structured = !argument.type && values.dtype().kind() == 'V';
  if (structured) return convert_structured(plan, host, values.dtype(), slot, frame);
  argument.type_text = py::str(values.dtype()).cast<std::string>();
  argument.nbytes = static_cast<std::size_t>(values.nbytes());
  check_array(plan, argument, true, Holder::host, frame);
  store(frame.stage(plan, host, values, argument.type.value_or(ScalarType::uint8)), slot);
}

/// Anything but an array of ours; its kind decides its way.
void convert_other(const ArgumentPlan& plan, py::handle value, bool strided, std::byte* slot,
                   LaunchFrame& frame) {
  if (py::isinstance<py::array>(value)) refuse_host(plan, "a NumPy array", frame);
  ArrayArgument argument;
  Foreign found = Foreign::no_array;
  try {
    found = read_foreign(value, frame.device(), frame.stream(), argument);
  } catch (const ArgumentError& error) {
    frame.refuse(plan, format("got {}", error.what()));
  } catch (const InvalidArgument& error) {
    frame.refuse(plan, format("got a {} that cannot be taken: {}", type_name(value), error.what()));
  }
  if (found == Foreign::host_array) refuse_host(plan, "a " + type_name(value), frame);
  if (found == Foreign::no_array) {
    if (tensor_map_of(value.ptr()) != nullptr) {
      frame.refuse(plan, format("got a kw.TensorMap: it is passed by value; declare {} as const "
                                "__grid_constant__ CUtensorMap",
                                named(plan)));
    }
    const bool number = PyLong_Check(value.ptr()) && !PyBool_Check(value.ptr());
    frame.refuse(plan, format("got {} ({}): {} wants an array{}", type_name(value),
                              short_repr(value), named(plan),
                              number ? "; wrap a raw address as kw.Pointer(address, dtype)" : ""));
  }
  check_array(plan, argument, strided, Holder::foreign, frame);
  store(argument.address, slot);
}

}  // namespace

bool is_function_pointer(const Parameter& parameter) {
  return without_arguments(parameter.type).find("(*)(") != std::string::npos;
}

void convert_function(const ArgumentPlan& plan, PyObject* value, std::byte* slot,
                      LaunchFrame& frame) {
  if (value == Py_None) return store(0, slot);
  if (py::isinstance<PointerArgument>(value))
    return store(py::handle(value).cast<const PointerArgument&>().address, slot);
  frame.refuse(plan, format("got {}: {} wants the address of a device function; pass "
                            "kw.Pointer(address), with the address that a __device__ variable of "
                            "this type holds",
                            type_name(value), named(plan)));
}

void convert_pointer(const ArgumentPlan& plan, PyObject* value, std::byte* slot,
                     LaunchFrame& frame) {
  if (const Array* array = array_of(value)) {
    convert_ours(plan, *array, false, slot, frame);
  } else if (value == Py_None) {
    store(0, slot);
  } else if (py::isinstance<PointerArgument>(value)) {
    convert_address(plan, py::handle(value).cast<const PointerArgument&>(), slot, frame);
  } else if (py::isinstance<HostArgument>(value)) {
    convert_host(plan, py::handle(value).cast<const HostArgument&>(), slot, frame);
  } else if (py::isinstance<StridedArgument>(value)) {
    const py::object inner = py::handle(value).cast<const StridedArgument&>().array;
    const Array* own = array_of(inner.ptr());
    if (own != nullptr) {
      convert_ours(plan, *own, true, slot, frame);
    } else {
      convert_other(plan, inner, true, slot, frame);
    }
  } else {
    convert_other(plan, value, false, slot, frame);
  }
}

}  // namespace kernwright::python
