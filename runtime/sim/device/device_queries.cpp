// Driver functions that describe the simulated devices.
#include "base/format.h"
#include "sim/device/sim_driver.h"

#include <cstring>
#include <string>

namespace kernwright::sim {
namespace {

void device_get_count(int* count) {
  require(count != nullptr);
  *count = static_cast<int>(sim_driver().devices.size());
}

void device_get(CUdevice* device, int ordinal) {
  require(device != nullptr);
  *device = sim_driver().device(ordinal).ordinal;
}

/// Copies `text` with its NUL, cut to `length` bytes.
void copy_text(char* to, int length, const std::string& text) {
  const auto room = static_cast<std::size_t>(length) - 1;
  const std::size_t count = std::min(room, text.size());
  std::memcpy(to, text.data(), count);
  to[count] = '\0';
}

void device_get_name(char* name, int length, CUdevice device) {
  require(name != nullptr && length > 0);
  sim_driver().device(device);
  copy_text(name, length, device_profile().name);
}

void device_get_uuid(CUuuid* uuid, CUdevice device) {
  require(uuid != nullptr);
  const int ordinal = sim_driver().device(device).ordinal;
  std::memcpy(uuid->bytes, "kernwright-sim", 14);
  uuid->bytes[14] = static_cast<char>(ordinal >> 8);
  uuid->bytes[15] = static_cast<char>(ordinal);
}

void device_get_attribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  require(value != nullptr);
  const int ordinal = sim_driver().device(device).ordinal;
  const auto known = device_profile().attribute(attribute);
  require(known.has_value());
  *value = attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID ? ordinal : *known;
}

void device_total_mem(std::size_t* bytes, CUdevice device) {
  require(bytes != nullptr);
  *bytes = sim_driver().device(device).memory.capacity();
}

std::string bus_id_of(int ordinal) { return format("0000:{:02X}:00.0", ordinal); }

void device_get_pci_bus_id(char* bus_id, int length, CUdevice device) {
  require(bus_id != nullptr && length > 0);
  const std::string text = bus_id_of(sim_driver().device(device).ordinal);
  require(static_cast<std::size_t>(length) > text.size());
  copy_text(bus_id, length, text);
}

void device_get_by_pci_bus_id(CUdevice* device, const char* bus_id) {
  require(device != nullptr && bus_id != nullptr);
  std::string wanted;
  for (const char* c = bus_id; *c != '\0'; ++c) {
    wanted += *c >= 'a' && *c <= 'f' ? static_cast<char>(*c - 'a' + 'A') : *c;
  }
  for (const auto& candidate : sim_driver().devices) {
    const std::string text = bus_id_of(candidate->ordinal);
    // The domain and the function may be left out.
    if (wanted == text || wanted == text.substr(5) || wanted == text.substr(5, 5)) {
      *device = candidate->ordinal;
      return;
    }
  }
  fail(CUDA_ERROR_INVALID_VALUE);
}

void device_can_access_peer(int* can_access, CUdevice device, CUdevice peer) {
  require(can_access != nullptr);
  *can_access = sim_driver().device(device).ordinal != sim_driver().device(peer).ordinal;
}

/// Links between simulated devices are all alike.
void device_get_p2p_attribute(int* value, CUdevice_P2PAttribute attribute, CUdevice source,
                              CUdevice target) {
  require(value != nullptr);
  require(sim_driver().device(source).ordinal != sim_driver().device(target).ordinal,
          CUDA_ERROR_INVALID_DEVICE);
  require(attribute >= CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK &&
          attribute <= CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED);
  *value = attribute == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED ||
           attribute == CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED;
}

}  // namespace

void install_device_queries(DriverApi& api) {
  api.cuDeviceGetCount = guarded<device_get_count>;
  api.cuDeviceGet = guarded<device_get>;
  api.cuDeviceGetName = guarded<device_get_name>;
  api.cuDeviceGetUuid = guarded<device_get_uuid>;
  api.cuDeviceGetAttribute = guarded<device_get_attribute>;
  api.cuDeviceTotalMem = guarded<device_total_mem>;
  api.cuDeviceGetPCIBusId = guarded<device_get_pci_bus_id>;
  api.cuDeviceGetByPCIBusId = guarded<device_get_by_pci_bus_id>;
  api.cuDeviceCanAccessPeer = guarded<device_can_access_peer>;
  api.cuDeviceGetP2PAttribute = guarded<device_get_p2p_attribute>;
}

}  // namespace kernwright::sim
