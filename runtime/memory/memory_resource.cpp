// The common part of resources, and the resources without a cache.
#include "memory/memory_resource.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/log.h"
#include "core/device.h"
#include "core/graph/capture.h"
#include "core/lifecycle.h"
#include "memory/reclaim.h"

#include <algorithm>
#include <limits>
#include <new>

namespace kernwright {
namespace {

/// Bytes in use and held by the driver's default pool; zeros where it does not tell.
MemoryStats pool_use(const DriverApi& api, CUmemoryPool pool) noexcept {
  const auto ask = [&](CUmemPool_attribute which) {
    cuuint64_t value = 0;
    const CUresult result = api.cuMemPoolGetAttribute(pool, which, &value);
    return result == CUDA_SUCCESS ? std::uint64_t{value} : std::uint64_t{0};
  };
  MemoryStats use;
  use.used = ask(CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
  use.reserved = ask(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
  use.reserved_peak = ask(CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH);
  return use;
}

}  // namespace

void require_allocatable(const Device& device, std::size_t bytes, const Stream& stream) {
  if (stream && &stream.device() != &device) {
    throw InvalidArgument(
        format("memory of {} cannot be allocated on {}", device.identify(), stream.identify()));
  }
  if (bytes == 0) throw InvalidArgument("cannot allocate 0 bytes: a resource has no empty memory");
  if (bytes > static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max())) {
    throw InvalidArgument(format("cannot allocate {} bytes: at most 2^63 - 1", bytes));
  }
}

bool may_release(const Device& device) noexcept { return may_call_driver() && !device.lost(); }

void throw_out_of_memory(Device& device, std::size_t bytes, const MemoryStats& use,
                         const std::vector<AllocationRecord>& held, const std::string& why) {
  std::size_t free = 0;
  std::size_t total = 0;
  if (device.driver().cuMemGetInfo(&free, &total) != CUDA_SUCCESS) free = total = 0;
  const std::string holders = is_reclaim_forbidden() ? "" : describe_holders(held);
  throw OutOfMemory(
      format("{}: no memory for {} bytes{}{}; {} bytes used, {} reserved, {} of {} free{}{}: free "
             "arrays that are no longer needed, or work in smaller pieces",
             device.identify(), bytes, why.empty() ? "" : ", ", why, use.used, use.reserved, free,
             total, holders.empty() ? "" : "; held: ", holders),
      bytes, use.used, use.reserved, free);
}

CUdeviceptr MemoryResource::try_allocate(std::size_t, const Stream&) { return 0; }

void throw_limit_below_use(const Device& device, std::size_t limit, std::uint64_t used) {
  throw InvalidArgument(
      format("a limit of {} bytes is below the {} bytes in use on {}: free arrays first", limit,
             used, device.identify()));
}

std::size_t MemoryResource::trim(std::size_t) { return 0; }

CUdeviceptr DriverResource::allocate(std::size_t bytes, const Stream& stream) {
  require_allocatable(device_, bytes, stream);
  const ContextGuard guard(device_);
  const RelaxedCapture relaxed(device_);
  bool over_limit = false;
  if (const CUdeviceptr address = try_take(bytes, stream, over_limit)) return address;
  constexpr int kNotCaches = 1;
  while (reclaim_memory(device_, bytes, nullptr, over_limit ? kNotCaches : 0) != 0) {
    if (const CUdeviceptr address = try_take(bytes, stream, over_limit)) return address;
  }
  ledger_.note_failure();
  const MemoryInfo info = device_.memory_info();
  throw_out_of_memory(
      device_, bytes, over_limit ? ledger_.stats() : use_of_device(info.free, info.total),
      records(), over_limit ? format("over the limit of {} bytes", ledger_.stats().limit) : "");
}

/// 0 when there is no memory, or not below the limit.
CUdeviceptr DriverResource::try_take(std::size_t bytes, const Stream& stream, bool& over_limit) {
  const AllocationLedger::Promise promise(ledger_, bytes);
  over_limit = !promise;
  if (over_limit) return 0;
  CUdeviceptr address = 0;
  const char* call = "";
  const CUresult result = take(address, bytes, stream, call);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) return 0;
  if (result != CUDA_SUCCESS) device_.fail(result, call, format("{} bytes", bytes));
  try {
    if (const std::shared_ptr<Capture> capture = find_capture(stream)) {
      graph_blocks_.share(address, *capture);
    }
    ledger_.add(address, bytes, stream.id());
  } catch (...) {
    if (!graph_blocks_.release(address)) give(address, stream, call);
    throw;
  }
  return address;
}

void DriverResource::set_limit(std::size_t bytes) {
  if (!ledger_.set_limit(bytes)) throw_limit_below_use(device_, bytes, ledger_.stats().used);
}

void DriverResource::release(CUdeviceptr address, std::size_t bytes, const Stream& stream) {
  const ContextGuard guard(device_);
  const RelaxedCapture relaxed(device_);
  ledger_.remove(address, bytes);
  if (graph_blocks_.release(address)) return;
  const char* call = "";
  const CUresult result = give(address, stream, call);
  if (result != CUDA_SUCCESS) device_.fail(result, call, format("{:#x}", address));
}

void DriverResource::deallocate(CUdeviceptr address, std::size_t bytes,
                                const Stream& stream) noexcept {
  ReleaseGuard guard(device_);
  if (!guard) return;
  try {
    ledger_.remove(address, bytes);
  } catch (const std::exception& error) {
    log_release_failure(name(), error.what());
    return;
  }
  const RelaxedCapture relaxed(device_);
  if (graph_blocks_.release(address)) return;
  const char* call = "";
  const CUresult result = give(address, stream, call);
  guard.report(result, call);
}

MemoryStats DriverResource::use_of_device(std::uint64_t free, std::uint64_t total) const {
  MemoryStats use;
  use.used = use.reserved = total - free;
  return use;
}

CUresult DeviceResource::take(CUdeviceptr& address, std::size_t bytes, const Stream&,
                              const char*& call) {
  call = "cuMemAlloc";
  return device_.driver().cuMemAlloc(&address, bytes);
}

CUresult DeviceResource::give(CUdeviceptr address, const Stream&, const char*& call) noexcept {
  // cuMemFree waits for all work of the context, on every stream.
  call = "cuMemFree";
  return device_.driver().cuMemFree(address);
}

AsyncResource::AsyncResource(Device& device) : DriverResource(device) {
  if (device_.attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED) == 0) return;
  const ContextGuard guard(device_);
  const DriverApi& api = device_.driver();
  device_.check(api.cuDeviceGetDefaultMemPool(&pool_, device_.handle()),
                "cuDeviceGetDefaultMemPool");
  cuuint64_t keep_everything = ~cuuint64_t{0};
  device_.check(
      api.cuMemPoolSetAttribute(pool_, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep_everything),
      "cuMemPoolSetAttribute");
}

