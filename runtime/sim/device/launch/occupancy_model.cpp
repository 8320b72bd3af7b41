// The limits of a multiprocessor of compute capability 8.0.
#include "sim/device/launch/occupancy_model.h"

#include "base/math.h"
#include "sim/device/profile.h"

#include <algorithm>

namespace kernwright::sim {
namespace {

constexpr int kWarp = 32;
constexpr int kRegisterUnit = 256;  // registers are given to a warp in units of this many
constexpr int kSubPartitions = 4;   // warps of a block spread over this many register files
constexpr std::size_t kSharedUnit = 128;

struct Limits {
  int threads, blocks, registers;
  std::size_t shared, shared_reserved;
};

const Limits& limits() {
  const DeviceProfile& profile = device_profile();
  static const Limits values{profile.required(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR),
                             profile.required(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR),
                             profile.required(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR),
                             static_cast<std::size_t>(profile.required(
                                 CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)),
                             static_cast<std::size_t>(profile.required(
                                 CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK))};
  return values;
}

/// Warps that fit into the register files at once.
int warps_by_registers(int registers) {
  if (registers <= 0) return limits().threads / kWarp;
  const int per_warp = round_up(registers * kWarp, kRegisterUnit);
  return limits().registers / kSubPartitions / per_warp * kSubPartitions;
}

std::size_t shared_per_block(std::size_t bytes) {
  return (bytes + limits().shared_reserved + kSharedUnit - 1) / kSharedUnit * kSharedUnit;
}

}  // namespace

int resident_blocks(const BlockResources& request) {
  const Limits& limit = limits();
  const std::size_t shared = request.static_shared + request.dynamic_shared;
  if (request.block_threads <= 0 || shared > limit.shared) return 0;
  const int warps = round_up(request.block_threads, kWarp) / kWarp;
  const int by_threads = limit.threads / kWarp / warps;
  const int by_registers = warps_by_registers(request.registers) / warps;
  const auto by_shared = static_cast<int>(
      std::min<std::size_t>(limit.shared / shared_per_block(shared), limit.blocks));
  return std::min({limit.blocks, by_threads, by_registers, by_shared});
}

int max_block_threads(int registers) {
  const int most = device_profile().required(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  return std::min(most, warps_by_registers(registers) * kWarp);
}

std::size_t available_dynamic_shared(int blocks, std::size_t static_shared) {
  const Limits& limit = limits();
  if (blocks <= 0 || blocks > limit.blocks) return 0;
  const std::size_t share =
      limit.shared / static_cast<std::size_t>(blocks) / kSharedUnit * kSharedUnit;
  const std::size_t taken = limit.shared_reserved + static_shared;
  return share > taken ? share - taken : 0;
}

}  // namespace kernwright::sim
