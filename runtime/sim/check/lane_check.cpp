// Accesses of single lanes in any space, for cases outside the handlers for whole warps.
#include "sim/check/lane_check.h"

#include "sim/check/block_check.h"
#include "sim/exec/block/cluster.h"
#include "sim/exec/warp/lane_memory.h"

namespace kernwright::sim {

using ptx::Space;

void LaneCheck::touch(const Op* op, Warp& warp, int lane, AccessKind mode, std::uint64_t address,
                      std::uint64_t bytes, Space space) {
  if (space == Space::generic) {
    space = window_space(address);
    if (space != Space::global) address &= ~kWindowMask;
  }
  if (bytes == 0) return;
  if (space == Space::cluster) space = Space::shared;
  LaneTouch touch{mode, space, address, static_cast<std::uint32_t>(bytes)};
  const std::uint64_t offset = address & kOffsetMask;
  if (space == Space::shared && address >> kRankShift != 0) {
    BlockCheck* const owner = check_.peer((address >> kRankShift & kRankMask) - 1);
    if (owner != &check_) {
      if (owner == nullptr || !owner->shared.has(offset, bytes)) return;
      touch.space = Space::cluster;
      touch.owner = owner;
      return look(op, warp, lane, touch, owner->unwritten.shared, offset);
    }
    touch.address = offset;
  }
  if (space == Space::shared && check_.shared.has(touch.address, bytes))
    look(op, warp, lane, touch, check_.unwritten.shared, touch.address);
  if (space == Space::local && address <= warp.local_bytes && bytes <= warp.local_bytes - address)
    look(op, warp, lane, touch, check_.unwritten.local,
         warp.thread(lane) * warp.local_bytes + address);
  if (space != Space::global) return;
  check_.regions.each(address, bytes, mode, [&](const LaneTouch& part) {
    look(op, warp, lane, part, part.region->poison.load(), part.address % kRegionBytes);
  });
}

/// `at` is the place of the bytes in the bitmap.
void LaneCheck::look(const Op* op, Warp& warp, int lane, const LaneTouch& touch, std::uint64_t* map,
                     std::uint64_t at) {
  if (check_.init && map != nullptr) check_.unwritten.touch(op, warp, lane, touch, map, at);
  if (!check_.race || touch.space == Space::local) return;
  if (touch.owner != nullptr) check_.cluster.visit(op, warp, lane, touch);
  check_.races.examine(op, warp, lane, touch);
}

void LaneCheck::touch_used(const Op* op, Warp& warp, const CheckedOp& info,
                           const std::uint64_t* address, Space space) {
  for (std::uint32_t m = warp.mask; m != 0; m &= m - 1) {
    const int lane = std::countr_zero(m);
    each_run(info.used, 8, [&](std::uint32_t at, std::uint32_t bytes) {
      touch(op, warp, lane, AccessKind::read, address[lane] + at, bytes, space);
    });
  }
}

}  // namespace kernwright::sim
