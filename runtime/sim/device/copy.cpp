// Driver functions that copy bytes; every range is checked against the allocations.
#include "base/format.h"
#include "sim/device/checked_range.h"
#include "sim/device/platform.h"

#include <cstring>

namespace kernwright::sim {

std::byte* checked_range(const CheckedRange& range) {
  Platform& instance = platform();
  Memory* const memory = instance.memory_of(range.address);
  if (memory != nullptr && memory->find_own(range.address).contains(range.address, range.bytes)) {
    return host_pointer(range.address);
  }
  const bool device_only = range.side == Side::device || (range.address & kWindowMask) != 0;
  if (memory == nullptr && !device_only && range.address != 0) {
    return reinterpret_cast<std::byte*>(range.address);  // ordinary host memory
  }
  bool freed = false;
  std::string place = instance.describe(range.address, range.bytes, &freed);
  fail_with(CUDA_ERROR_INVALID_VALUE, freed ? FaultKind::use_after_free : FaultKind::bounds,
            format("{} {} {} bytes at {:#x}, {}", range.call, range.write ? "writes" : "reads",
                   range.bytes, range.address, place),
            range.address, range.bytes, place);
}

namespace {

struct Copy {
  const char* call;
  std::uint64_t to, from;
  std::size_t bytes;
  Side to_side = Side::device, from_side = Side::device;
};

std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

/// Copies like memmove, so overlapping ranges are well defined.
void run(const Copy& copy) {
  if (copy.bytes == 0) return;
  const std::lock_guard execution(platform().execution);
  const std::byte* const from =
      checked_range({copy.call, copy.from, copy.bytes, copy.from_side, false});
  std::byte* const to = checked_range({copy.call, copy.to, copy.bytes, copy.to_side, true});
  std::memmove(to, from, copy.bytes);
}

CUresult copy_now(const Copy& copy) {
  return guarded([&] {
    current_context();
    run(copy);
  });
}

CUresult copy_on(CUstream stream, const Copy& copy) {
  return guarded([&] {
    context_of(stream);
    run(copy);
  });
}

CUresult memcpy_htod(CUdeviceptr to, const void* from, std::size_t bytes) {
  return copy_now({"cuMemcpyHtoD", to, address_of(from), bytes, Side::device, Side::host});
}
CUresult memcpy_dtoh(void* to, CUdeviceptr from, std::size_t bytes) {
  return copy_now({"cuMemcpyDtoH", address_of(to), from, bytes, Side::host, Side::device});
}
CUresult memcpy_dtod(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return copy_now({"cuMemcpyDtoD", to, from, bytes});
}
CUresult memcpy_htod_async(CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream) {
  return copy_on(stream,
                 {"cuMemcpyHtoDAsync", to, address_of(from), bytes, Side::device, Side::host});
}
CUresult memcpy_dtoh_async(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return copy_on(stream,
                 {"cuMemcpyDtoHAsync", address_of(to), from, bytes, Side::host, Side::device});
}
CUresult memcpy_dtod_async(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return copy_on(stream, {"cuMemcpyDtoDAsync", to, from, bytes});
}

/// Either address may be of the host: unified addressing tells.
CUresult memcpy_async(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return copy_on(stream, {"cuMemcpyAsync", to, from, bytes, Side::any, Side::any});
}

/// The memory must belong to the device of the context named with it.
void require_on(CUcontext context, std::uint64_t address, std::size_t bytes) {
  SimDevice* const device = platform().device_of(context);
  require(device != nullptr, CUDA_ERROR_INVALID_CONTEXT);
  Memory* const memory = platform().memory_of(address);
  if (bytes == 0 || memory == nullptr || memory == &platform().host_memory) return;
  require(memory == &device->memory);
}

CUresult memcpy_peer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                     std::size_t bytes) {
  return guarded([&] {
    current_context();
    require_on(to_context, to, bytes);
    require_on(from_context, from, bytes);
    run({"cuMemcpyPeer", to, from, bytes});
  });
}

CUresult memcpy_peer_async(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                           CUcontext from_context, std::size_t bytes, CUstream stream) {
  return guarded([&] {
    context_of(stream);
    require_on(to_context, to, bytes);
    require_on(from_context, from, bytes);
    run({"cuMemcpyPeerAsync", to, from, bytes});
  });
}

}  // namespace

void install_copy(DriverApi& api) {
  api.cuMemcpyAsync = memcpy_async;
  api.cuMemcpyHtoD = memcpy_htod;
  api.cuMemcpyDtoH = memcpy_dtoh;
  api.cuMemcpyDtoD = memcpy_dtod;
  api.cuMemcpyHtoDAsync = memcpy_htod_async;
  api.cuMemcpyDtoHAsync = memcpy_dtoh_async;
  api.cuMemcpyDtoDAsync = memcpy_dtod_async;
  api.cuMemcpyPeer = memcpy_peer;
  api.cuMemcpyPeerAsync = memcpy_peer_async;
}

}  // namespace kernwright::sim
