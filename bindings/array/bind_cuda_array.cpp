// CudaArray for Python: the memory under textures and surfaces, and its values.
#include "base/errors.h"
#include "base/format.h"
#include "bindings/array/foreign.h"
#include "bindings/array/texture_object.h"
#include "bindings/support/bindings.h"
#include "bindings/support/current.h"
#include "bindings/support/gil.h"
#include "bindings/support/python_support.h"
#include "bindings/values/array_support.h"
#include "bindings/values/dtype.h"
#include "core/graph/capture.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kernwright::python {
namespace {

Unlocked<CudaArrayHolder> make_array(const py::object& shape, const py::object& dtype,
                                     std::int64_t channels, bool layered, bool cubemap,
                                     bool surface, bool gather, const py::object& device) {
  const Shape extents = shape_argument(shape);
  const ScalarType type = scalar_argument(dtype);
  Device& owner = device_argument(device);
  const CudaArrayOptions options{channels_argument(channels), layered, cubemap, surface, gather};
  const GilRelease unlocked;
  return Unlocked<CudaArrayHolder>(new CudaArrayHolder{
      CudaArray(owner, std::span(extents.data(), extents.size()), type, options)});
}

/// The shape of an array with the elements of `array`: an axis for the channels at the end.
Shape channel_shape(const CudaArray& array) {
  const std::vector<std::int64_t> extents = array.shape();
  Shape shape(extents.begin(), extents.end());
  if (array.channels() != 1) shape.push_back(array.channels());
  return shape;
}

[[noreturn]] void refuse_values(const CudaArray& array, const std::string& got) {
  throw InvalidArgument(format("kw.CudaArray.set: {} takes an array of {} of shape {}, got {}",
                               array.identify(), scalar_name(array.type()),
                               short_repr(shape_tuple(channel_shape(array))), got));
}

void check_values(const CudaArray& array, const Shape& shape, std::optional<ScalarType> type,
                  py::handle values) {
  if (shape == channel_shape(array) && type == array.type()) return;
  refuse_values(array,
                format("one of {} of shape {}",
                       type ? std::string(scalar_name(*type)) : short_repr(values.attr("dtype")),
                       short_repr(shape_tuple(shape))));
}

void set_host(CudaArray& array, const py::object& values) {
  const auto contiguous = py::reinterpret_steal<py::array>(
      py::module_::import("numpy").attr("ascontiguousarray")(values).release());
  const auto given = py::reinterpret_borrow<py::array>(values);
  const Shape shape(given.shape(), given.shape() + given.ndim());
  check_values(array, shape, dtype_scalar(given.dtype()), values);
  settle(array.device());
  const Stream stream = current_stream(array.device());
  const void* data = contiguous.data();
  const GilRelease unlocked;
  array.copy_from_host(data, stream);
}

/// A copy queued on `stream` uses the memory of `array`; a graph keeps it.
void use_array(const Array& array, const Stream& stream) {
  if (any_capture()) {
    const Stream user = stream ? stream : Stream::legacy(array.device());
    const std::shared_ptr<Capture> capture = find_capture(user);
    if (capture != nullptr) return capture->keep_alive(array.owner());
  }
  array.use_on(stream);
}

void set_values(CudaArrayHolder& self, const py::object& values) {
  CudaArray& array = self.array;
  if (py::isinstance<py::array>(values)) return set_host(array, values);
  const Stream stream = current_stream(array.device());
  std::optional<Array> source;
  if (const Array* native = find_array(values.ptr())) {
    source = *native;
  } else {
    source = adopt_foreign(values, array.device(), stream);
  }
  if (!source)
    throw ArgumentError(format(
        "kw.CudaArray.set wants a NumPy array or an array of a device, got {}", type_name(values)));
  check_values(array, source->shape(), source->type(), values);
  if (&source->device() != &array.device())
    refuse_values(array, "one on " + source->device().identify());
  if (!source->is_contiguous()) refuse_values(array, "one that is not contiguous: pass x.copy()");
  const GilRelease unlocked;
  array.copy_from_device(source->address(), stream);
  use_array(*source, stream);
}

py::array array_values(const CudaArrayHolder& self) {
  const CudaArray& array = self.array;
  const Shape shape = channel_shape(array);
  py::array values(dtype_object(array.type()),
                   std::vector<py::ssize_t>(shape.begin(), shape.end()));
  settle(array.device());
  const Stream stream = current_stream(array.device());
  void* data = values.mutable_data();
  const GilRelease unlocked;
  array.copy_to_host(data, stream);
  return values;
}

void copy_to(const CudaArrayHolder& self, const py::object& target) {
  const CudaArray& array = self.array;
  const Array* const to = find_array(target.ptr());
  if (to == nullptr)
    throw ArgumentError(format("kw.CudaArray.copy_to wants a kw.Array, got {}", type_name(target)));
  check_values(array, to->shape(), to->type(), target);
  if (&to->device() != &array.device() || !to->is_contiguous() || to->read_only())
    throw InvalidArgument(
        format("kw.CudaArray.copy_to: {} is not a writable contiguous array on {}", to->identify(),
               array.device().identify()));
  const Stream stream = current_stream(array.device());
  const GilRelease unlocked;
  array.copy_to_device(to->address(), stream);
  use_array(*to, stream);
}

bool has_flag(const CudaArrayHolder& self, unsigned flag) {
  return (self.array.descriptor().Flags & flag) != 0;
}

}  // namespace

unsigned channels_argument(std::int64_t channels) {
  if (channels == 1 || channels == 2 || channels == 4) return static_cast<unsigned>(channels);
  throw InvalidArgument(format("elements have 1, 2 or 4 channels, not {}", channels));
}

void bind_cuda_array(py::module_& m) {
  using Holder = CudaArrayHolder;
  py::class_<Holder, Unlocked<Holder>>(m, "CudaArray", py::is_final())
      .def(py::init(&make_array), py::arg("shape"), py::arg("dtype") = py::str("float32"),
           py::kw_only(), py::arg("channels") = 1, py::arg("layered") = false,
           py::arg("cubemap") = false, py::arg("surface") = false, py::arg("gather") = false,
           py::arg("device") = py::none())
      .def("set", &set_values, py::arg("values"))
      .def("numpy", &array_values)
      .def("copy_to", &copy_to, py::arg("array"))
      .def_property_readonly("shape",
                             [](const Holder& o) {
                               const auto shape = o.array.shape();
                               return shape_tuple(Shape(shape.begin(), shape.end()));
                             })
      .def_property_readonly("dtype", [](const Holder& o) { return dtype_object(o.array.type()); })
      .def_property_readonly("channels", [](const Holder& o) { return o.array.channels(); })
      .def_property_readonly("nbytes", [](const Holder& o) { return o.array.bytes(); })
      .def_property_readonly("layered", [](const Holder& o) { return has_flag(o, kArrayLayered); })
      .def_property_readonly("cubemap", [](const Holder& o) { return has_flag(o, kArrayCubemap); })
      .def_property_readonly("surface", [](const Holder& o) { return has_flag(o, kArraySurface); })
      .def_property_readonly("gather", [](const Holder& o) { return has_flag(o, kArrayGather); })
      .def_property_readonly("device",
                             [](const Holder& o) { return DeviceObject{&o.array.device()}; })
      .def_property_readonly("handle", [](const Holder& o) { return o.array.object()->handle(); })
      .def("__repr__",
           [](const Holder& o) { return text_object("<CudaArray: " + o.array.identify() + ">"); });
}

}  // namespace kernwright::python
