// The race check of a whole warp's access at once: shadows of neighbouring words side by side.
#pragma once

#include "sim/check/block_check.h"
#include "sim/ops/lanes.h"

#include <cstdint>

namespace kernwright::sim::KW_SIM_NS {

/// The shadows of an access, and a test for those that happened before the block's current work.
/// Shared memory has shadows of this runner's blocks only, and no granules.
template <bool kGlobal>
struct ShadowView {
  GlobalRegion* region;
  Granule* granules;
  Shadow* write;
  Shadow* read;
  Shadow floor, first, launch;
  Shadow stamp;  ///< of the access: tick, site, all bytes; the thread comes on top
  Shadow met;    ///< what the warp's lanes did below is ordered for all of them

  [[gnu::always_inline]] bool is_past(Shadow shadow) const {
    // No barrier of this block orders other blocks' reads.
    if constexpr (kGlobal)
      return (shadow < launch) | ((shadow - first < floor - first) & !is_by_many_blocks(shadow));
    return shadow < floor;
  }
  /// An access to the same bytes by the same thread, or long ago. `mine` is the stamp with the
  /// thread and its own value for `bytes`.
  [[gnu::always_inline]] bool is_harmless(Shadow shadow, Shadow tag) const {
    constexpr Shadow kOthers = kGlobal ? kExact | kLookCloser : kExact | kLookCloser | kAsync;
    const bool same = ((shadow ^ tag) & (kThreadMask | kOthers | kAllBytes)) == 0;
    if constexpr (kGlobal) return is_past(shadow) | (same & is_block_local(shadow));
    return is_past(shadow) | same;
  }
  /// Whether a write may follow this read.
  [[gnu::always_inline]] bool is_free(Shadow last, Shadow tag) const {
    return is_past(last) | (!is_by_many(last) & is_harmless(last, tag));
  }
  /// Whether reader() can tell of two reads at once: they are of the same bytes of the word.
  [[gnu::always_inline]] bool is_alike(Shadow old, Shadow tag) const {
    return is_past(old) | (((old ^ tag) & kAllBytes) == 0);
  }
  /// Whether the block made it, at `first` or later. Blocks beside it have later ticks too.
  [[gnu::always_inline]] bool is_block_local(Shadow shadow) const {
    constexpr Shadow kRest = (Shadow{1} << kTickShift) - 1;
    return shadow - first <= (stamp | kRest) - first;
  }
};

/// The shadow after a read. An unordered read of another thread marks several readers. At one tick
/// the shadow names the first reader, since it is rarely the next writer; with several blocks it
/// names another one. An earlier read of the same warp adds nothing to this one. Both reads have
/// the same kind.
template <bool kGlobal>
[[gnu::always_inline]] inline Shadow reader(const ShadowView<kGlobal>& view, Shadow old,
                                            Shadow tag) {
  const Shadow difference = (old ^ tag) & kThreadMask;
  Shadow flags = difference == 0 ? 0 : (difference & kWarpMask) != 0 ? kManyWarps : kManyLanes;
  if constexpr (kGlobal) flags = view.is_block_local(old) ? flags : kManyBlocks;
  bool keeps = (old ^ tag) >> kTickShift == 0;
  if constexpr (kGlobal) keeps |= !view.is_block_local(old);
  const Shadow named = keeps ? old : tag;
  bool before = ((difference & kWarpMask) == 0) & (old < view.met) &
                ((old & (kManyWarps | kManyBlocks)) == 0);
  if constexpr (kGlobal) before &= view.is_block_local(old);
  return (view.is_past(old) | before) ? tag : named | flags | (old & kMany);
}

/// Notes a read. False where the shadow would have to tell of different bytes.
template <bool kGlobal>
[[gnu::always_inline]] inline bool add_reader(const ShadowView<kGlobal>& view, Shadow& shadow,
                                              Shadow tag) {
  const Shadow old = shadow;
  const bool alike = view.is_alike(old, tag);
  shadow = alike ? reader(view, old, tag) : old;
  return alike;
}

/// Whole granules from `word` on, word i by thread0 + (i >> shift): whether their own shadows
/// settle the check. Then they are up to date. With shift kHalfWords (Granule) it is one granule.
template <bool kWrites>
[[gnu::always_inline]] inline bool touch_granules(const ShadowView<true>& view, bool parts,
                                                  std::uint64_t word, std::uint32_t count,
                                                  std::uint32_t thread0, std::uint32_t shift) {
  Granule* const granules = view.granules + word / kGranuleWords;
  const auto number = static_cast<std::uint32_t>(count / kGranuleWords);
  const std::uint32_t step = static_cast<std::uint32_t>(kGranuleWords) >> shift;
  const Shadow tag0 = (view.stamp & ~kAllBytes) | Shadow{shift} << kBytesShift | thread0;
  // Rows of a tile lie in pages of their own, where processors foresee nothing: the line behind.
  __builtin_prefetch(granules + number + 3, 1);
  bool fine = true;
  for (std::uint32_t g = 0; g < number; ++g) {
    const Shadow tag = tag0 + g * step, read = granules[g].read;
    fine &= view.is_harmless(granules[g].write, tag);
    if constexpr (kWrites) {
      fine &= view.is_free(read, tag);
    } else {
      const bool alike = ((read ^ tag) & (kExact | kAllBytes)) == 0;
      fine &= view.is_past(read) | (parts ? view.is_harmless(read, tag) : alike);
    }
  }
  if (!fine) return false;
  for (std::uint32_t g = 0; g < number; ++g) {
    const Shadow tag = tag0 + g * step;
    if constexpr (kWrites) {
      granules[g].write = tag;
    } else {
      Shadow now = tag;
      if (!view.is_past(granules[g].read)) [[unlikely]]
        now = reader(view, granules[g].read, tag);
      granules[g].read = now;
    }
  }
  return true;
}

/// Drops the word shadows of granules if all are from earlier launches.
[[gnu::noinline]] inline bool forget_old_words(const ShadowView<true>& view, std::uint64_t word,
                                               std::uint32_t count) {
  bool changed = false;
  const auto forget = [&](Shadow& summary, const Shadow* shadows) {
    if (summary != kByWord) return;
    std::uint64_t recent = 0;
    for (std::uint32_t i = 0; i < kGranuleWords; ++i) recent |= shadows[i] < view.launch ? 0 : 1;
    if (recent != 0) return;
    summary = 0;
    changed = true;
  };
  for (std::uint64_t at = word; at < word + count; at += kGranuleWords) {
    Granule& granule = view.granules[at / kGranuleWords];
    forget(granule.write, view.write + at);
    forget(granule.read, view.read + at);
  }
  return changed;
}

/// Gives all words of an access shadows of their own.
[[gnu::noinline]] inline void spread_words(const ShadowView<true>& view, std::uint64_t word,
                                           std::uint32_t count) {
  const std::uint64_t last = (word + count - 1) / kGranuleWords;
  for (std::uint64_t g = word / kGranuleWords; g <= last; ++g) {
    view.region->spread_at(g * kGranuleWords);
  }
}

/// `count` words from `word` on, word i by thread0 + (i >> shift): whether this quick test is
/// enough. Then the shadows are up to date.
template <bool kWrites, bool kGlobal>
[[gnu::always_inline]] inline bool touch_shadows(const ShadowView<kGlobal>& view, bool parts,
                                                 std::uint64_t word, std::uint32_t count,
                                                 std::uint32_t thread0, std::uint32_t shift) {
  Shadow* const write = view.write + word;
  Shadow* const read = view.read + word;
  const Shadow tag0 = view.stamp | thread0;
  std::uint64_t bad = 0;
  KW_LANES for (std::uint32_t i = 0; i < count; ++i) {
    const Shadow tag = tag0 + (i >> shift);
    bad |= view.is_harmless(write[i], tag) ? 0 : 1;
    if constexpr (kWrites) {
      bad |= view.is_free(read[i], tag) ? 0 : 1;
    } else {
      bad |= parts && !view.is_harmless(read[i], tag) ? 1 : 0;
    }
  }
  if (bad != 0) return false;
  KW_LANES for (std::uint32_t i = 0; i < count; ++i) {
    const Shadow tag = tag0 + (i >> shift);
    if constexpr (kWrites) {
      write[i] = tag;
    } else {
      bad |= add_reader(view, read[i], tag) ? 0 : 1;
    }
  }
  return bad == 0;
}

/// The same where granules do not say it all.
template <bool kWrites>
[[gnu::noinline]] bool touch_words(const ShadowView<true>& view, bool parts, std::uint64_t word,
                                   std::uint32_t count, std::uint32_t thread0,
                                   std::uint32_t shift) {
  const bool whole = ((word | count) % kGranuleWords) == 0;
  if (whole && forget_old_words(view, word, count) &&
      touch_granules<kWrites>(view, parts, word, count, thread0, shift))
    return true;
  spread_words(view, word, count);
  if (!touch_shadows<kWrites>(view, parts, word, count, thread0, shift)) return false;
  for (std::uint32_t at = 0; kWrites && whole && at < count; at += kGranuleWords) {
    const Shadow shape = Shadow{shift} << kBytesShift | (thread0 + (at >> shift));
    view.granules[(word + at) / kGranuleWords].write = (view.stamp & ~kAllBytes) | shape;
  }
  return true;
}

/// The same through the granules where there are any.
template <bool kWrites, bool kGlobal>
[[gnu::always_inline]] inline bool touch_run(const ShadowView<kGlobal>& view, bool parts,
                                             std::uint64_t word, std::uint32_t count,
                                             std::uint32_t thread0, std::uint32_t shift) {
  if constexpr (kGlobal) {
    const bool whole = ((word | count) % kGranuleWords) == 0;
    return (whole && touch_granules<kWrites>(view, parts, word, count, thread0, shift)) ||
           touch_words<kWrites>(view, parts, word, count, thread0, shift);
  }
  return touch_shadows<kWrites>(view, parts, word, count, thread0, shift);
}

/// The changes of touch_shadows() for a read, without its tests.
[[gnu::always_inline]] inline void note_run(const ShadowView<false>& view, std::uint64_t word,
                                            std::uint32_t count, std::uint32_t thread0,
                                            std::uint32_t shift) {
  Shadow* const read = view.read + word;
  const Shadow tag0 = view.stamp | thread0;
  KW_LANES for (std::uint32_t i = 0; i < count; ++i) {
    read[i] = reader(view, read[i], tag0 + (i >> shift));
  }
}

template <bool kGlobal>
[[gnu::always_inline]] inline void note_same(const ShadowView<kGlobal>& view, std::uint64_t word,
                                             std::uint32_t count, std::uint32_t thread) {
  for (std::uint32_t i = 0; i < count; ++i) {
    Shadow& read = view.read[word + i];
    read = reader(view, read, view.stamp | thread) | kManyLanes;
  }
}

/// `count` words read by all of `lanes`, at least two.
template <bool kGlobal>
[[gnu::always_inline]] inline bool read_same(const ShadowView<kGlobal>& view, bool parts,
                                             std::uint64_t word, std::uint32_t count,
                                             std::uint32_t thread0) {
  if (parts) return false;
  if constexpr (kGlobal) spread_words(view, word, count);
  const Shadow tag = view.stamp | thread0;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (!view.is_past(view.write[word + i]) || !view.is_alike(view.read[word + i], tag))
      return false;
  }
  note_same(view, word, count, thread0);
  return true;
}

}  // namespace kernwright::sim::KW_SIM_NS
