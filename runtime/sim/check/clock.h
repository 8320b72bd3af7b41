// What one warp knows of other warps' past: up to which tick their accesses came before.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>

namespace kernwright::sim {

inline constexpr std::uint32_t kMostWarps = 32;

/// Of one block: accesses below `floor`, and those of warp w below `warps[w]`, came before.
struct BlockPast {
  std::uint32_t floor = 0;
  std::array<std::uint32_t, kMostWarps> warps{};

  bool covers(std::uint32_t tick, std::uint32_t warp) const noexcept {
    return tick < floor || tick < warps[warp];
  }
  void join(const BlockPast& other) noexcept {
    floor = floor < other.floor ? other.floor : floor;
    for (std::uint32_t w = 0; w < kMostWarps; ++w)
      warps[w] = warps[w] < other.warps[w] ? other.warps[w] : warps[w];
  }
};

/// By linear index of the block. Shared between warps and synchronisation variables once made.
using Past = std::unordered_map<std::uint32_t, BlockPast>;
using SharedPast = std::shared_ptr<const Past>;

/// Both; either may be null, which knows nothing.
SharedPast join(const SharedPast& a, const SharedPast& b);

}  // namespace kernwright::sim
