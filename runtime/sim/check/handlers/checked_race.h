// The race check of one access of a warp: by its pattern, or else by lanes. Reads of shared memory
// may be postponed.
#pragma once

#include "sim/check/handlers/checked_lanes.h"
#include "sim/check/handlers/checked_rows.h"
#include "sim/check/handlers/checked_sites.h"

#include <cstdlib>

namespace kernwright::sim::KW_SIM_NS {

template <bool kGlobal>
[[gnu::always_inline]] inline ShadowView<kGlobal> prepare(const BlockCheck& check,
                                                          const CheckedOp& info, std::uint32_t warp,
                                                          GlobalRegion* region) {
  const Shadow floor =
      kGlobal && check.order.floor < check.order.first ? check.order.first : check.order.floor;
  return {region,
          kGlobal ? region->granules : nullptr,
          kGlobal ? region->write : check.shared.write,
          kGlobal ? region->read : check.shared.read,
          floor,
          check.order.first,
          check.order.launch_floor,
          check.order.stamp | Shadow{info.site} << kSiteShift | kAllBytes,
          check.order.met(warp)};
}

/// Distance to the second half, possibly below the first.
[[gnu::always_inline]] inline std::uint64_t half_words(std::uint64_t bytes) {
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(bytes) / 4);
}

/// Whole patterns; false where lanes must be looked at one by one.
template <bool kGlobal>
[[gnu::always_inline]] inline bool race_by_pattern(const ShadowView<kGlobal>& view, bool parts,
                                                   Pattern pattern, std::uint64_t half,
                                                   const WarpTouch& touch, std::uint64_t word,
                                                   std::uint32_t thread0) {
  const std::uint32_t words = touch.bytes / 4;
  const auto shift = static_cast<std::uint32_t>(std::countr_zero(words));
  const bool writes = touch.mode == AccessKind::write;
  const auto run = [&](std::uint64_t first, std::uint32_t count, std::uint32_t thread,
                       std::uint32_t by) __attribute__((always_inline)) {
    return writes ? touch_run<true>(view, parts, first, count, thread, by)
                  : touch_run<false>(view, parts, first, count, thread, by);
  };
  if (pattern == Pattern::contiguous && touch.mask == kAllLanes) {
    // For global memory check_run() mostly ran before: one copy for all widths.
    if (!kGlobal && words == 1) return run(word, kLanes, thread0, 0);
    return run(word, words * kLanes, thread0, shift);
  }
  if (pattern == Pattern::half_contiguous) {
    if (writes && std::abs(static_cast<std::int64_t>(half)) < words * 16) return false;
    return run(word, words * 16, thread0, shift) &&
           run(word + half, words * 16, thread0 + 16, shift);
  }
  if (writes) return false;
  if (pattern == Pattern::uniform) {
    if ((touch.mask & (touch.mask - 1)) == 0) return false;
    return read_same(view, parts, word, words, thread0 + static_cast<std::uint32_t>(touch.first));
  }
  if (pattern == Pattern::half_uniform) {
    return read_same(view, parts, word, words, thread0) &&
           read_same(view, parts, word + half, words, thread0 + 16);
  }
  return false;
}

/// One lane's words; false when it takes a closer look.
template <bool kGlobal, bool kReads>
[[gnu::always_inline]] inline bool race_lane(const ShadowView<kGlobal>& view, bool parts,
                                             std::uint32_t words, std::uint64_t word,
                                             std::uint32_t thread) {
  const Shadow tag = view.stamp | thread;
  Shadow* const write = view.write + word;
  Shadow* const read = view.read + word;
  bool look_at_writes = true, look_at_reads = !kReads || parts;
  if constexpr (kGlobal) {  // an access never lies in two granules
    Granule& granule = view.granules[word / kGranuleWords];
    const std::uint64_t first = word & ~(kGranuleWords - 1);
    look_at_writes = !view.is_past(granule.write);
    look_at_reads &= !view.is_past(granule.read);
    if (!kReads || look_at_writes) spread(granule.write, view.write + first);
    if (kReads || look_at_reads) spread(granule.read, view.read + first);
  }
  bool fine = true;
  for (std::uint32_t i = 0; i < words && look_at_writes; ++i) {
    fine &= view.is_harmless(write[i], tag);
  }
  for (std::uint32_t i = 0; i < words && look_at_reads; ++i) {
    fine &= kReads ? view.is_harmless(read[i], tag) : view.is_free(read[i], tag);
  }
  if (!fine) return false;
  for (std::uint32_t i = 0; i < words; ++i) {
    if constexpr (kReads) {
      if (!add_reader(view, read[i], tag)) return false;
    } else {
      write[i] = tag;
    }
  }
  return true;
}

