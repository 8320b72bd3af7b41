// Accesses of single lanes in any space: what the handlers for whole warps do not do themselves.
#include "sim/check/block_check.h"
#include "sim/code/program.h"
#include "sim/exec/block/cluster.h"
#include "sim/exec/warp/lane_memory.h"

#include <algorithm>
#include <bit>

namespace kernwright::sim {
namespace {

using ptx::Space;

bool inside_limit(std::uint64_t address, std::uint64_t bytes, std::uint64_t limit) {
  return address <= limit && bytes <= limit - address;
}

}  // namespace

void BlockCheck::touch_lane(const Op* op, Warp& warp, int lane, AccessKind mode,
                            std::uint64_t address, std::uint64_t bytes, Space space) {
  if (space == Space::generic) {
    space = window_space(address);
    if (space != Space::global) address &= ~kWindowMask;
  }
  if (bytes == 0) return;
  if ((space == Space::shared || space == Space::cluster) && address >> kRankShift != 0) {
    const std::uint64_t rank = (address >> kRankShift & kRankMask) - 1;
    BlockCheck* const owner = peer(rank);
    if (owner != this) {
      if (owner == nullptr || !owner->shared.has(address & kOffsetMask, bytes)) return;
      return touch_far(op, warp, lane,
                       {mode, Space::cluster, address, static_cast<std::uint32_t>(bytes), nullptr,
                        nullptr, owner});
    }
    address &= kOffsetMask;
  }
  if (space == Space::cluster) space = Space::shared;
  if (space == Space::local) {
    const std::uint64_t lanes = warp.index * std::uint64_t{kLanes} + static_cast<unsigned>(lane);
    if (!init || !inside_limit(address, bytes, warp.local_bytes)) return;
    const std::uint64_t at = lanes * warp.local_bytes + address;
    return init_part(op, warp, lane, {mode, space, address, static_cast<std::uint32_t>(bytes)},
                     unwritten.local, at);
  }
  if (space == Space::shared) {
    if (!inside_limit(address, bytes, warp.shared_bytes)) return;
    touch_part(op, warp, lane,
               {mode, space, address, static_cast<std::uint32_t>(bytes), nullptr, nullptr});
    return;
  }
  if (space != Space::global) return;
  regions.each(address, bytes, mode,
               [&](const LaneTouch& part) { touch_part(op, warp, lane, part); });
}

void BlockCheck::located(const Op* op, Warp& warp, int lane, const LaneAccess& access) {
  if (!inside) accessed(op, warp, lane, access);
}

void BlockCheck::accessed(const Op* op, Warp& warp, int lane, const LaneAccess& access) {
  touch_lane(op, warp, lane, access.kind, access.address, access.size, access.space);
}

void BlockCheck::touch_used(const Op* op, Warp& warp, const CheckedOp& info,
                            const std::uint64_t* address, Space space) {
  for (std::uint32_t m = warp.mask; m != 0; m &= m - 1) {
    const int lane = std::countr_zero(m);
    for (std::uint32_t rest = info.used; rest != 0;) {
      const std::uint32_t at = static_cast<std::uint32_t>(std::countr_zero(rest));
      const std::uint32_t alignment =
          at == 0 ? 8 : at & (0 - at);  // pieces are aligned, as accesses
      const auto run = static_cast<std::uint32_t>(std::countr_one(rest >> at));
      const std::uint32_t bytes = std::bit_floor(std::min({run, 8u, alignment}));
      touch_lane(op, warp, lane, AccessKind::read, address[lane] + at, bytes, space);
      rest &= ~(((1u << bytes) - 1) << at);
    }
  }
}

/// `at` is the place of the bytes in the bitmap.
void BlockCheck::init_part(const Op* op, Warp& warp, int lane, const LaneTouch& touch,
                           std::uint64_t* map, std::uint64_t at) {
  unwritten.touch(op, warp, lane, touch, map, at);
  note_followed();
}

/// Shared memory of another block of the cluster.
void BlockCheck::touch_far(const Op* op, Warp& warp, int lane, const LaneTouch& touch) {
  BlockCheck& owner = *touch.owner;
  const std::uint64_t at = touch.address & kOffsetMask;
  if (init) init_part(op, warp, lane, touch, owner.unwritten.shared, at);
  if (!race) return;
  cluster.visit(op, warp, lane, touch);
  races.examine(op, warp, lane, touch);
}

void BlockCheck::touch_part(const Op* op, Warp& warp, int lane, const LaneTouch& touch) {
  std::uint64_t* const map =
      touch.region != nullptr ? touch.region->poison.load() : unwritten.shared;
  const std::uint64_t at = touch.region != nullptr ? touch.address % kRegionBytes : touch.address;
  if (init && map != nullptr) init_part(op, warp, lane, touch, map, at);
  if (race) races.examine(op, warp, lane, touch);
}

void BlockCheck::used(const Op* op, Warp& warp, int lane, std::uint64_t address,
                      std::uint32_t bytes) {
  if (!init || window_space(address) != Space::local) return;
  unwritten.use_local(op, warp, lane, address & ~kWindowMask, bytes);
  note_followed();
}

void BlockCheck::allocated(std::uint64_t address, std::uint64_t bytes) {
  if (init) where.launch.shadow.poison(address, bytes);
}

}  // namespace kernwright::sim
