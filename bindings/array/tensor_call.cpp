// Functions of arrays called with torch's tensors: on their memory, on torch's stream, with results
// allocated by torch. Python hands in its knowledge (device, stream, how to make a tensor), so
// nothing is imported here.
#include "bindings/array/tensor_call.h"

#include "array/array_source.h"
#include "base/errors.h"
#include "base/format.h"
#include "bindings/array/foreign.h"
#include "bindings/support/current.h"
#include "bindings/support/interned_name.h"
#include "bindings/support/python_support.h"
#include "bindings/values/array_support.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace kernwright::python {
namespace {

class StreamScope {
 public:
  explicit StreamScope(const Stream& stream) { enter_stream(stream); }
  ~StreamScope() { leave_scope(); }
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;
};

Shape extents(const py::object& values) {
  Shape shape;
  for (const py::handle value : values) shape.push_back(value.cast<std::int64_t>());
  return shape;
}

/// The memory of `tensor`, on `device`, held by the array.
Array view_tensor(const py::object& tensor, Device& device) {
  static const InternedName data_ptr("data_ptr"), shape("shape"), stride("stride"), dtype("dtype");
  std::string text;
  const std::optional<ScalarType> type = torch_scalar_type(dtype.get(tensor), text);
  if (!type) throw ArgumentError(format("a tensor of {}: arrays have no such dtype", text));
  Shape strides = extents(stride.call(tensor));
  for (std::int64_t& each : strides) each *= static_cast<std::int64_t>(scalar_size(*type));
  return Array::adopt(device, data_ptr.call(tensor).cast<std::uintptr_t>(),
                      extents(shape.get(tensor)), std::move(strides), *type, keep_alive(tensor));
}

/// The allocator of a call's arrays; remembers the tensors behind them.
class TensorSource final : public ArraySource {
 public:
  TensorSource(py::object make, Device& device) : make_(std::move(make)), device_(device) {}

  Array make(Device& device, Shape shape, ScalarType type, const Stream& stream) override {
    if (&device != &device_) return Array::empty(device, std::move(shape), type, stream);
    const GilAcquire locked;
    if (!locked) throw Error("tensors cannot be made any more: Python ends");
    py::object tensor = make_(shape_tuple(shape), std::string(scalar_name(type)));
    Array array = view_tensor(tensor, device);
    if (array.shape() != shape || array.type() != type || !array.is_contiguous()) {
      throw Error(format("asked for a {} tensor of shape {}, got {}", scalar_name(type),
                         shape_to_string(shape), array.identify()));
    }
    made_.push_back({array, std::move(tensor)});
    return array;
  }

  /// The tensor made for `array`; one of another shape where the function changed it.
  py::object make_tensor(const Array& array) const {
    for (const Made& each : made_) {
      if (each.array.owner() != array.owner() || each.array.address() != array.address()) continue;
      if (each.array.shape() == array.shape() && array.is_contiguous()) return each.tensor;
      if (each.array.nbytes() == array.nbytes() && array.is_contiguous())
        return each.tensor.attr("view")(shape_tuple(array.shape()));
    }
    throw Error(format("{} is no result that can be given to torch", array.identify()));
  }

 private:
  struct Made {
    Array array;
    py::object tensor;
  };
  py::object make_;
  Device& device_;
  std::vector<Made> made_;
};

/// Tensors as arrays, those of lists too; anything else as it is.
py::object as_argument(py::handle value, Device& device) {
  PyObject* const object = value.ptr();
  if (object == Py_None || PyFloat_Check(object) || PyLong_Check(object) || PyUnicode_Check(object))
    return py::reinterpret_borrow<py::object>(value);
  if (PyList_Check(object)) {
    py::list arrays;
    for (const py::handle each : value) arrays.append(as_argument(each, device));
    return arrays;
  }
  if (find_array(object) == nullptr && has_attribute(value, "data_ptr"))
    return py::cast(view_tensor(py::reinterpret_borrow<py::object>(value), device));
  return py::reinterpret_borrow<py::object>(value);
}

py::object as_result(py::handle value, const TensorSource& source) {
  if (const Array* const array = find_array(value.ptr())) return source.make_tensor(*array);
  if (!PyTuple_Check(value.ptr())) return py::reinterpret_borrow<py::object>(value);
  py::list tensors;
  for (const py::handle each : value) tensors.append(as_result(each, source));
  return py::tuple(tensors);
}

/// function(*arguments) with tensors of `device` in place of arrays, on the stream of that handle.
/// `make(shape, dtype)` makes tensors for the results and for temporary use.
py::object call_on_tensors(const py::object& function, const py::tuple& arguments,
                           const py::object& make, py::handle on, std::uintptr_t stream) {
  Device& device = device_argument(on);
  py::tuple arrays(arguments.size());
  for (std::size_t i = 0; i < arguments.size(); ++i) arrays[i] = as_argument(arguments[i], device);
  TensorSource source(make, device);
  const StreamScope ordered(Stream::borrow(device, reinterpret_cast<CUstream>(stream)));
  const ArraySourceScope allocated(&source);
  return as_result(function(*arrays), source);
}

}  // namespace

void bind_tensor_call(py::module_& m) {
  m.def("_call_on_tensors", &call_on_tensors, py::arg("function"), py::arg("arguments"),
        py::arg("make"), py::arg("device"), py::arg("stream"));
}

}  // namespace kernwright::python
