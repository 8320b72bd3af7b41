// Facts from the driver's attributes, and as fields of a message.
#include "worker/device/device_facts.h"

#include <array>

#include "base/errors.h"
#include "core/device.h"
#include "core/runtime.h"
#include "worker/message_fields.h"

namespace kernwright {
namespace {

struct Row {
  int DeviceFacts::*field;
  CUdevice_attribute attribute;
};
constexpr std::array kRows{
    Row{&DeviceFacts::sm_count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
    Row{&DeviceFacts::warp_size, CU_DEVICE_ATTRIBUTE_WARP_SIZE},
    Row{&DeviceFacts::max_threads_per_block, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK},
    Row{&DeviceFacts::max_threads_per_sm, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR},
    Row{&DeviceFacts::max_blocks_per_sm, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR},
    Row{&DeviceFacts::max_shared_bytes_per_block,
        CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN},
    Row{&DeviceFacts::max_shared_bytes_per_sm,
        CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR},
    Row{&DeviceFacts::max_registers_per_block, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK},
    Row{&DeviceFacts::max_registers_per_sm, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR},
    Row{&DeviceFacts::l2_bytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE},
    Row{&DeviceFacts::clock_khz, CU_DEVICE_ATTRIBUTE_CLOCK_RATE},
    Row{&DeviceFacts::memory_clock_khz, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE},
    Row{&DeviceFacts::memory_bus_bits, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH},
};

int attribute_or_zero(const Device& device, CUdevice_attribute which) {
  try {
    return device.attribute(which);
  } catch (const DriverError&) {
    return 0;
  }
}

}  // namespace

DeviceFacts facts_of(Device& device) {
  DeviceFacts facts;
  facts.name = device.name();
  facts.label = device.label();
  facts.uuid = device.uuid();
  facts.capability = device.compute_capability();
  facts.is_simulated = device.is_simulated();
  facts.driver_version = device.driver_version();
  facts.device_count = static_cast<int>(Runtime::get().devices().size());
  facts.total_bytes = device.memory_info().total;
  for (const Row& row : kRows) facts.*row.field = attribute_or_zero(device, row.attribute);
  return facts;
}

void write(ByteWriter& out, const DeviceFacts& facts) {
  for (const std::string* text : {&facts.name, &facts.label, &facts.uuid}) out.text(*text);
  out.i32(facts.capability.major);
  out.i32(facts.capability.minor);
  out.u8(facts.is_simulated ? 1 : 0);
  out.i32(facts.driver_version);
  out.i32(facts.device_count);
  out.u64(facts.total_bytes);
  for (const Row& row : kRows) out.i32(facts.*row.field);
}

DeviceFacts read_device_facts(ByteReader& in) {
  DeviceFacts facts;
  for (std::string* text : {&facts.name, &facts.label, &facts.uuid}) *text = read_text(in);
  facts.capability.major = in.i32();
  facts.capability.minor = in.i32();
  facts.is_simulated = in.u8() != 0;
  facts.driver_version = in.i32();
  facts.device_count = in.i32();
  facts.total_bytes = in.u64();
  for (const Row& row : kRows) facts.*row.field = in.i32();
  return facts;
}

}  // namespace kernwright
