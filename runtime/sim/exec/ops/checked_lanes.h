// The race check of a whole warp's access at a glance: cells of neighbouring words side by side.
#pragma once

#include "sim/check/block_check.h"
#include "sim/exec/ops/lanes.h"

#include <cstdint>

namespace kernwright::sim::KW_SIM_NS {

/// Where the cells of an access lie and which of them happened before anything that the block does
/// now. Shared memory has cells of this runner's blocks only.
template <bool kGlobal>
struct CellView {
  Cell* write;
  Cell* read;
  Cell floor, first, launch;
  Cell stamp;  ///< of the access: tick, site, all bytes; the thread comes on top

  [[gnu::always_inline]] bool is_past(Cell cell) const {
    if constexpr (kGlobal) return (cell < launch) | (cell - first < floor - first);
    return cell < floor;
  }
  /// Of this very thread, or long ago. `mine` is the stamp with the thread.
  [[gnu::always_inline]] bool is_harmless(Cell cell, Cell mine) const {
    const bool same = ((cell ^ mine) & (kThreadMask | kExact)) == 0;
    if constexpr (kGlobal) return is_past(cell) | (same & (cell >= first));
    return is_past(cell) | same;
  }
};

/// The cell after a read. After an unordered read of another thread it says that there were
/// several; at one tick it names the first, who is less often the one that writes next.
template <bool kGlobal>
[[gnu::always_inline]] inline Cell reader(const CellView<kGlobal>& view, Cell old, Cell mine) {
  const Cell difference = (old ^ mine) & kThreadMask;
  Cell flags = difference == 0 ? 0 : (difference & kWarpMask) != 0 ? kManyWarps : kManyLanes;
  if constexpr (kGlobal) flags = old < view.first ? kManyBlocks : flags;
  const Cell named = (old ^ mine) >> kTickShift == 0 ? old : mine;
  return view.is_past(old) ? mine : named | flags | (old & kMany);
}

/// `kCount` words from `word` on, word i by thread0 + (i >> shift): whether a glance is enough.
/// Then the cells are up to date.
template <bool kGlobal>
[[gnu::always_inline]] inline bool read_run(const CellView<kGlobal>& view, bool parts,
                                            std::uint64_t word, std::uint32_t count,
                                            std::uint32_t thread0, std::uint32_t shift) {
  const Cell* const write = view.write + word;
  Cell* const read = view.read + word;
  const Cell mine0 = view.stamp | thread0;
  std::uint64_t bad = 0;
  KW_LANES for (std::uint32_t i = 0; i < count; ++i) {
    const Cell mine = mine0 + (i >> shift);
    bad |= view.is_harmless(write[i], mine) ? 0 : 1;
    bad |= parts && !view.is_harmless(read[i], mine) ? 1 : 0;
  }
  if (bad != 0) return false;
  KW_LANES for (std::uint32_t i = 0; i < count; ++i) {
    const Cell mine = mine0 + (i >> shift);
    read[i] = reader(view, read[i], mine);
  }
  return true;
}

template <bool kGlobal>
[[gnu::always_inline]] inline bool write_run(const CellView<kGlobal>& view, std::uint64_t word,
                                             std::uint32_t count, std::uint32_t thread0,
                                             std::uint32_t shift) {
  Cell* const write = view.write + word;
  const Cell* const read = view.read + word;
  const Cell mine0 = view.stamp | thread0;
  std::uint64_t bad = 0;
  KW_LANES for (std::uint32_t i = 0; i < count; ++i) {
    const Cell mine = mine0 + (i >> shift);
    bad |= view.is_harmless(write[i], mine) ? 0 : 1;
    const bool alone = (read[i] & kMany) == 0;
    bad |=
        view.is_past(read[i]) | (alone & view.is_harmless(read[i] & ~kVolatileRead, mine)) ? 0 : 1;
  }
  if (bad != 0) return false;
  KW_LANES for (std::uint32_t i = 0; i < count; ++i) write[i] = mine0 + (i >> shift);
  return true;
}

/// `count` words that all of `lanes` read, at least two.
template <bool kGlobal>
[[gnu::always_inline]] inline bool read_same(const CellView<kGlobal>& view, bool parts,
                                             std::uint64_t word, std::uint32_t count,
                                             std::uint32_t thread0) {
  if (parts) return false;
  const Cell mine = view.stamp | thread0;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (!view.is_past(view.write[word + i])) return false;
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    Cell& read = view.read[word + i];
    read = reader(view, read, mine) | kManyLanes;
  }
  return true;
}

}  // namespace kernwright::sim::KW_SIM_NS
