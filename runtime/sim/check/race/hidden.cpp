// Accesses that the one in a word's write shadow hides: atomic operations on the same word do not
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
void BlockCheck::look_at_hidden(const WordAccess& access, Shadow& write) {
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
  Shadow farthest = 0;
  for (const Shadow shadow : found->second) {
    if (order.is_write_ordered(shadow, access.warp, access.lane, access.global) ||
        !rules.conflicts(shadow, access) ||
        (writes && !rules.is_load(shadow) && same_value(access, shadow)))
      continue;
    if (farthest == 0 || where.breadth_of(access, shadow) > where.breadth_of(access, farthest))
      farthest = shadow;
  }
  if (farthest != 0) report_race(access, farthest, true, Missing::order, Told::hidden);
}

/// The access becomes the word's last write, or an atomic read of it.
void BlockCheck::note_write(const WordAccess& access, Shadow& write, Shadow mine) {
  const Shadow old = is_contended(write) ? write & ~kAside : write;
  const bool was_contended = is_contended(write);
  if (!access.info.strong) {  // who races with what this one hides races with this one
    if (was_contended) hidden(access).erase(&write);
    write = mine;
    return;
  }
  const Shadow now = mine | kStrong | (access.info.is_volatile ? kVolatileWrite : Shadow{0});
  const bool hides = old != 0 && !is_under_way(old) && !order.is_forgotten(old, access.global) &&
                     !(rules.covers(now, old) &&
                       order.is_write_ordered(old, access.warp, access.lane, access.global));
  write = now;
  if (!hides && !was_contended) return;
  HiddenAccesses& all = hidden(access);
  std::vector<Shadow>& list = all[&write];
  if (hides) list.push_back(old);
  rules.thin(access, list, now);
  if (list.empty()) {
    all.erase(&write);
  } else {
    write |= kAside;
  }
}

/// The word's bytes get shadows of their own, which hide what its write shadow did.
void BlockCheck::spread_hidden(const WordAccess& access, const Shadow& write, Shadow* bytes) {
  if (!is_contended(write)) return;
  HiddenAccesses& all = hidden(access);
  const auto found = all.find(&write);
  if (found == all.end()) return;
  const std::vector<Shadow> list = std::move(found->second);
  all.erase(found);
  for (std::uint32_t b = 0; b < 4; ++b) {
    std::vector<Shadow> own;
    for (const Shadow shadow : list) {
      if (const Shadow byte = byte_of(shadow, b); byte != 0) own.push_back(byte);
    }
    if (own.empty()) continue;
    all[bytes + b] = std::move(own);
    bytes[b] |= kAside;
  }
}

}  // namespace kernwright::sim
