// Driver functions that ask how many blocks fit on a multiprocessor.
#include "sim/device/function.h"
#include "sim/device/platform.h"

#include <algorithm>

namespace kernwright::sim {
namespace {

CUresult max_active_blocks(int* blocks, CUfunction handle, int block_size,
                           std::size_t dynamic_shared, unsigned int flags) {
  return guarded([&] {
    require(blocks != nullptr && block_size > 0);
    require(flags == CU_OCCUPANCY_DEFAULT || flags == CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE);
    *blocks = resident_blocks(*find_function(handle), block_size, dynamic_shared);
  });
}

CUresult max_active_blocks_default(int* blocks, CUfunction handle, int block_size,
                                   std::size_t dynamic_shared) {
  return max_active_blocks(blocks, handle, block_size, dynamic_shared, CU_OCCUPANCY_DEFAULT);
}

/// Tries all multiples of the warp from the largest down and keeps the first that occupies most.
CUresult max_potential_block_size(int* min_grid_size, int* block_size, CUfunction handle,
                                  CUoccupancyB2DSize shared_of_block, std::size_t dynamic_shared,
                                  int block_limit) {
  return guarded([&] {
    require(min_grid_size != nullptr && block_size != nullptr && block_limit >= 0);
    const auto function = find_function(handle);
    constexpr int kWarp = 32;
    const int most = max_block_threads(*function);
    const int largest = block_limit == 0 ? most : std::min(block_limit, most);
    int best_threads = 0, best_block = 0, best_count = 0;
    for (int rounded = (largest + kWarp - 1) / kWarp * kWarp; rounded > 0; rounded -= kWarp) {
      const int block = std::min(rounded, largest);
      const std::size_t shared =
          shared_of_block == nullptr ? dynamic_shared : shared_of_block(block);
      const int count = resident_blocks(*function, block, shared);
      if (count * block <= best_threads) continue;
      best_threads = count * block;
      best_block = block;
      best_count = count;
    }
    *block_size = best_block;
    *min_grid_size =
        best_count * device_profile().required(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  });
}

CUresult available_dynamic_shared_of(std::size_t* dynamic_shared, CUfunction handle, int blocks,
                                     int block_size) {
  return guarded([&] {
    require(dynamic_shared != nullptr && blocks > 0 && block_size > 0);
    const auto function = find_function(handle);
    require(resident_blocks(*function, block_size, 0) >= blocks);
    const auto optin = static_cast<std::size_t>(
        device_profile().required(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
    *dynamic_shared = std::min(available_dynamic_shared(blocks, function->resources.shared_bytes),
                               optin - function->resources.shared_bytes);
  });
}

}  // namespace

void install_occupancy(DriverApi& api) {
  api.cuOccupancyMaxActiveBlocksPerMultiprocessor = max_active_blocks_default;
  api.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags = max_active_blocks;
  api.cuOccupancyMaxPotentialBlockSize = max_potential_block_size;
  api.cuOccupancyAvailableDynamicSMemPerBlock = available_dynamic_shared_of;
}

}  // namespace kernwright::sim
