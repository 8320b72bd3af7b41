// The memory pool that a device's stream-ordered memory comes from: the default one, or a
// program's.
#include "libcuda/functions.h"

#include <map>
#include <mutex>

namespace kernwright::libcuda {
namespace {

using sim::driver_api;

std::mutex g_mutex;

/// Devices with a pool other than the default one.
std::map<CUdevice, CUmemoryPool>& chosen() {
  static auto* const pools = new std::map<CUdevice, CUmemoryPool>;
  return *pools;
}

CUresult get_pool(CUmemoryPool* pool, CUdevice device) {
  const CUresult result = driver_api().cuDeviceGetDefaultMemPool(pool, device);
  if (result != CUDA_SUCCESS) return result;
  const std::lock_guard lock(g_mutex);
  if (const auto found = chosen().find(device); found != chosen().end()) *pool = found->second;
  return CUDA_SUCCESS;
}

CUresult set_pool(CUdevice device, CUmemoryPool pool) {
  const DriverApi& api = driver_api();
  CUmemoryPool standard = nullptr;
  CUresult result = api.cuDeviceGetDefaultMemPool(&standard, device);
  std::uint64_t used = 0;  // asked for to find out whether the pool is one
  if (result == CUDA_SUCCESS)
    result = api.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used);
  if (result != CUDA_SUCCESS) return result;
  const std::lock_guard lock(g_mutex);
  if (pool == standard) {
    chosen().erase(device);
  } else {
    chosen()[device] = pool;
  }
  return CUDA_SUCCESS;
}

/// A device of this pool has its default one again.
CUresult destroy_pool(CUmemoryPool pool) {
  const CUresult result = driver_api().cuMemPoolDestroy(pool);
  if (result != CUDA_SUCCESS) return result;
  const std::lock_guard lock(g_mutex);
  std::erase_if(chosen(), [&](const auto& row) { return row.second == pool; });
  return CUDA_SUCCESS;
}

CUresult allocate(CUdeviceptr* address, std::size_t bytes, CUstream stream) {
  const DriverApi& api = driver_api();
  {
    const std::lock_guard lock(g_mutex);
    if (chosen().empty()) return api.cuMemAllocAsync(address, bytes, stream);
  }
  CUdevice device = 0;
  CUmemoryPool pool = nullptr;
  CUresult result = api.cuCtxGetDevice(&device);
  if (result == CUDA_SUCCESS) result = get_pool(&pool, device);
  return result != CUDA_SUCCESS ? result
                                : api.cuMemAllocFromPoolAsync(address, bytes, pool, stream);
}

CUresult check_place(const CUmemLocation* place, CUmemAllocationType type) {
  if (place == nullptr || type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  return place->type == CU_MEM_LOCATION_TYPE_DEVICE ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}
CUresult default_pool_at(CUmemoryPool* pool, CUmemLocation* place, CUmemAllocationType type) {
  const CUresult known = check_place(place, type);
  return known != CUDA_SUCCESS ? known : driver_api().cuDeviceGetDefaultMemPool(pool, place->id);
}
CUresult pool_at(CUmemoryPool* pool, CUmemLocation* place, CUmemAllocationType type) {
  const CUresult known = check_place(place, type);
  return known != CUDA_SUCCESS ? known : get_pool(pool, place->id);
}
CUresult set_pool_at(CUmemLocation* place, CUmemAllocationType type, CUmemoryPool pool) {
  const CUresult known = check_place(place, type);
  return known != CUDA_SUCCESS ? known : set_pool(place->id, pool);
}

}  // namespace

std::span<const Function> pool_functions() {
  static const Function rows[] = {
      provide<get_pool>("cuDeviceGetMemPool", "cuDeviceGetMemPool", 11020),
      provide<set_pool>("cuDeviceSetMemPool", "cuDeviceSetMemPool", 11020),
      provide<destroy_pool>("cuMemPoolDestroy", "cuMemPoolDestroy", 11020),
      provide<allocate>("cuMemAllocAsync", "cuMemAllocAsync", 11020),
      provide<default_pool_at>("cuMemGetDefaultMemPool", "cuMemGetDefaultMemPool", 13000),
      provide<pool_at>("cuMemGetMemPool", "cuMemGetMemPool", 13000),
      provide<set_pool_at>("cuMemSetMemPool", "cuMemSetMemPool", 13000),
  };
  return rows;
}

}  // namespace kernwright::libcuda
