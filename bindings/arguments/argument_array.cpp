// The converter of pointer parameters: arrays of any library, addresses, null, host data.
#include "base/errors.h"
#include "base/format.h"
#include "bindings/arguments/argument.h"
#include "bindings/arguments/argument_advice.h"
#include "bindings/array/foreign.h"
#include "bindings/array/tensor_map_object.h"
#include "bindings/support/current.h"
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

void check_type(const ArgumentPlan& plan, const ArrayArgument& array, Holder holder,
                LaunchFrame& frame) {
  const Parameter& parameter = *plan.parameter;
  if (plan.pointee == Pointee::anything) return;
  if (array.type && takes_elements(parameter, plan.pointee, *array.type)) return;
  const std::string got = format("an array of {}", type_text(array));
  const ScalarType wanted = wanted_type(parameter, plan.pointee);
  frame.refuse(plan, wrong_elements_text(parameter, plan.pointee, got) +
                         type_advice(plan, array, wanted, holder));
}

void check_array(const ArgumentPlan& plan, const ArrayArgument& array, bool strided, Holder holder,
                 LaunchFrame& frame) {
  if (!frame.is_checked()) return;
  check_type(plan, array, holder, frame);
  if (!array.contiguous && !strided) {
    frame.refuse(plan, "got an array that is not contiguous: " + contiguity_advice(plan));
  }
  const MemoryArgument memory{.address = array.address,
                              .type = array.type,
                              .bytes = array.nbytes,
                              .read_only = array.read_only};
  const MemoryFit fit = memory_fit(*plan.parameter, plan.pointee, memory);
  if (fit != MemoryFit::exact)
    frame.refuse(plan, memory_text(*plan.parameter, memory, fit, "array"));
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
    frame.refuse(plan, other_device_text("an array", array.device(), frame.device()) +
                           ": pass x.to(device)");
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
  if (frame.is_checked()) {
    const MemoryArgument memory{.address = pointer.address, .type = pointer.type};
    const std::string problem = memory_problem(*plan.parameter, plan.pointee, memory);
    if (!problem.empty()) frame.refuse(plan, problem);
  }
  store(pointer.address, slot);
}

bool is_memory_block(py::handle value) {
  static constinit KeptObject type;
  return py::isinstance(value, type.member("kernwright._core", "MemoryBlock"));
}

/// Memory without a type, as an address is.
void convert_block(const ArgumentPlan& plan, py::handle block, std::byte* slot,
                   LaunchFrame& frame) {
  const Device* device = py::object(block.attr("device")).cast<const DeviceObject&>().device;
  if (frame.is_checked() && device != &frame.device()) {
    frame.refuse(plan, format("got a memory block of {}, and the launch is on {}", device->label(),
                              frame.device().label()));
  }
  convert_address(plan, {block.attr("ptr").cast<std::uintptr_t>(), {}}, slot, frame);
}

/// Structured elements as raw bytes, in the same memory where something is copied back into it.
HostArgument byte_argument(const HostArgument& host) {
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
  const bool takes_any =
      plan.pointee == Pointee::anything || plan.pointee == Pointee::one_byte || !frame.is_checked();
  const bool is_number = parameter.scalar && parameter.lanes < 2;
  const bool to_pointers = plan.pointee == Pointee::addresses;
  const auto item = static_cast<std::size_t>(dtype.itemsize());
  const std::size_t size =
      parameter.element_size != 0 ? parameter.element_size : parameter.pointee_size;
  if (!takes_any && (is_number || to_pointers)) {
    const std::string got = format("an array of {}", py::str(dtype).cast<std::string>());
    frame.refuse(plan, wrong_elements_text(parameter, plan.pointee, got));
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
  const HostArgument bytes = byte_argument(host);
  store(frame.stage(plan, bytes, bytes.values, ScalarType::uint8), slot);
}

void convert_host(const ArgumentPlan& plan, const HostArgument& host, std::byte* slot,
                  LaunchFrame& frame) {
  const auto values = py::reinterpret_borrow<py::array>(host.values);
  if (host.copy_out && plan.parameter->pointee_const) {
    frame.refuse(plan, format("got kw.Out or kw.InOut, but is const: pass kw.In({})", named(plan)));
  }
  ArrayArgument argument;
  argument.type = dtype_scalar(values.dtype());
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
  if (is_memory_block(value)) return convert_block(plan, value, slot, frame);
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
    if (find_tensor_map(value.ptr()) != nullptr) {
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
  if (const Array* array = find_array(value)) {
    convert_ours(plan, *array, false, slot, frame);
  } else if (value == Py_None) {
    store(0, slot);
  } else if (py::isinstance<PointerArgument>(value)) {
    convert_address(plan, py::handle(value).cast<const PointerArgument&>(), slot, frame);
  } else if (py::isinstance<HostArgument>(value)) {
    convert_host(plan, py::handle(value).cast<const HostArgument&>(), slot, frame);
  } else if (py::isinstance<StridedArgument>(value)) {
    const py::object inner = py::handle(value).cast<const StridedArgument&>().array;
    const Array* native = find_array(inner.ptr());
    if (native != nullptr) {
      convert_ours(plan, *native, true, slot, frame);
    } else {
      convert_other(plan, inner, true, slot, frame);
    }
  } else {
    convert_other(plan, value, false, slot, frame);
  }
}

}  // namespace kernwright::python
