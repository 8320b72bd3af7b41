// A kernel's needs of a multiprocessor, read from the cubin made by the compiler beside the PTX.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

namespace kernwright::sim {

struct FunctionInfo;

/// Bytes; `registers` are 32-bit ones of one thread.
struct KernelResources {
  int registers = 0;
  std::uint32_t shared_bytes = 0;    ///< static, of one block
  std::uint32_t local_bytes = 0;     ///< of one thread: stack and spills
  std::uint32_t constant_bytes = 0;  ///< the module's __constant__ variables
  std::uint32_t max_threads = 0;     ///< from __launch_bounds__; 0 = none
};

/// Of a thread, by the instruction set.
constexpr int kMostRegisters = 255;

/// Resources of all kernels in `cubin` by lowered name. Reads nothing outside the span; empty when
/// it is not a CUDA ELF image.
std::map<std::string, KernelResources> read_cubin_resources(std::span<const std::byte> cubin);

/// Without a cubin: an estimate from the decoded program. Registers are then the values alive at
/// once in the interpreter's frame. This is near but not equal to the needs of a GPU's compiler: 64
/// at most, so a guess refuses no block of up to 1024 threads.
KernelResources estimate_resources(const FunctionInfo& function);

}  // namespace kernwright::sim
