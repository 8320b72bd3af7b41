// Facts about a device in another process.
#pragma once

#include "base/byte_reader.h"
#include "core/capability.h"

#include <cstdint>
#include <string>

namespace kernwright {

class Device;

/// A value; numbers that a driver does not tell are 0.
struct DeviceFacts {
  std::string name;   ///< "NVIDIA H100 80GB HBM3"
  std::string label;  ///< in its worker: "cuda:0", "sim:0"
  std::string uuid;   ///< "GPU-xxxxxxxx-..."
  ComputeCapability capability;
  bool is_simulated = false;
  int driver_version = 0;  ///< 13000 for CUDA 13.0
  int device_count = 0;    ///< devices of this kind that the worker sees
  int sm_count = 0;
  int warp_size = 0;
  int max_threads_per_block = 0;
  int max_threads_per_sm = 0;
  int max_blocks_per_sm = 0;
  int max_shared_bytes_per_block = 0;  ///< dynamic and static together, opted in
  int max_shared_bytes_per_sm = 0;
  int max_registers_per_block = 0;
  int max_registers_per_sm = 0;
  int l2_bytes = 0;
  int clock_khz = 0;         ///< highest of the multiprocessors
  int memory_clock_khz = 0;  ///< highest
  int memory_bus_bits = 0;
  std::uint64_t total_bytes = 0;  ///< of memory
};

DeviceFacts facts_of(Device& device);

void write(ByteWriter& out, const DeviceFacts& facts);
DeviceFacts read_device_facts(ByteReader& in);

}  // namespace kernwright