CUresult AsyncResource::take(CUdeviceptr& address, std::size_t bytes, const Stream& stream,
                             const char*& call) {
  const DriverApi& api = device_.driver();
  if (pool_ == nullptr || find_capture(device_, stream.handle()) != nullptr) {
    call = "cuMemAlloc";
    return api.cuMemAlloc(&address, bytes);
  }
  call = "cuMemAllocAsync";
  const CUresult result = api.cuMemAllocAsync(&address, bytes, stream.handle());
  // Memory kept by the pool for other sizes may be enough after a trim.
  if (result != CUDA_ERROR_OUT_OF_MEMORY || api.cuMemPoolTrimTo(pool_, 0) != CUDA_SUCCESS) {
    return result;
  }
  return api.cuMemAllocAsync(&address, bytes, stream.handle());
}

CUresult AsyncResource::give(CUdeviceptr address, const Stream& stream,
                             const char*& call) noexcept {
  const DriverApi& api = device_.driver();
  const std::shared_ptr<Capture> capture =
      pool_ == nullptr ? nullptr : find_capture(device_, stream.handle());
  if (capture != nullptr) {
    // Memory from before the capture: the recorded work may use it, and must not free it.
    const auto free_later = [&device = device_, address, stream] {
      ReleaseGuard guard(device);
      if (!guard) return;
      guard.report(device.driver().cuMemFreeAsync(address, stream.handle()), "cuMemFreeAsync");
    };
    try {
      capture->at_end(free_later);
    } catch (const std::bad_alloc&) {
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return CUDA_SUCCESS;
  }
  call = pool_ == nullptr ? "cuMemFree" : "cuMemFreeAsync";
  return pool_ == nullptr ? api.cuMemFree(address) : api.cuMemFreeAsync(address, stream.handle());
}

MemoryStats AsyncResource::use_of_device(std::uint64_t free, std::uint64_t total) const {
  if (pool_ == nullptr) return DriverResource::use_of_device(free, total);
  return pool_use(device_.driver(), pool_);
}

MemoryStats AsyncResource::stats() const {
  MemoryStats stats = DriverResource::stats();
  if (pool_ == nullptr) return stats;
  // The driver's pool may serve other libraries too: all it holds beyond our use counts as cached.
  const MemoryStats use = pool_use(device_.driver(), pool_);
  stats.reserved = std::max(stats.used, use.reserved);
  stats.reserved_peak = std::max(stats.reserved_peak, std::max(stats.reserved, use.reserved_peak));
  stats.cached = stats.reserved - stats.used;
  return stats;
}

std::size_t AsyncResource::trim(std::size_t bytes_to_keep) {
  if (pool_ == nullptr) return 0;
  const ContextGuard guard(device_);
  const DriverApi& api = device_.driver();
  const std::uint64_t before = pool_use(api, pool_).reserved;
  device_.check(api.cuMemPoolTrimTo(pool_, bytes_to_keep), "cuMemPoolTrimTo");
  const std::uint64_t after = pool_use(api, pool_).reserved;
  return before > after ? static_cast<std::size_t>(before - after) : 0;
}

}  // namespace kernwright