/// Separate words of lanes, one for each of `touch.mask`: whether the shadows alone settle the
/// check. Then they are up to date. Lanes are processed by eights, without those outside the mask.
template <bool kGlobal, bool kReads>
[[gnu::always_inline]] inline bool race_apart(const ShadowView<kGlobal>& view,
                                              const CheckSite& site, const WarpTouch& touch,
                                              std::uint64_t at, std::uint32_t thread0) {
  constexpr std::uint32_t kGroup = 8;
  alignas(64) std::uint64_t word[kLanes], tag[kLanes];
  const auto first = static_cast<std::uint64_t>(touch.first);
  const std::uint64_t home = site.offsets[first];
  std::uint64_t bad = 0;
  for (std::uint32_t g = 0; g < kLanes; g += kGroup) {
    const std::uint32_t here = touch.mask >> g & 0xff;
    if (here == 0) continue;
    if (here == 0xff) {
      KW_LANES for (std::uint32_t i = g; i < g + kGroup; ++i) {
        word[i] = (at + site.offsets[i]) / 4;
        tag[i] = (view.stamp | thread0) + std::uint64_t{i};
      }
    } else {
      KW_LANES for (std::uint32_t i = g; i < g + kGroup; ++i) {
        const bool on = (touch.mask >> i & 1) != 0;  // the others do what the first one does
        word[i] = (at + (on ? site.offsets[i] : home)) / 4;
        tag[i] = (view.stamp | thread0) + (on ? std::uint64_t{i} : first);
      }
    }
    if constexpr (kGlobal && !kReads) {
      // Mostly these words are untouched in this launch: a difference's top bit tells.
      std::uint64_t old = ~std::uint64_t{0};
      KW_LANES for (std::uint32_t i = g; i < g + kGroup; ++i) {
        const Granule& granule = view.granules[word[i] / kGranuleWords];
        const Shadow write = view.write[word[i]], read = granule.read;
        old &= ~write & (write - view.launch) & ~read & (read - view.launch);
        old &= granule.write == kByWord ? ~std::uint64_t{0} : 0;
      }
      if (old >> 63 != 0) continue;
    }
    KW_LANES for (std::uint32_t i = g; i < g + kGroup; ++i) {
      if constexpr (kGlobal) {
        const Granule& granule = view.granules[word[i] / kGranuleWords];
        bad |= (kReads ? granule.read : granule.write) == kByWord ? 0 : 1;
        bad |= view.is_past(kReads ? granule.write : granule.read) ? 0 : 1;
      }
      if (!kReads || !kGlobal) bad |= view.is_harmless(view.write[word[i]], tag[i]) ? 0 : 1;
      if (!kReads && !kGlobal) bad |= view.is_past(view.read[word[i]]) ? 0 : 1;
    }
    if (bad != 0) return false;
  }
  for (std::uint32_t g = 0; g < kLanes; g += kGroup) {
    if ((touch.mask >> g & 0xff) == 0) continue;
    KW_LANES for (std::uint32_t i = g; i < g + kGroup; ++i) {
      if constexpr (kReads) {
        bad |= add_reader(view, view.read[word[i]], tag[i]) ? 0 : 1;
      } else {
        view.write[word[i]] = tag[i];
      }
    }
  }
  return bad == 0;
}

/// Whether a lane's read of a part of a word adds nothing: the shadow already has several reading
/// blocks of the launch, or several warps of this block at this time, and no write of the bytes
/// matters. For a matrix of halves this is nearly every read.
[[gnu::always_inline]] inline bool is_known_read(const ShadowView<true>& view,
                                                 const GlobalRegion& region, std::uint64_t at,
                                                 std::uint32_t bytes) {
  const std::uint64_t word = at / 4;
  const Granule& granule = region.granules[word / kGranuleWords];
  if ((granule.write != kByWord) | (granule.read != kByWord)) return false;
  if (!is_by_bytes(region.write[word])) return false;
  const Shadow* const shadows = region.exact + 8 * word + at % 4;
  bool known = true;
  for (std::uint32_t i = 0; i < bytes; ++i) {
    const Shadow read = shadows[4 + i];
    const bool now = (read ^ view.stamp) >> kTickShift == 0;
    const bool by_many = is_by_many_blocks(read) | (now & is_by_many_warps(read));
    known &= view.is_past(shadows[i]) & (read >= view.launch) & by_many;
  }
  return known;
}

