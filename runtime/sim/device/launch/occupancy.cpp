// Driver functions for the number of blocks on a multiprocessor.
#include "sim/device/launch/launch.h"
#include "sim/device/module/function.h"
#include "sim/device/sim_driver.h"

#include <algorithm>

namespace kernwright::sim {
namespace {

/// Blocks of a cluster requested by `config`, or 1.
std::uint64_t cluster_blocks(const CUlaunchConfig& config) {
  require(config.numAttrs == 0 || config.attrs != nullptr);
  const auto* const value = last_attribute(config, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
  if (value == nullptr) return 1;
  return std::uint64_t{value->clusterDim.x} * value->clusterDim.y * value->clusterDim.z;
}

int fitting_blocks(const CUlaunchConfig& config, const Function& function) {
  const std::uint64_t threads =
      std::uint64_t{config.blockDimX} * config.blockDimY * config.blockDimZ;
  require(threads > 0 && threads <= 1024);
  return resident_blocks(function, static_cast<int>(threads), config.sharedMemBytes) *
         device_profile().required(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
}

}  // namespace

void calls::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction handle,
                                                                 int block_size,
                                                                 std::size_t dynamic_shared,
                                                                 unsigned int flags) {
  require(blocks != nullptr && block_size > 0);
  require(flags == CU_OCCUPANCY_DEFAULT || flags == CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE);
  *blocks = resident_blocks(*find_function(handle), block_size, dynamic_shared);
}

void calls::cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction handle,
                                                        int block_size,
                                                        std::size_t dynamic_shared) {
  cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, handle, block_size, dynamic_shared,
                                                       CU_OCCUPANCY_DEFAULT);
}

/// Tries all multiples of the warp from the largest down and keeps the first with the best result.
void calls::cuOccupancyMaxPotentialBlockSize(int* min_grid_size, int* block_size, CUfunction handle,
                                             CUoccupancyB2DSize block_shared,
                                             std::size_t dynamic_shared, int block_limit) {
  require(min_grid_size != nullptr && block_size != nullptr && block_limit >= 0);
  const auto function = find_function(handle);
  constexpr int kWarp = 32;
  const int most = max_block_threads(*function);
  const int largest = block_limit == 0 ? most : std::min(block_limit, most);
  int best_threads = 0, best_block = 0, best_count = 0;
  for (int rounded = (largest + kWarp - 1) / kWarp * kWarp; rounded > 0; rounded -= kWarp) {
    const int block = std::min(rounded, largest);
    const std::size_t shared = block_shared == nullptr ? dynamic_shared : block_shared(block);
    const int count = resident_blocks(*function, block, shared);
    if (count * block <= best_threads) continue;
    best_threads = count * block;
    best_block = block;
    best_count = count;
  }
  *block_size = best_block;
  *min_grid_size = best_count * device_profile().required(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
}

void calls::cuOccupancyAvailableDynamicSMemPerBlock(std::size_t* dynamic_shared, CUfunction handle,
                                                    int blocks, int block_size) {
  require(dynamic_shared != nullptr && blocks > 0 && block_size > 0);
  const auto function = find_function(handle);
  require(resident_blocks(*function, block_size, 0) >= blocks);
  const auto optin = static_cast<std::size_t>(
      device_profile().required(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
  *dynamic_shared = std::min(available_dynamic_shared(blocks, function->shared_bytes),
                             optin - function->shared_bytes);
}

/// NOTE: counts multiprocessors without their grouping, which is unknown for GPUs.
void calls::cuOccupancyMaxActiveClusters(int* clusters, CUfunction handle,
                                         const CUlaunchConfig* config) {
  require(device_profile().is_90, CUDA_ERROR_NOT_SUPPORTED);
  require(clusters != nullptr && config != nullptr);
  const std::uint64_t blocks = cluster_blocks(*config);
  require(blocks >= 1 && blocks <= 16, CUDA_ERROR_INVALID_CLUSTER_SIZE);
  *clusters = fitting_blocks(*config, *find_function(handle)) / static_cast<int>(blocks);
}

void calls::cuOccupancyMaxPotentialClusterSize(int* blocks, CUfunction handle,
                                               const CUlaunchConfig* config) {
  require(device_profile().is_90, CUDA_ERROR_NOT_SUPPORTED);
  require(blocks != nullptr && config != nullptr);
  const auto function = find_function(handle);
  *blocks = fitting_blocks(*config, *function) == 0 ? 0 : function->large_clusters ? 16 : 8;
}

}  // namespace kernwright::sim
