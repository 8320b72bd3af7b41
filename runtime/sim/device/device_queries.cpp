// Driver functions about the simulated devices.
#include "base/format.h"
#include "sim/device/sim_driver.h"

#include <cstring>
#include <string>

namespace kernwright::sim {
namespace {

/// Copies `text` with its NUL, cut to `length` bytes.
void copy_text(char* to, int length, const std::string& text) {
  const auto room = static_cast<std::size_t>(length) - 1;
  const std::size_t count = std::min(room, text.size());
  std::memcpy(to, text.data(), count);
  to[count] = '\0';
}

std::string format_bus_id(int ordinal) { return format("0000:{:02X}:00.0", ordinal); }

}  // namespace

void calls::cuDeviceGetCount(int* count) {
  require(count != nullptr);
  *count = static_cast<int>(sim_driver().devices.size());
}

void calls::cuDeviceGet(CUdevice* device, int ordinal) {
  require(device != nullptr);
  *device = sim_driver().device(ordinal).ordinal;
}

void calls::cuDeviceGetName(char* name, int length, CUdevice device) {
  require(name != nullptr && length > 0);
  sim_driver().device(device);
  copy_text(name, length, device_profile().name);
}

void calls::cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  require(uuid != nullptr);
  const int ordinal = sim_driver().device(device).ordinal;
  std::memcpy(uuid->bytes, "kernwright-sim", 14);
  uuid->bytes[14] = static_cast<char>(ordinal >> 8);
  uuid->bytes[15] = static_cast<char>(ordinal);
}

void calls::cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  require(value != nullptr);
  const int ordinal = sim_driver().device(device).ordinal;
  const auto known = device_profile().attribute(attribute);
  require(known.has_value());
  *value = attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID ? ordinal : *known;
}

void calls::cuDeviceTotalMem(std::size_t* bytes, CUdevice device) {
  require(bytes != nullptr);
  *bytes = sim_driver().device(device).memory.capacity();
}

void calls::cuDeviceGetPCIBusId(char* bus_id, int length, CUdevice device) {
  require(bus_id != nullptr && length > 0);
  const std::string text = format_bus_id(sim_driver().device(device).ordinal);
  require(static_cast<std::size_t>(length) > text.size());
  copy_text(bus_id, length, text);
}

void calls::cuDeviceGetByPCIBusId(CUdevice* device, const char* bus_id) {
  require(device != nullptr && bus_id != nullptr);
  std::string wanted;
  for (const char* c = bus_id; *c != '\0'; ++c) {
    wanted += *c >= 'a' && *c <= 'f' ? static_cast<char>(*c - 'a' + 'A') : *c;
  }
  for (const auto& candidate : sim_driver().devices) {
    const std::string text = format_bus_id(candidate->ordinal);
    // The domain and the function may be left out.
    if (wanted == text || wanted == text.substr(5) || wanted == text.substr(5, 5)) {
      *device = candidate->ordinal;
      return;
    }
  }
  fail(CUDA_ERROR_INVALID_VALUE);
}

void calls::cuDeviceCanAccessPeer(int* can_access, CUdevice device, CUdevice peer) {
  require(can_access != nullptr);
  *can_access = sim_driver().device(device).ordinal != sim_driver().device(peer).ordinal;
}

/// Links between simulated devices are all alike.
void calls::cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice source,
                                    CUdevice target) {
  require(value != nullptr);
  require(sim_driver().device(source).ordinal != sim_driver().device(target).ordinal,
          CUDA_ERROR_INVALID_DEVICE);
  require(attribute >= CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK &&
          attribute <= CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED);
  *value = attribute == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED ||
           attribute == CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED;
}

}  // namespace kernwright::sim