/// The lanes' words one by one.
template <bool kGlobal, bool kReads>
[[gnu::always_inline]] inline void race_lanes(BlockCheck& check, Warp& warp, const CheckSite& site,
                                              const WarpTouch& touch,
                                              const ShadowView<kGlobal>& view, bool plain,
                                              bool parts, GlobalRegion* region, std::uint64_t at,
                                              std::uint64_t base) {
  const std::uint32_t thread0 = warp.index * std::uint32_t{kLanes}, words = touch.bytes / 4;
  if (plain && words == 1 && !(kReads && parts) && site.apart == Apart::yes &&
      race_apart<kGlobal, kReads>(view, site, touch, at, thread0))
    return;
  const bool narrow = touch.bytes < 4 && !touch.info->strong && !parts;
  if constexpr (kGlobal && kReads) {
    if (narrow && touch.pattern == Pattern::uniform &&
        is_known_read(view, *region, at, touch.bytes))
      return;
  }
  each_lane(site, touch, [&](int lane, std::uint64_t offset) {
    const std::uint32_t thread = thread0 + static_cast<std::uint32_t>(lane);
    if (plain && race_lane<kGlobal, kReads>(view, parts, words, (at + offset) / 4, thread)) return;
    if constexpr (kGlobal && kReads) {
      if (narrow && is_known_read(view, *region, at + offset, touch.bytes)) return;
    }
    const LaneTouch one{touch.mode,    kGlobal ? ptx::Space::global : ptx::Space::shared,
                        base + offset, touch.bytes,
                        region,        touch.address};
    check.races.examine(touch.op, warp, lane, one);
  });
}

/// Applies the listed reads to the shadows, in order.
[[gnu::noinline]] inline void replay(BlockCheck& check) {
  ShadowView<false> view = prepare<false>(check, CheckedOp{}, 0, nullptr);
  std::size_t scattered = 0;
  auto moment = check.shared.late.moments.cbegin();
  for (std::size_t i = 0; i < check.shared.late.count; ++i) {
    const LateRead& late = check.shared.late.list[i];
    while (moment + 1 != check.shared.late.moments.cend() && moment[1].from <= i) ++moment;
    view.stamp = moment->stamp | Shadow{late.site} << kSiteShift | kAllBytes;
    view.met = moment->met;
    const std::uint32_t words = late.shape & ((1u << LateRead::kPatternShift) - 1);
    const auto half = static_cast<std::uint64_t>(std::int64_t{late.half});
    const std::uint32_t thread0 = late.warp * std::uint32_t{kLanes};
    const auto shift = static_cast<std::uint32_t>(std::countr_zero(words));
    const std::uint32_t first = thread0 + static_cast<std::uint32_t>(std::countr_zero(late.mask));
    switch (static_cast<Pattern>(late.shape >> LateRead::kPatternShift)) {
      case Pattern::contiguous: note_run(view, late.word, words * kLanes, thread0, shift); break;
      case Pattern::half_contiguous:
        note_run(view, late.word, words * 16, thread0, shift);
        note_run(view, late.word + half, words * 16, thread0 + 16, shift);
        break;
      case Pattern::uniform: note_same(view, late.word, words, first); break;
      case Pattern::half_uniform:
        note_same(view, late.word, words, thread0);
        note_same(view, late.word + half, words, thread0 + 16);
        break;
      default: {
        const auto& offsets = check.shared.late.offsets[scattered++];
        for (std::uint32_t m = late.mask; m != 0; m &= m - 1) {
          const auto lane = static_cast<std::uint32_t>(std::countr_zero(m));
          const auto offset = static_cast<std::uint64_t>(static_cast<std::int32_t>(offsets[lane]));
          note_run(view, late.word + offset, words, thread0 + lane, 31);
        }
      }
    }
  }
  check.shared.late.clear();
}

/// Ready for the next entry of the list.
[[gnu::noinline]] inline void make_room(BlockCheck& check, Shadow met) {
  if (check.shared.late.count == LateReads::kMost) check.settle_reads();
  check.replay = replay;
  check.shared.late.begin_moment(check.order.stamp, met);
}

