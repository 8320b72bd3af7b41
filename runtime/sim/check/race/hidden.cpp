// Accesses hidden by the one in a word's write shadow. Atomic operations on the same word do not
// race with each other. So several of them, and a plain write before them, may still race with the
// next access.
#include "sim/check/block_check.h"
#include "sim/check/race/race_check.h"

namespace kernwright::sim {

/// Races of the access with those.
void RaceCheck::look_at_hidden(const WordAccess& access, Shadow& write) {
  if (!is_contended(write)) return;
  HiddenAccesses& all = history(access.touch).hidden;
  if (order_.is_forgotten(write, access.global)) {
    all.erase(&write);
    write = 0;
    return;
  }
  const auto found = all.find(&write);
  if (found == all.end()) return;
  const bool writes = access.touch.mode != AccessKind::read;
  const bool follows = order_.is_write_ordered(write, access.warp, access.lane, access.global);
  Shadow farthest = 0;
  for (const Shadow shadow : found->second) {
    if (follows && rules_.observes(write, shadow)) continue;
    if (order_.is_write_ordered(shadow, access.warp, access.lane, access.global) ||
        !rules_.conflicts(shadow, access) ||
        (writes && !rules_.is_load(shadow) && same_value(access, shadow)))
      continue;
    if (farthest == 0 || where_.get_breadth(access, shadow) > where_.get_breadth(access, farthest))
      farthest = shadow;
  }
  if (farthest != 0) report(access, farthest, true, Missing::order, Told::hidden);
}

/// The access becomes the word's last write, or an atomic read of it.
void RaceCheck::note_write(const WordAccess& access, Shadow& write, Shadow tag) {
  const Shadow old = uncontended(write);
  const bool was_contended = is_contended(write);
  if (!access.info.strong) {  // who races with what this one hides races with this one
    if (was_contended) history(access.touch).hidden.erase(&write);
    write = tag;
    return;
  }
  const Shadow now = tag | kStrong | (access.info.is_volatile ? kVolatileWrite : Shadow{0});
  const bool hides = old != 0 && !is_under_way(old) && !order_.is_forgotten(old, access.global) &&
                     !(rules_.covers(now, old) &&
                       order_.is_write_ordered(old, access.warp, access.lane, access.global));
  write = now;
  if (!hides && !was_contended) return;
  HiddenAccesses& all = history(access.touch).hidden;
  std::vector<Shadow>& list = all[&write];
  if (hides) list.push_back(old);
  rules_.thin(access, list, now);
  if (list.empty()) {
    all.erase(&write);
  } else {
    write |= kContended;
  }
}

/// Gives the word's bytes their own shadows, with the same hidden accesses as the word's.
void RaceCheck::spread_hidden(const WordAccess& access, const Shadow& write, Shadow* bytes) {
  if (!is_contended(write)) return;
  HiddenAccesses& all = history(access.touch).hidden;
  const auto found = all.find(&write);
  if (found == all.end()) return;
  const std::vector<Shadow> list = std::move(found->second);
  all.erase(found);
  for (std::uint32_t b = 0; b < 4; ++b) {
    std::vector<Shadow> byte_shadows;
    for (const Shadow shadow : list) {
      if (const Shadow byte = byte_shadow(shadow, b); byte != 0) byte_shadows.push_back(byte);
    }
    if (byte_shadows.empty()) continue;
    all[bytes + b] = std::move(byte_shadows);
    bytes[b] |= kContended;
  }
}

}  // namespace kernwright::sim
