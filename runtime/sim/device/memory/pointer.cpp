// Driver functions about the memory at an address.
#include "sim/device/sim_driver.h"

namespace kernwright::sim {
namespace {

/// Everything known about one address; `allocation` is empty for an unknown one.
struct PointerFacts {
  std::optional<Allocation> allocation;
  AllocationInfo info;
  SimDevice* device = nullptr;
};

PointerFacts find_facts(std::uint64_t address) {
  SimDriver& instance = sim_driver();
  PointerFacts facts;
  Memory* const memory = instance.get_memory(address);
  if (memory == nullptr) return facts;
  facts.allocation = memory->lookup(address);
  if (!facts.allocation) return facts;
  facts.device = instance.devices.front().get();
  for (const auto& device : instance.devices) {
    if (&device->memory == memory) facts.device = device.get();
  }
  const std::lock_guard lock(instance.allocations_mutex);
  const AllocationInfo* const info = instance.allocation_at(facts.allocation->range.begin);
  if (info != nullptr) facts.info = *info;
  return facts;
}

bool is_host(const PointerFacts& facts) { return facts.allocation->kind == AllocationKind::host; }
bool is_managed(const PointerFacts& facts) {
  return facts.allocation->kind == AllocationKind::managed;
}

template <typename T>
bool put(void* to, T value) {
  *static_cast<T*>(to) = value;
  return true;
}

/// Attributes of an address within an allocation. False for an unknown attribute.
bool write_attribute(void* value, CUpointer_attribute attribute, const PointerFacts& facts,
                     std::uint64_t address) {
  const AddressRange& range = facts.allocation->range;
  const bool is_default = facts.info.pool != nullptr && facts.info.pool->is_default;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: return put(value, facts.device->handle);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return put<unsigned>(value, is_host(facts) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: return put<CUdeviceptr>(value, address);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      require(is_host(facts) || is_managed(facts));
      return put(value, reinterpret_cast<void*>(address));
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      return put<unsigned long long>(value, facts.info.buffer_id);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: return put<unsigned>(value, is_managed(facts));
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: return put(value, facts.device->ordinal);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: return put<CUdeviceptr>(value, range.begin);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: return put<std::size_t>(value, range.end - range.begin);
    case CU_POINTER_ATTRIBUTE_MAPPED: return put(value, 1u);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      return put(value, is_default ? facts.device->default_pool_handle : nullptr);
    default: return false;
  }
}

void clear_attribute(void* value, CUpointer_attribute attribute) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_MAPPED: *static_cast<unsigned*>(value) = 0; break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *static_cast<int*>(value) = -2; break;
    default: *static_cast<std::uint64_t*>(value) = 0; break;
  }
}

}  // namespace

void calls::cuPointerGetAttribute(void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  require(value != nullptr);
  const PointerFacts facts = find_facts(address);
  require(facts.allocation.has_value());
  require(write_attribute(value, attribute, facts, address));
}

/// Unlike the single form this one answers for unknown addresses too, with null values.
void calls::cuPointerGetAttributes(unsigned int count, CUpointer_attribute* attributes,
                                   void** values, CUdeviceptr address) {
  require(count > 0 && attributes != nullptr && values != nullptr);
  const PointerFacts facts = find_facts(address);
  for (unsigned i = 0; i < count; ++i) {
    require(values[i] != nullptr);
    if (!facts.allocation || (attributes[i] == CU_POINTER_ATTRIBUTE_HOST_POINTER &&
                              !is_host(facts) && !is_managed(facts))) {
      clear_attribute(values[i], attributes[i]);
    } else {
      require(write_attribute(values[i], attributes[i], facts, address));
    }
  }
}

void calls::cuMemGetAddressRange(CUdeviceptr* base, std::size_t* bytes, CUdeviceptr address) {
  current_context();
  const PointerFacts facts = find_facts(address);
  require(facts.allocation.has_value(), CUDA_ERROR_NOT_FOUND);
  const AddressRange& range = facts.allocation->range;
  if (base != nullptr) *base = range.begin;
  if (bytes != nullptr) *bytes = range.end - range.begin;
}

}  // namespace kernwright::sim
