// What the race check remembers about memory: who wrote last, who read last, when.
#pragma once

#include <cstdint>

namespace kernwright::sim {

/// Two cells stand for each aligned word of four bytes, one for its last write and one for its
/// last read. A cell packs
///   tick:32  site:14  bytes:4  flags:4  thread:10
/// The tick is the block's time (BlockCheck::tick): every event that may order accesses starts a
/// new one, and no two blocks share ticks, so a tick names its block too. A cell below a block's
/// floor happened before everything that the block does now; comparing whole cells compares ticks.
using Cell = std::uint64_t;

inline constexpr int kTickShift = 32;
inline constexpr Cell kThreadMask = 0x3ff;
inline constexpr Cell kWarpMask = 0x3e0;
inline constexpr int kBytesShift = 14;
inline constexpr Cell kAllBytes = Cell{15} << kBytesShift;
inline constexpr int kSiteShift = 18;
inline constexpr std::uint32_t kMostSites = (1u << 14) - 1;  ///< this site: the place is not known

// Flags of a write.
inline constexpr Cell kStrong = 1 << 10;         ///< an atomic operation or a relaxed store
inline constexpr Cell kVolatileWrite = 1 << 11;  ///< strong between warps only
inline constexpr Cell kAsync = 1 << 12;          ///< by a copy, not by the thread that issued it
// Flags of a read. The cell names the last reader; these say that it was not the only one.
inline constexpr Cell kManyLanes = 1 << 10;   ///< lanes of one warp
inline constexpr Cell kManyWarps = 1 << 11;   ///< warps of one block
inline constexpr Cell kManyBlocks = 1 << 12;  ///< blocks
inline constexpr Cell kMany = kManyLanes | kManyWarps | kManyBlocks;
inline constexpr Cell kStrongRead = 1 << 13;
/// In a write's cell: single bytes have cells of their own, this one and its read cell mean
/// nothing.
inline constexpr Cell kExact = 1 << 13;
/// In front of a tick: the floor says nothing of this cell, look closer. Ticks have 31 bits.
inline constexpr Cell kAside = Cell{1} << 63;
/// In a write's cell: a copy that nobody waited for yet, issued by the thread at the tick.
inline constexpr Cell kUnderWay = kAside | kAsync;
inline constexpr Cell kExactWord = Cell{0xffffffff} << kTickShift | kExact | kThreadMask;

/// What every cell of sixteen neighbouring words says, where warps touch them as one: word i by
/// thread `thread + (i >> shape)`, which is how 4, 8 and 16 bytes of each lane lie side by side.
/// Otherwise the same as a cell of its own; the shape takes the place of `bytes`. Of shape
/// kHalfWords it says so of halves of words, half h by thread `thread + h`.
struct Granule {
  Cell write, read;
};
inline constexpr std::uint32_t kHalfWords = 8;
inline constexpr std::uint64_t kGranuleWords = 16;
inline constexpr std::uint64_t kGranuleBytes = 4 * kGranuleWords;
/// In a granule: its words have cells of their own.
inline constexpr Cell kByWord = kExactWord;

inline std::uint32_t tick_of(Cell cell) {
  return static_cast<std::uint32_t>((cell & ~kAside) >> kTickShift);
}
inline bool is_under_way(Cell write) { return (write & kUnderWay) == kUnderWay; }
/// A write from elsewhere in the cluster, or an atomic operation after others that nothing orders.
inline bool is_contended(Cell write) { return (write & kUnderWay) == kAside; }
inline std::uint32_t thread_of(Cell cell) { return static_cast<std::uint32_t>(cell & kThreadMask); }
inline std::uint32_t site_of(Cell cell) {
  return static_cast<std::uint32_t>(cell >> kSiteShift) & kMostSites;
}
inline std::uint32_t bytes_of(Cell cell) {
  return static_cast<std::uint32_t>(cell >> kBytesShift) & 15;
}

inline bool has_halves(const Granule& granule) {
  return (bytes_of(granule.write | granule.read) & kHalfWords) != 0;
}

/// The cell of word `i` of a granule that says `summary`, of whole words.
inline Cell cell_of(Cell summary, std::uint32_t i) {
  const auto shape = bytes_of(summary);
  return summary == 0 ? 0 : (summary | kAllBytes) + (i >> shape);
}

/// Gives the words of a granule cells of their own.
inline void spread(Cell& summary, Cell* cells) {
  if (summary == kByWord) return;
  for (std::uint32_t i = 0; i < kGranuleWords; ++i) cells[i] = cell_of(summary, i);
  summary = kByWord;
}

}  // namespace kernwright::sim
