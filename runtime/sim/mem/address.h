// The simulated device's address map.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kernwright::sim {

/// A device pointer is the host address of its byte plus this tag: a dereference in host code
/// faults at once (the address is not canonical), as on a machine with a GPU.
inline constexpr std::uint64_t kGlobalTag = std::uint64_t{1} << 52;
/// Windows of the generic address space; inside them the low 32 bits are the offset.
inline constexpr std::uint64_t kSharedWindow = std::uint64_t{2} << 52;
inline constexpr std::uint64_t kLocalWindow = std::uint64_t{3} << 52;
inline constexpr std::uint64_t kParamWindow = std::uint64_t{4} << 52;
inline constexpr std::uint64_t kWindowMask = ~((std::uint64_t{1} << 52) - 1);
/// Function pointers: this base plus 16 times the function's index in Program::functions.
inline constexpr std::uint64_t kFunctionWindow = std::uint64_t{5} << 52;
/// Handles of textures and surfaces: this base plus 16 times a number that is never used again.
inline constexpr std::uint64_t kTextureWindow = std::uint64_t{6} << 52;

/// Bytes of a host object behind an already checked device pointer.
inline std::byte* host_pointer(std::uint64_t address) noexcept {
  return reinterpret_cast<std::byte*>(address & ~kGlobalTag);
}

}  // namespace kernwright::sim
