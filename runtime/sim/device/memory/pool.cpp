// Driver functions of stream-ordered memory. A pool counts; memory goes back when its turn to be
// freed comes.
#include "sim/device/sim_driver.h"
#include "sim/device/teardown.h"

namespace kernwright::sim {
namespace {

std::shared_ptr<MemoryPool> find_pool(CUmemoryPool handle) {
  auto pool = sim_driver().pools.find(handle);
  require(pool != nullptr);
  return pool;
}

void count_use(MemoryPool& pool, std::uint64_t bytes) {
  const std::lock_guard lock(pool.mutex);
  pool.used += bytes;
  pool.used_high = std::max(pool.used_high, pool.used);
  pool.reserved_high = std::max(pool.reserved_high, pool.used);
}

/// Memory that earlier work will free counts as free: this work runs before giving up.
std::uint64_t allocate_patiently(const StreamUse& use, std::uint64_t bytes,
                                 const AllocationInfo& info) {
  try {
    return allocate_for(*use.context, bytes, info);
  } catch (const Failure& failure) {
    if (failure.code != CUDA_ERROR_OUT_OF_MEMORY || !sim_driver().queues.deferred()) throw;
  }
  sim_driver().queues.finish(*use.context);
  return allocate_for(*use.context, bytes, info);
}

/// The address is known at once; in the stream's order the memory begins to be there later. In a
/// capture it becomes the graph's.
void allocate_on(const StreamUse& use, const std::shared_ptr<MemoryPool>& pool,
                 CUdeviceptr* address, std::size_t bytes) {
  require(address != nullptr && pool->device == &use.context->device);
  AllocationInfo info;
  info.pool = pool;
  const std::uint64_t begin = allocate_patiently(use, bytes, info);
  count_use(*pool, bytes);
  try {
    submit(use, AllocWork{begin, bytes, nullptr});
  } catch (...) {
    discard_allocation(begin);
    throw;
  }
  *address = begin;
}

/// Index into MemoryPool::reuse, or -1.
int reuse_index(CUmemPool_attribute attribute) {
  const int index = attribute - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES;
  return index >= 0 && index < 3 ? index : -1;
}

}  // namespace

void calls::cuMemAllocAsync(CUdeviceptr* address, std::size_t bytes, CUstream stream) {
  const StreamUse use = use_stream(stream);
  allocate_on(use, use.context->device.default_pool, address, bytes);
}

void calls::cuMemAllocFromPoolAsync(CUdeviceptr* address, std::size_t bytes, CUmemoryPool pool,
                                    CUstream stream) {
  allocate_on(use_stream(stream), find_pool(pool), address, bytes);
}

void calls::cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  const StreamUse use = use_stream(stream);
  if (address == 0) return;
  auto graph = graph_memory_at(address);
  if (graph == nullptr) require_allocation(address, "cuMemFreeAsync", true);
  try {
    submit(use, FreeWork{address, std::move(graph)});
  } catch (...) {
    cancel_free(address);
    throw;
  }
}

void calls::cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
  require(pool != nullptr);
  *pool = sim_driver().device(device).default_pool_handle;
}

void calls::cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* properties) {
  require(pool != nullptr && properties != nullptr);
  require(properties->allocType == CU_MEM_ALLOCATION_TYPE_PINNED &&
          properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE);
  require(properties->handleTypes == CU_MEM_HANDLE_TYPE_NONE, CUDA_ERROR_NOT_SUPPORTED);
  auto object = std::make_shared<MemoryPool>();
  object->device = &sim_driver().device(properties->location.id);
  *pool = sim_driver().pools.insert(std::move(object));
}

void calls::cuMemPoolDestroy(CUmemoryPool pool) {
  require(!find_pool(pool)->is_default);
  sim_driver().pools.remove(pool);
}

void calls::cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  const auto pool = find_pool(handle);
  require(value != nullptr);
  const std::lock_guard lock(pool->mutex);
  if (const int index = reuse_index(attribute); index >= 0) {
    pool->reuse[static_cast<std::size_t>(index)] = *static_cast<int*>(value) != 0;
    return;
  }
  const std::uint64_t number = *static_cast<cuuint64_t*>(value);
  switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: pool->release_threshold = number; break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      require(number == 0);
      pool->reserved_high = pool->used;
      break;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      require(number == 0);
      pool->used_high = pool->used;
      break;
    default: fail(CUDA_ERROR_INVALID_VALUE);
  }
}

void calls::cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  const auto pool = find_pool(handle);
  require(value != nullptr);
  const std::lock_guard lock(pool->mutex);
  if (const int index = reuse_index(attribute); index >= 0) {
    *static_cast<int*>(value) = pool->reuse[static_cast<std::size_t>(index)];
    return;
  }
  auto& number = *static_cast<cuuint64_t*>(value);
  switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: number = pool->release_threshold; break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: number = pool->used; break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: number = pool->reserved_high; break;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: number = pool->used_high; break;
    default: fail(CUDA_ERROR_INVALID_VALUE);
  }
}

/// Nothing is kept, so there is nothing to trim.
void calls::cuMemPoolTrimTo(CUmemoryPool pool, std::size_t) { find_pool(pool); }

/// Memory of a pool is reachable for its own device and, as peers allow, for the others.
void calls::cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc* descriptors,
                               std::size_t count) {
  const auto pool = find_pool(handle);
  require(descriptors != nullptr || count == 0);
  for (std::size_t i = 0; i < count; ++i) {
    require(descriptors[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE);
    const SimDevice& device = sim_driver().device(descriptors[i].location.id);
    require(&device != pool->device || descriptors[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  }
}

void perform(const AllocWork& work, AccessLog* log) {
  if (work.graph != nullptr) work.graph->live = true;
  if (log == nullptr) return;
  log->note(work.address, work.bytes, AccessKind::write);
}

void perform(const FreeWork& work, AccessLog* log) {
  if (log != nullptr) {
    const Memory* const memory = sim_driver().get_memory(work.address);
    const AddressRange range = memory == nullptr ? AddressRange{} : memory->search(work.address);
    log->note(range.begin, range.end - range.begin, AccessKind::write);
  }
  if (work.graph != nullptr) {
    work.graph->live = false;
  } else {
    free_allocation(work.address, false, "cuMemFreeAsync");
  }
}

}  // namespace kernwright::sim
