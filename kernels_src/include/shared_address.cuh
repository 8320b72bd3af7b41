// Addresses in shared memory as instructions take them.
#pragma once

namespace kernwright {

/// In a cluster the rank of the block is in the bits above the offset.
__device__ __forceinline__ unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

}  // namespace kernwright
