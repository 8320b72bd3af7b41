// Page-locked host memory as NumPy arrays.
#include "array/shape.h"
#include "array_support.h"
#include "bindings.h"
#include "current.h"
#include "dtype.h"
#include "memory/buffer.h"

#include <memory>
#include <vector>

namespace kernwright::python {
namespace {

py::array make_pinned(const py::object& shape, const py::object& dtype, const py::object& device) {
  const ScalarType type = dtype.is_none() ? ScalarType::float32 : scalar_argument(dtype);
  const Shape extents = shape_argument(shape);
  const auto bytes = static_cast<std::size_t>(element_count(extents)) * scalar_size(type);
  auto buffer = std::make_unique<PinnedBuffer>(device_argument(device), bytes);
  void* data = buffer->data();
  const py::capsule owner(buffer.release(),
                          [](void* held) { delete static_cast<PinnedBuffer*>(held); });
  const std::vector<py::ssize_t> dims(extents.begin(), extents.end());
  return {dtype_object(type), dims, data, owner};
}

}  // namespace

void bind_memory(py::module_& m) {
  m.def("pinned", &make_pinned, py::arg("shape"), py::arg("dtype") = py::none(), py::kw_only(),
        py::arg("device") = py::none());
}

}  // namespace kernwright::python
