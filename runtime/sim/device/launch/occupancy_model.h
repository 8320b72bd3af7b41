// How many blocks of a kernel fit on a multiprocessor of compute capability 8.0.
#pragma once

#include <cstddef>

namespace kernwright::sim {

/// The resources of a launch; bytes and 32-bit registers.
struct BlockResources {
  int block_threads = 0;
  int registers = 0;  ///< of one thread
  std::size_t static_shared = 0;
  std::size_t dynamic_shared = 0;
};

/// Resident blocks on one multiprocessor, 0 when not even one fits. Threads, blocks, registers
/// (given out in units of 256 per warp) and shared memory (units of 128 bytes, 1 KiB reserved per
/// block) each set a limit; the smallest counts.
int resident_blocks(const BlockResources& request);

/// Largest block size allowed by registers, a multiple of the warp.
int max_block_threads(int registers);

/// Largest dynamic shared memory per block with `blocks` blocks on a multiprocessor.
std::size_t available_dynamic_shared(int blocks, std::size_t static_shared);

}  // namespace kernwright::sim
