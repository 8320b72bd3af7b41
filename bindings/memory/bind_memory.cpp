// Memory for Python: page-locked host memory as NumPy arrays, and the parts of memory_bindings.h.
#include "array/shape.h"
#include "base/errors.h"
#include "base/format.h"
#include "base/log.h"
#include "bindings/memory/memory_bindings.h"
#include "bindings/support/bindings.h"
#include "bindings/support/current.h"
#include "bindings/support/gil.h"
#include "bindings/support/launch_site.h"
#include "bindings/values/array_support.h"
#include "bindings/values/dtype.h"
#include "core/graph/capture.h"
#include "core/transfer_counts.h"
#include "memory/allocation_site.h"
#include "memory/pinned_buffer.h"
#include "memory/pinned_resource.h"

#include <pybind11/numpy.h>
#include <cstdint>
#include <memory>
#include <utility>
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

/// Page-locked bytes that no pool keeps: the driver gets them back when the array is gone.
struct PinnedBlock {
  std::shared_ptr<MemoryResource> resource;
  CUdeviceptr address = 0;
  std::size_t bytes = 0;

  PinnedBlock(Device& device, std::size_t size)
      : resource(std::make_shared<PinnedResource>(device)),
        address(resource->allocate(size, {})),
        bytes(size) {}
  ~PinnedBlock() { resource->deallocate(address, bytes, {}); }
  PinnedBlock(const PinnedBlock&) = delete;
  PinnedBlock& operator=(const PinnedBlock&) = delete;
};

/// Frees a block, after the end of a capture in progress: to free memory the driver waits for the
/// device, which no capture survives.
void drop_block(std::shared_ptr<PinnedBlock> block) noexcept {
  try {
    if (const auto capture = capture_on(block->resource->device()))
      capture->at_end([block = std::move(block)]() mutable { block.reset(); });
  } catch (const std::exception& error) {
    log_release_failure("a page-locked block", error.what());
  }
}

py::array make_pinned_block(std::size_t bytes, const py::object& device) {
  Device& chosen = device_argument(device);
  const AllocationSiteScope scope(user_site());
  using Held = std::shared_ptr<PinnedBlock>;
  auto held = std::make_unique<Held>(
      without_gil([&] { return std::make_shared<PinnedBlock>(chosen, bytes); }));
  auto* const data = reinterpret_cast<std::uint8_t*>((*held)->address);
  const py::capsule owner(held.release(), [](void* owned) {
    without_gil([&] {
      const std::unique_ptr<Held> gone(static_cast<Held*>(owned));
      drop_block(std::move(*gone));
    });
  });
  return py::array_t<std::uint8_t>({static_cast<py::ssize_t>(bytes)}, data, owner);
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
  m.def("_pinned_block", &make_pinned_block, py::arg("bytes"), py::arg("device") = py::none());
  m.def("_transfers", &count_transfers, py::arg("device") = py::none());
  bind_resources(m);
  bind_memory_block(m);
  bind_torch_allocator(m);
}

}  // namespace kernwright::python
