// The two C functions for torch's CUDAPluggableAllocator, on the pool of each device.
#include "base/errors.h"
#include "base/format.h"
#include "base/log.h"
#include "bindings/memory/memory_bindings.h"
#include "core/device.h"
#include "core/runtime.h"

#include <array>
#include <atomic>
#include <mutex>
#include <string>
#include <unordered_map>

namespace kernwright::python {
namespace {

constexpr int kMostDevices = 256;

Device& find_device(int ordinal) {
  static std::array<std::atomic<Device*>, kMostDevices> known{};
  if (ordinal < 0 || ordinal >= kMostDevices) {
    throw DeviceNotFound(format("there is no device cuda:{}", ordinal));
  }
  auto& slot = known[static_cast<std::size_t>(ordinal)];
  Device* device = slot.load(std::memory_order_acquire);
  if (device == nullptr || device->lost()) {  // a reset device is a new object
    device = &Runtime::get().device(format("cuda:{}", ordinal));
    slot.store(device, std::memory_order_release);
  }
  return *device;
}

/// NOTE: torch takes its streams from lists of its own and never destroys one, so that a handle
/// stands for the same stream as long as the process lives.
Stream make_stream(Device& device, CUstream handle) {
  if (handle == nullptr) return {};
  if (handle == kStreamPerThread) return Stream::borrow(device, handle);
  struct Known {
    std::mutex mutex;
    std::unordered_map<CUstream, Stream> streams;
  };
  static auto* const known = new Known;
  const std::lock_guard lock(known->mutex);
  const auto found = known->streams.find(handle);
  if (found != known->streams.end() && &found->second.device() == &device) return found->second;
  return known->streams.insert_or_assign(handle, Stream::borrow(device, handle)).first->second;
}

/// The pool for torch's allocations: the device's pool when torch asks first. Memory goes back to
/// the pool it came from.
std::shared_ptr<MemoryResource> find_resource(Device& device) {
  static std::array<std::shared_ptr<MemoryResource>, kMostDevices> chosen;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  auto& resource = chosen[static_cast<std::size_t>(device.ordinal())];
  if (resource == nullptr || &resource->device() != &device) resource = default_resource(device);
  return resource;
}

void* allocate(std::size_t bytes, int ordinal, CUstream handle) {
  Device& device = find_device(ordinal);
  const Stream stream = make_stream(device, handle);
  return reinterpret_cast<void*>(find_resource(device)->allocate(bytes, stream));
}

}  // namespace

void bind_torch_allocator(py::module_& m) {
  m.def("_torch_allocator_functions",
        [] { return py::make_tuple("kernwright_torch_alloc", "kernwright_torch_free"); });
}

}  // namespace kernwright::python

// Looked up by torch by name, called with or without the GIL.
extern "C" {

/// Throws the errors of allocate(); torch makes a RuntimeError of it. Null for no bytes.
__attribute__((visibility("default"))) void* kernwright_torch_alloc(std::ptrdiff_t bytes,
                                                                    int device, void* stream) {
  using namespace kernwright;
  if (bytes == 0) return nullptr;
  if (bytes < 0) throw InvalidArgument(format("cannot allocate {} bytes for torch", bytes));
  return python::allocate(static_cast<std::size_t>(bytes), device, static_cast<CUstream>(stream));
}

__attribute__((visibility("default"))) void kernwright_torch_free(void* memory,
                                                                  std::ptrdiff_t bytes, int device,
                                                                  void* stream) noexcept {
  using namespace kernwright;
  if (memory == nullptr) return;
  try {
    Device& owner = python::find_device(device);
    python::find_resource(owner)->deallocate(
        reinterpret_cast<CUdeviceptr>(memory), static_cast<std::size_t>(bytes),
        python::make_stream(owner, static_cast<CUstream>(stream)));
  } catch (const std::exception& error) {
    log_release_failure("memory of torch", error.what());
  }
}

}  // extern "C"
