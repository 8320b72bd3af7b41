// The race check of neighbouring bytes or halves of a warp's lanes; such lanes share the shadows of
// words.
#pragma once

#include "sim/check/handlers/checked_lanes.h"
#include "sim/check/handlers/checked_sites.h"

#include <bit>
#include <cstdint>
#include <cstdlib>

namespace kernwright::sim::KW_SIM_NS {

/// Lane i of `lanes`, thread `thread0` + i, touches `bytes` bytes, 1 or 2, at `at` + i * bytes: in
/// all more than one word.
struct Row {
  std::uint64_t at = 0;
  std::uint32_t bytes = 1, lanes = kLanes, thread0 = 0;
};

/// Whether the shadow is of the threads named by `mine`, byte by byte of the word.
template <bool kGlobal>
[[gnu::always_inline]] inline bool is_same_row(const ShadowView<kGlobal>& view, Shadow shadow,
                                               Shadow tag) {
  const std::uint32_t row = (kByteRow >> get_bytes(tag) & 1) != 0 ? kByteRow : kHalfRow;
  return (row >> get_bytes(shadow) & 1) != 0 && !is_by_many(shadow) &&
         view.is_harmless(shadow & ~kAllBytes, tag & ~kAllBytes);
}

/// The common value of a shadow at the edge of a row and of `mine`, with one part of the word's
/// bytes each. 0: one shadow cannot express it, or there may be a race.
template <bool kGlobal>
[[gnu::always_inline]] inline Shadow joined(const ShadowView<kGlobal>& view, Shadow old,
                                            Shadow tag) {
  if (view.is_past(old)) return tag;
  if (!is_same_row(view, old, tag)) return 0;
  const std::uint32_t now = kTouchedBytes[get_bytes(tag)];
  const std::uint32_t both = kTouchedBytes[get_bytes(old)] | now;
  if (both == now) return tag;
  const bool same_time = ((old ^ tag) & ~kAllBytes) == 0;
  const Shadow code = lanes_code((kByteRow >> get_bytes(tag) & 1) != 0 ? 1 : 2, both);
  return same_time && code != 0 ? (tag & ~kAllBytes) | code << kBytesShift : 0;
}

/// The word at an edge of a row: whether the quick test is enough. Then its shadows are up to date.
template <bool kWrites, bool kGlobal>
[[gnu::always_inline]] inline bool touch_edge(const ShadowView<kGlobal>& view, std::uint64_t word,
                                              Shadow tag) {
  Shadow& shadow = (kWrites ? view.write : view.read)[word];
  const Shadow other = (kWrites ? view.read : view.write)[word];
  if (!view.is_past(other) && !is_same_row(view, other, tag)) return false;
  const Shadow now = joined(view, shadow, tag);
  if (now != 0) shadow = now;
  return now != 0;
}

/// The lanes of the row, a bit each, that need a full check; shadows of the others are up to date.
/// Granules leave these words to word shadows.
template <bool kWrites, bool kGlobal>
[[gnu::noinline]] std::uint32_t touch_row(const ShadowView<kGlobal>& view, bool parts,
                                          const Row& row) {
  const std::uint32_t shift = row.bytes == 1 ? 2 : 1, per_word = 1u << shift;
  const auto skipped = static_cast<std::uint32_t>(row.at % 4) / row.bytes;
  const std::uint32_t head = (per_word - skipped) % per_word;
  const std::uint32_t tail = (row.lanes - head) % per_word, end = row.lanes - tail;
  const std::uint32_t count = (end - head) >> shift;
  const std::uint64_t word = (row.at + 3) / 4;
  const Shadow stamp = view.stamp & ~kAllBytes;
  const auto make_tag = [&](std::uint32_t thread, std::uint32_t bytes) {
    return stamp | Shadow{lanes_code(row.bytes, bytes)} << kBytesShift | (thread & kThreadMask);
  };
  const std::uint32_t front = 15u << row.at % 4 & 15;  // bytes of the first word
  std::uint32_t rest = 0;
  if (head != 0 && !touch_edge<kWrites>(view, word - 1, make_tag(row.thread0 - skipped, front)))
    rest |= (1u << head) - 1;
  if (tail != 0 &&
      !touch_edge<kWrites>(view, word + count, make_tag(row.thread0 + end, 15 & ~front)))
    rest |= ((1u << tail) - 1) << end;
  Shadow* const write = view.write + word;
  Shadow* const read = view.read + word;
  const Shadow tag0 = make_tag(row.thread0 + head, 15);
  std::uint64_t bad = 0;
  KW_LANES for (std::uint32_t i = 0; i < count; ++i) {
    const Shadow tag = tag0 + (i << shift), old = read[i];
    bool fine = view.is_harmless(write[i], tag);
    if constexpr (kWrites) {
      fine &= view.is_free(old, tag);
      write[i] = fine ? tag : write[i];
    } else {
      // By the same lanes of warps: then the result of reader() holds for each byte.
      const bool alike = ((old ^ tag) & (kAllBytes | (kLanes - 1))) == 0;
      fine &= view.is_past(old) | (parts ? view.is_harmless(old, tag) : alike);
      read[i] = fine ? reader(view, old, tag) : old;
    }
    bad |= fine ? std::uint64_t{0} : std::uint64_t{1} << i;
  }
  for (; bad != 0; bad &= bad - 1) {
    const auto i = static_cast<std::uint32_t>(std::countr_zero(bad));
    rest |= ((1u << per_word) - 1) << (head + (i << shift));
  }
  return rest;
}

/// The same, whatever the shadows of these words are.
template <bool kWrites, bool kGlobal>
[[gnu::always_inline]] inline std::uint32_t race_row(BlockCheck& check,
                                                     const ShadowView<kGlobal>& view, bool parts,
                                                     const Row& row) {
  const std::uint64_t first = row.at / 4;
  const std::uint64_t last = (row.at + row.bytes * row.lanes - 1) / 4;
  const auto count = static_cast<std::uint32_t>(last - first + 1);
  if constexpr (kGlobal) {
    const Granule& low = view.granules[first / kGranuleWords];
    const Granule& high = view.granules[last / kGranuleWords];
    if ((low.write != kByWord) | (low.read != kByWord) | (high.write != kByWord) |
        (high.read != kByWord))
      spread_words(view, first, count);
  }
  const std::uint32_t rest = touch_row<kWrites>(view, parts, row);
  if (rest == 0 || !check.races.forget_bytes(view.region, first, count)) return rest;
  return touch_row<kWrites>(view, parts, row);
}

/// A narrow access of a warp at `at`, its second half `half` bytes after the first: returns the
/// lanes that need a full check.
template <bool kGlobal>
[[gnu::always_inline]] inline std::uint32_t race_rows(BlockCheck& check,
                                                      const ShadowView<kGlobal>& view, bool parts,
                                                      Pattern pattern, std::uint64_t half,
                                                      const WarpTouch& touch, std::uint64_t at,
                                                      std::uint32_t thread0) {
  constexpr std::uint32_t kHalf = kLanes / 2;
  const bool writes = touch.mode == AccessKind::write;
  const auto look = [&](const Row& row) {
    return writes ? race_row<true>(check, view, parts, row)
                  : race_row<false>(check, view, parts, row);
  };
  if (touch.mask != kAllLanes) return touch.mask;
  if (pattern == Pattern::contiguous) return look({at, touch.bytes, kLanes, thread0});
  if (pattern != Pattern::half_contiguous) return touch.mask;
  const bool apart = std::abs(static_cast<std::int64_t>(half)) >= std::int64_t{touch.bytes} * kHalf;
  if (writes && !apart) return touch.mask;
  return look({at, touch.bytes, kHalf, thread0}) |
         look({at + half, touch.bytes, kHalf, thread0 + kHalf}) << kHalf;
}

}  // namespace kernwright::sim::KW_SIM_NS