/// Lists a read at a moment that the list is ready for.
[[gnu::always_inline]] inline void list_read(LateReads& late, std::uint32_t warp,
                                             const CheckedOp& info, std::uint32_t mask,
                                             Pattern pattern, std::uint64_t at, std::int64_t half) {
  late.list.data()[late.count++] = {
      static_cast<std::uint32_t>(at / 4),
      static_cast<std::int32_t>(half >> 2),
      mask,
      info.site,
      static_cast<std::uint8_t>(warp),
      static_cast<std::uint8_t>(static_cast<unsigned>(pattern) << LateRead::kPatternShift |
                                info.bytes / 4u)};
}

/// Postpones the read of words unwritten since the block's last barrier. The pattern is that of the
/// lanes in `mask`; `offsets` may be null if it has a shape.
[[gnu::always_inline]] inline void put_off(BlockCheck& check, const Warp& warp,
                                           const CheckedOp& info, std::uint32_t mask,
                                           Pattern pattern, std::uint64_t at, std::uint64_t half,
                                           const std::uint64_t* offsets) {
  LateReads& late = check.shared.late;
  const Shadow met = check.order.met(warp.index);
  if (!late.goes_on(check.order.stamp, met)) make_room(check, met);
  const bool one = (mask & (mask - 1)) == 0;
  const bool shaped = pattern == Pattern::uniform ? !one : mask == kAllLanes;
  if (!shaped) pattern = Pattern::gather;
  if (pattern == Pattern::gather) {
    auto& to = late.offsets.emplace_back();
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = static_cast<std::uint32_t>(offsets[i] >> 2);
  }
  list_read(late, warp.index, info, mask, pattern, at, static_cast<std::int64_t>(half));
}

/// Whether the check of a shared-memory read can be postponed. After any other access, and after a
/// read that cannot, the shadows are ready.
[[gnu::always_inline]] inline bool is_put_off(BlockCheck& check, const Warp& warp,
                                              const CheckSite& site, const WarpTouch& touch,
                                              bool plain, std::uint64_t base) {
  if (!check.shared.defers) return false;
  if (touch.mode == AccessKind::read) {
    if (plain && !check.shared.written.any(base - site.low, base + site.high)) {
      put_off(check, warp, *touch.info, touch.mask, touch.pattern, base, site.offsets[16],
              site.offsets.data());
      return true;
    }
    check.settle_reads();
    if (touch.bytes < 4) check.shared.note_narrow_read(base - site.low, base + site.high);
    return false;
  }
  check.settle_reads();
  check.shared.new_epoch();
  if (site.low + site.high <= std::uint64_t{touch.bytes} * kLanes) {
    check.shared.written.mark(base - site.low, base + site.high);
  } else {
    each_lane(site, touch, [&](int, std::uint64_t offset) {
      check.shared.written.mark(base + offset, base + offset + touch.bytes);
    });
  }
  return false;
}

/// The race check of an access within one stretch of shadows. `at` is the first active lane's byte
/// within them, `base` its address in the space.
template <bool kGlobal>
void race(BlockCheck& check, Warp& warp, const CheckSite& site, const WarpTouch& touch,
          GlobalRegion* region, std::uint64_t at, std::uint64_t base) {
  const ShadowView<kGlobal> view = prepare<kGlobal>(check, *touch.info, warp.index, region);
  const bool narrow = touch.bytes < 4;
  bool plain = !touch.info->strong && touch.info->site < kMostSites;
  if constexpr (kGlobal) {  // does it write what a copy under way reads?
    plain &= touch.mode == AccessKind::read ||
             !check.copies.sources.meets(base - site.low, base + site.high);
  } else {
    plain &= touch.mode == AccessKind::read ||
             !check.proxy.reads.span.meets(base - site.low, base + site.high);
  }
  const bool parts = check.parts || (kGlobal && check.order.scattered);
  const bool words = plain && !narrow;
  if (!kGlobal && is_put_off(check, warp, site, touch, words, base)) return;
  const std::uint32_t thread0 = warp.index * std::uint32_t{kLanes};
  if (words && race_by_pattern(view, parts, touch.pattern, half_words(site.offsets[16]), touch,
                               at / 4, thread0))
    return;
  WarpTouch rest = touch;
  if (plain && narrow) {
    rest.mask = race_rows(check, view, parts, touch.pattern, site.offsets[16], touch, at, thread0);
    if (rest.mask == 0) return;
  }
  if (touch.mode == AccessKind::read) {
    race_lanes<kGlobal, true>(check, warp, site, rest, view, words, parts, region, at, base);
  } else {
    race_lanes<kGlobal, false>(check, warp, site, rest, view, words, parts, region, at, base);
  }
}

}  // namespace kernwright::sim::KW_SIM_NS
