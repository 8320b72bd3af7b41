// What the race check remembers about memory: who wrote last, who read last, when.
#pragma once

#include <array>
#include <cstdint>

namespace kernwright::sim {

/// Two cells stand for each aligned word of four bytes, one for its last write or atomic read and
/// one for its last other read. A cell packs
///   tick:32  site:14  bytes:4  flags:4  thread:10
/// The tick is the block's time (BlockCheck::tick): every event that may order accesses starts a
/// new one, and no two blocks share ticks, so a tick names its block too. A cell below a block's
/// floor happened before everything that the block does now; comparing whole cells compares ticks.
/// `bytes` is a mask, or stands for neighbouring bytes or halves of neighbouring threads (below).
using Cell = std::uint64_t;

inline constexpr int kTickShift = 32;
inline constexpr Cell kThreadMask = 0x3ff;
inline constexpr Cell kWarpMask = 0x3e0;
inline constexpr int kBytesShift = 14;
inline constexpr Cell kAllBytes = Cell{15} << kBytesShift;
inline constexpr int kSiteShift = 18;
inline constexpr std::uint32_t kMostSites = (1u << 14) - 1;  ///< this site: the place is not known

// Flags of a write.
inline constexpr Cell kStrong = 1 << 10;  ///< an atomic operation, relaxed or volatile access
inline constexpr Cell kVolatileWrite = 1 << 11;  ///< strong between warps only
inline constexpr Cell kAsync = 1 << 12;          ///< by a copy, not by the thread that issued it
// Flags of a read. The cell names the last reader; these say that it was not the only one.
inline constexpr Cell kManyLanes = 1 << 10;   ///< lanes of one warp
inline constexpr Cell kManyWarps = 1 << 11;   ///< warps of one block
inline constexpr Cell kManyBlocks = 1 << 12;  ///< blocks
inline constexpr Cell kMany = kManyLanes | kManyWarps | kManyBlocks;
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
/// A write from elsewhere in the cluster, or an atomic operation that hides others
/// (HiddenAccesses).
inline bool is_contended(Cell write) { return (write & kUnderWay) == kAside; }
inline std::uint32_t thread_of(Cell cell) { return static_cast<std::uint32_t>(cell & kThreadMask); }
inline std::uint32_t site_of(Cell cell) {
  return static_cast<std::uint32_t>(cell >> kSiteShift) & kMostSites;
}
inline std::uint32_t bytes_of(Cell cell) {
  return static_cast<std::uint32_t>(cell >> kBytesShift) & 15;
}

// `bytes` of a cell that tells of several threads: those masks that no aligned access has. Byte b
// is by thread `thread + b`, or half h by thread `thread + h`, modulo 1024.
inline constexpr std::uint32_t kLaneBytes = 5, kLaneHalves = 10;

/// By what `bytes` says: the bytes that it means.
inline constexpr std::array<std::uint8_t, 16> kTouchedBytes = {0, 1,  2,  3, 4,  15, 3,  7,
                                                               8, 12, 15, 8, 12, 12, 14, 15};
/// Sets of what `bytes` may say, a bit each: accesses of one thread; bytes of neighbours; halves of
/// neighbours. The first byte and the first half are both, with the same thread.
inline constexpr std::uint32_t kOneThread = 0b1001'0001'0001'1110;
inline constexpr std::uint32_t kRowOfBytes = 0b0100'1010'1110'0010;
inline constexpr std::uint32_t kRowOfHalves = 0b0010'0100'0000'1000;
static_assert((kOneThread | kRowOfBytes | kRowOfHalves) == 0xfffe);

/// What `bytes` says where neighbours touch these bytes of a word with `width` (1 or 2) each: the
/// word's last ones, its first ones, or all.
inline std::uint32_t lanes_code(std::uint32_t width, std::uint32_t bytes) {
  constexpr std::array<std::uint8_t, 16> kOfBytes = {0,  1, 0, 6, 0, 0, 0,  7,
                                                     11, 0, 0, 0, 9, 0, 14, kLaneBytes};
  constexpr std::array<std::uint8_t, 16> kOfHalves = {0, 0, 0, 3, 0,  0, 0, 0,
                                                      0, 0, 0, 0, 13, 0, 0, kLaneHalves};
  return width == 1 ? kOfBytes[bytes] : kOfHalves[bytes];
}
/// Whether the cell tells of one thread.
inline bool is_of_one_thread(Cell cell) { return (kOneThread >> bytes_of(cell) & 1) != 0; }

/// What the cell says of byte `b` of its word; 0: nothing.
inline Cell byte_of(Cell cell, std::uint32_t b) {
  const std::uint32_t code = bytes_of(cell);
  if ((kTouchedBytes[code] >> b & 1) == 0) return 0;
  if (is_of_one_thread(cell)) return cell;
  const std::uint32_t lane = (kRowOfBytes >> code & 1) != 0 ? b : b / 2;
  return (cell & ~(kAllBytes | kThreadMask)) | Cell{1u << b} << kBytesShift |
         ((cell + lane) & kThreadMask);
}

/// The cell of word `i` of a granule that says `summary`.
inline Cell cell_of(Cell summary, std::uint32_t i) {
  if (summary == 0) return 0;
  const auto shape = bytes_of(summary);
  if (shape == kHalfWords)
    return ((summary & ~kAllBytes) | Cell{kLaneHalves} << kBytesShift) + 2 * Cell{i};
  return (summary | kAllBytes) + (i >> shape);
}

/// Gives the words of a granule cells of their own.
inline void spread(Cell& summary, Cell* cells) {
  if (summary == kByWord) return;
  for (std::uint32_t i = 0; i < kGranuleWords; ++i) cells[i] = cell_of(summary, i);
  summary = kByWord;
}

}  // namespace kernwright::sim
