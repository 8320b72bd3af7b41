// Accesses that the one in a word's write cell hides: atomic operations on the same word do not
// race with each other, so that several of them, and a plain write before them, may still race with
// what comes next.
#include "sim/check/block_check.h"
#include "sim/code/program.h"

#include <algorithm>
#include <iterator>

namespace kernwright::sim {
HiddenAccesses& BlockCheck::hidden(const WordAccess& access) {
  if (access.global) return access.touch.region->hidden;
  return access.touch.owner != nullptr ? access.touch.owner->hidden_ : hidden_;
}

/// Races of the access with those.
void BlockCheck::look_at_hidden(const WordAccess& access, Cell& write) {
  if (!is_contended(write)) return;
  HiddenAccesses& all = hidden(access);
  if (order.is_forgotten(write, access.global)) {
    all.erase(&write);
    write = 0;
    return;
  }
  const auto found = all.find(&write);
  if (found == all.end()) return;
  const bool writes = access.touch.mode != AccessKind::read;
  Cell farthest = 0;
  for (const Cell cell : found->second) {
    if (order.is_write_ordered(cell, access.warp, access.lane, access.global) ||
        !rules.conflicts(cell, access) ||
        (writes && !rules.is_load(cell) && same_value(access, cell)))
      continue;
    if (farthest == 0 || where.breadth_of(access, cell) > where.breadth_of(access, farthest))
      farthest = cell;
  }
  if (farthest != 0) report_race(access, farthest, true, Missing::order, Told::hidden);
}

/// The access becomes the word's last write, or an atomic read of it.
void BlockCheck::note_write(const WordAccess& access, Cell& write, Cell mine) {
  const Cell old = is_contended(write) ? write & ~kAside : write;
  const bool was_contended = is_contended(write);
  if (!access.info.strong) {  // who races with what this one hides races with this one
    if (was_contended) hidden(access).erase(&write);
    write = mine;
    return;
  }
  const Cell now = mine | kStrong | (access.info.is_volatile ? kVolatileWrite : Cell{0});
  const bool hides = old != 0 && !is_under_way(old) && !order.is_forgotten(old, access.global) &&
                     !(rules.covers(now, old) &&
                       order.is_write_ordered(old, access.warp, access.lane, access.global));
  write = now;
  if (!hides && !was_contended) return;
  HiddenAccesses& all = hidden(access);
  std::vector<Cell>& list = all[&write];
  if (hides) list.push_back(old);
  rules.thin(access, list, now);
  if (list.empty()) {
    all.erase(&write);
  } else {
    write |= kAside;
  }
}

/// The word's bytes get cells of their own, which hide what its write cell did.
void BlockCheck::spread_hidden(const WordAccess& access, const Cell& write, Cell* bytes) {
  if (!is_contended(write)) return;
  HiddenAccesses& all = hidden(access);
  const auto found = all.find(&write);
  if (found == all.end()) return;
  const std::vector<Cell> list = std::move(found->second);
  all.erase(found);
  for (std::uint32_t b = 0; b < 4; ++b) {
    std::vector<Cell> own;
    for (const Cell cell : list) {
      if (const Cell byte = byte_of(cell, b); byte != 0) own.push_back(byte);
    }
    if (own.empty()) continue;
    all[bytes + b] = std::move(own);
    bytes[b] |= kAside;
  }
}

}  // namespace kernwright::sim
