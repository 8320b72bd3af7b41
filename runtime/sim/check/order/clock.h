// One warp's knowledge of other warps' past: up to a tick, their accesses came before.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>

namespace kernwright::sim {

inline constexpr std::uint32_t kMostWarps = 32;

/// How far an atomic operation or a fence reaches: its scope, as far as one device can tell.
enum class Reach : std::uint8_t { block, cluster, device };
inline constexpr std::size_t kReaches = 3;

/// Owners of accesses known to others: a block's warps; then the ends told by its mbarriers
/// (mbarriers share places where there are more); then the warps again, for their writes made
/// visible to asynchronous operations by a proxy fence.
inline constexpr std::uint32_t kBarrierPlaces = 32;
inline constexpr std::uint32_t kProxied = kMostWarps + kBarrierPlaces;
inline constexpr std::uint32_t kPlaces = kProxied + kMostWarps;

/// By place: accesses below these ticks came before.
struct Known : std::array<std::uint32_t, kPlaces> {
  void join(const Known& other) noexcept {
    for (std::uint32_t i = 0; i < kPlaces; ++i)
      (*this)[i] = (*this)[i] < other[i] ? other[i] : (*this)[i];
  }
};

/// Knowledge of one block: accesses below `floor`, and those of `places`, came before.
struct BlockPast {
  std::uint32_t floor = 0;
  Known places{};

  bool covers(std::uint32_t tick, std::uint32_t place) const noexcept {
    return tick < floor || tick < places[place];
  }
  void join(const BlockPast& other) noexcept {
    floor = floor < other.floor ? other.floor : floor;
    places.join(other.places);
  }
};

/// By linear index of the block. Shared between warps and synchronisation variables once made.
using Past = std::unordered_map<std::uint32_t, BlockPast>;
using SharedPast = std::shared_ptr<const Past>;
/// A past for each reach.
using PastByReach = std::array<SharedPast, kReaches>;

/// Both; either may be null, the empty past.
SharedPast join(const SharedPast& a, const SharedPast& b);

}  // namespace kernwright::sim
