// Memory for Python: page-locked host memory as NumPy arrays, and the parts of memory_bindings.h.
#include "array/shape.h"
#include "base/errors.h"
#include "base/format.h"
#include "bindings/memory/memory_bindings.h"
#include "bindings/support/bindings.h"
#include "bindings/support/current.h"
#include "bindings/support/gil.h"
#include "bindings/support/launch_site.h"
#include "bindings/values/array_support.h"
#include "bindings/values/dtype.h"
#include "core/transfer_counts.h"
#include "memory/allocation_site.h"
#include "memory/pinned_buffer.h"

#include <memory>
#include <vector>

namespace kernwright::python {
namespace {

py::array make_pinned(const py::object& shape, const py::object& dtype, const py::object& device) {
  const ScalarType type = dtype.is_none() ? ScalarType::float32 : scalar_argument(dtype);
  const Shape extents = shape_argument(shape);
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(element_count(extents), static_cast<std::int64_t>(scalar_size(type)),
                             &bytes)) {
    throw InvalidArgument(format("shape {}: more than 2^63 bytes", shape_to_string(extents)));
  }
  Device& chosen = device_argument(device);
  const AllocationSiteScope scope(user_site());
  std::unique_ptr<PinnedBuffer> buffer;
  {
    const GilRelease unlocked;
    buffer = std::make_unique<PinnedBuffer>(chosen, static_cast<std::size_t>(bytes));
  }
  void* data = buffer->data();
  const py::capsule owner(buffer.release(), [](void* held) {
    without_gil([&] { delete static_cast<PinnedBuffer*>(held); });
  });
  const std::vector<py::ssize_t> dims(extents.begin(), extents.end());
  return {dtype_object(type), dims, data, owner};
}

py::dict count_transfers(const py::object& device) {
  const TransferCounts counts = transfer_counts(device_argument(device));
  py::dict made;
  made["to_device"] = counts.to_device;
  made["to_device_bytes"] = counts.to_device_bytes;
  made["to_host"] = counts.to_host;
  made["to_host_bytes"] = counts.to_host_bytes;
  return made;
}

}  // namespace

void bind_memory(py::module_& m) {
  m.def("pinned", &make_pinned, py::arg("shape"), py::arg("dtype") = py::none(), py::kw_only(),
        py::arg("device") = py::none());
  m.def("_transfers", &count_transfers, py::arg("device") = py::none());
  bind_resources(m);
  bind_memory_block(m);
  bind_torch_allocator(m);
}

}  // namespace kernwright::python
