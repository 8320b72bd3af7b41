// Shadows of words, and of their bytes where those have some of their own.
#include "sim/check/block_check.h"
#include "sim/check/race/race_check.h"

#include <algorithm>

namespace kernwright::sim {

/// Gives the bytes their own shadows if one pair cannot tell the threads of the bytes.
void RaceCheck::examine_word(const WordAccess& access, Shadow& write, Shadow& read,
                             std::uint32_t bytes) {
  if (is_by_bytes(write)) return examine_bytes(access, write, read, bytes);
  const auto differs = [&](Shadow shadow) {
    if (bytes == 15 && get_bytes(shadow) == 15) return false;
    if (order_.is_forgotten(shadow, access.global)) return false;
    const bool same_time =
        get_thread(shadow) == get_thread(access.tag) && get_tick(shadow) == get_tick(access.tag);
    return get_bytes(shadow) != bytes || !same_time;
  };
  const bool aligned = (kOneThread >> bytes & 1) != 0;
  if (aligned && !differs(write) && !differs(read)) {
    return examine_shadows(access, write, read, access.tag | Shadow{bytes} << kBytesShift);
  }
  Shadow* const shadows = history(access.touch).find_bytes(access.word);
  for (std::uint32_t b = 0; b < 4; ++b) {
    shadows[b] = byte_shadow(write, b);
    shadows[4 + b] = byte_shadow(read, b);
    if (!check_.parts || !is_by_many(shadows[4 + b])) continue;
    ReaderLists& lists = history(access.touch).readers;
    if (const auto list = lists.find(&read); list != lists.end()) {
      std::vector<Shadow> same = list->second;
      lists[&shadows[4 + b]] = std::move(same);
    }
  }
  spread_hidden(access, write, shadows);
  write = kExactWord;
  read = 0;
  if (shared_.defers && !access.global) shared_.written.keep(access.begin);
  examine_bytes(access, write, read, bytes);
}

void RaceCheck::examine_bytes(const WordAccess& access, Shadow& write, Shadow& read,
                              std::uint32_t bytes) {
  Shadow* const shadows = history(access.touch).find_bytes(access.word);
  const std::size_t before = check_.findings.size();
  for (std::uint32_t b = 0; b < 4; ++b) {
    if ((bytes >> b & 1) == 0) continue;
    examine_shadows(access, shadows[b], shadows[4 + b],
                    access.tag | Shadow{1u << b} << kBytesShift);
    if (check_.findings.size() != before) break;
  }
  if (bytes != 15 || access.touch.mode == AccessKind::read) return;
  // One pair is enough again, except for bytes read by different threads: another thread's write
  // may race only with those, if it repeats this one or both are atomic.
  const auto same = [](const Shadow* four) {
    return std::all_of(four, four + 4,
                       [&](Shadow shadow) { return ((shadow ^ four[0]) & ~kAllBytes) == 0; });
  };
  const bool unread = std::all_of(shadows + 4, shadows + 8, [&](Shadow shadow) {
    return order_.is_forgotten(shadow, access.global);
  });
  const bool one_reader = same(shadows + 4) && (!check_.parts || !is_by_many(shadows[4]));
  if (is_contended(shadows[0]) || !same(shadows) || (!unread && !one_reader)) return;
  write = shadows[0] | kAllBytes;
  read = unread ? 0 : shadows[4] | kAllBytes;
}

bool RaceCheck::forget_bytes(GlobalRegion* region, std::uint64_t begin, std::uint64_t count) {
  AccessHistory& there = history({.region = region});
  bool changed = false;
  for (std::uint64_t word = begin; word < begin + count; ++word) {
    if (!is_by_bytes(there.write[word])) continue;
    const Shadow* const shadows = there.find_bytes(word);
    const auto past = [&](Shadow shadow) { return order_.is_forgotten(shadow, region != nullptr); };
    if (!std::all_of(shadows, shadows + 8, past)) continue;
    there.write[word] = there.read[word] = 0;
    changed = true;
  }
  return changed;
}

}  // namespace kernwright::sim
