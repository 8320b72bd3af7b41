// The race check's memory: the last writer, the last reader, and when.
#pragma once

#include <array>
#include <cstdint>

namespace kernwright::sim {

/// Each aligned word of four bytes has two shadows: one for its last write or atomic read, and one
/// for its last other read. A shadow packs
///   tick:32  site:14  bytes:4  flags:4  thread:10
/// The tick is the block's time (BlockOrder::tick): every event that may order accesses starts a
/// new one, and no two blocks share ticks, so a tick also names its block. A shadow below a block's
/// floor happened before everything that the block does now; comparing whole shadows compares
/// ticks. `bytes` is a mask, or stands for neighbouring bytes or halves of neighbouring threads
/// (below).
using Shadow = std::uint64_t;

inline constexpr int kTickShift = 32;
inline constexpr Shadow kThreadMask = 0x3ff;
inline constexpr Shadow kWarpMask = 0x3e0;
inline constexpr int kBytesShift = 14;
inline constexpr Shadow kAllBytes = Shadow{15} << kBytesShift;
inline constexpr int kSiteShift = 18;
inline constexpr std::uint32_t kMostSites = (1u << 14) - 1;  ///< this site: the place is not known

// Bits 10 to 12 and 63, by what the shadow is of. That of a read names the last reader.
//       write                                         read: not by that one alone, but by
//   10  atomic operation, relaxed or volatile access  lanes of one warp
//   11  of those: strong between warps only           warps of one block
//   12  by a copy, not by the thread that issued it   blocks
//   63  is_contended(); with bit 12 is_under_way()    other blocks of the cluster
inline constexpr Shadow kStrong = 1 << 10, kVolatileWrite = 1 << 11, kAsync = 1 << 12;
inline constexpr Shadow kManyLanes = 1 << 10, kManyWarps = 1 << 11, kManyBlocks = 1 << 12;
inline constexpr Shadow kMany = kManyLanes | kManyWarps | kManyBlocks;
/// In front of a tick of 31 bits, for both: the floor says nothing of this shadow.
inline constexpr Shadow kLookCloser = Shadow{1} << 63, kContended = kLookCloser;
inline constexpr Shadow kReadElsewhere = kLookCloser, kUnderWay = kContended | kAsync;
/// Of a write: single bytes have shadows of their own, this one and its read shadow mean nothing.
inline constexpr Shadow kExact = 1 << 13;
inline constexpr Shadow kExactWord = Shadow{0xffffffff} << kTickShift | kExact | kThreadMask;

/// The common shadow of sixteen neighbouring words that warps access as one: word i by thread
/// `thread + (i >> shape)`, for neighbouring lanes of 4, 8 and 16 bytes. Otherwise it is like a
/// word's shadow; the shape is in place of `bytes`. With shape kHalfWords it covers halves of
/// words, half h by thread `thread + h`.
struct Granule {
  Shadow write, read;
};
inline constexpr std::uint32_t kHalfWords = 8;
inline constexpr std::uint64_t kGranuleWords = 16;
inline constexpr std::uint64_t kGranuleBytes = 4 * kGranuleWords;
/// In a granule: its words have shadows of their own.
inline constexpr Shadow kByWord = kExactWord;

inline std::uint32_t get_tick(Shadow shadow) {
  return static_cast<std::uint32_t>((shadow & ~kLookCloser) >> kTickShift);
}
inline bool is_strong(Shadow write) { return (write & kStrong) != 0; }
inline bool is_volatile_write(Shadow write) { return (write & kVolatileWrite) != 0; }
inline bool is_by_copy(Shadow write) { return (write & kAsync) != 0; }
inline bool is_by_bytes(Shadow write) { return (write & kExact) != 0; }
/// A copy that no thread has waited for yet, issued by the thread at the tick.
inline bool is_under_way(Shadow write) { return (write & kUnderWay) == kUnderWay; }
/// A write from another block of the cluster, or an atomic operation that hides others
/// (HiddenAccesses).
inline bool is_contended(Shadow write) { return (write & kUnderWay) == kContended; }
inline Shadow uncontended(Shadow one) { return is_contended(one) ? one & ~kContended : one; }
inline bool is_by_many(Shadow read) { return (read & kMany) != 0; }
inline bool is_by_many_warps(Shadow read) { return (read & kManyWarps) != 0; }
inline bool is_by_many_blocks(Shadow read) { return (read & kManyBlocks) != 0; }
inline std::uint32_t get_thread(Shadow shadow) {
  return static_cast<std::uint32_t>(shadow & kThreadMask);
}
inline std::uint32_t get_site(Shadow shadow) {
  return static_cast<std::uint32_t>(shadow >> kSiteShift) & kMostSites;
}
inline std::uint32_t get_bytes(Shadow shadow) {
  return static_cast<std::uint32_t>(shadow >> kBytesShift) & 15;
}

// `bytes` of a shadow of several threads: the masks of no aligned access. Byte b is by thread
// `thread + b`, or half h by thread `thread + h`, modulo 1024.
inline constexpr std::uint32_t kLaneBytes = 5, kLaneHalves = 10;

/// By the value of `bytes`: the bytes meant.
inline constexpr std::array<std::uint8_t, 16> kTouchedBytes = {0, 1,  2,  3, 4,  15, 3,  7,
                                                               8, 12, 15, 8, 12, 12, 14, 15};
/// Sets of possible values of `bytes`, a bit each: accesses of one thread; bytes of neighbours;
/// halves of neighbours. The first byte and the first half are in both, with the same thread.
inline constexpr std::uint32_t kOneThread = 0b1001'0001'0001'1110;
inline constexpr std::uint32_t kByteRow = 0b0100'1010'1110'0010;
inline constexpr std::uint32_t kHalfRow = 0b0010'0100'0000'1000;
static_assert((kOneThread | kByteRow | kHalfRow) == 0xfffe);

/// The value of `bytes` if neighbours touch these bytes of a word with `width` (1 or 2) each: the
/// word's last ones, its first ones, or all.
inline std::uint32_t lanes_code(std::uint32_t width, std::uint32_t bytes) {
  constexpr std::array<std::uint8_t, 16> kByteCodes = {0,  1, 0, 6, 0, 0, 0,  7,
                                                       11, 0, 0, 0, 9, 0, 14, kLaneBytes};
  constexpr std::array<std::uint8_t, 16> kHalfCodes = {0, 0, 0, 3, 0,  0, 0, 0,
                                                       0, 0, 0, 0, 13, 0, 0, kLaneHalves};
  return width == 1 ? kByteCodes[bytes] : kHalfCodes[bytes];
}
/// Whether the shadow tells of one thread.
inline bool is_one_thread(Shadow shadow) { return (kOneThread >> get_bytes(shadow) & 1) != 0; }

/// The shadow's part for byte `b` of its word; 0: nothing.
inline Shadow byte_shadow(Shadow shadow, std::uint32_t b) {
  const std::uint32_t code = get_bytes(shadow);
  if ((kTouchedBytes[code] >> b & 1) == 0) return 0;
  if (is_one_thread(shadow)) return shadow;
  const std::uint32_t lane = (kByteRow >> code & 1) != 0 ? b : b / 2;
  return (shadow & ~(kAllBytes | kThreadMask)) | Shadow{1u << b} << kBytesShift |
         ((shadow + lane) & kThreadMask);
}

/// The shadow of word `i` of a granule with the shadow `summary`.
inline Shadow word_shadow(Shadow summary, std::uint32_t i) {
  if (summary == 0) return 0;
  const auto shape = get_bytes(summary);
  if (shape == kHalfWords)
    return ((summary & ~kAllBytes) | Shadow{kLaneHalves} << kBytesShift) + 2 * Shadow{i};
  return (summary | kAllBytes) + (i >> shape);
}

/// Gives the words of a granule shadows of their own.
inline void spread(Shadow& summary, Shadow* shadows) {
  if (summary == kByWord) return;
  for (std::uint32_t i = 0; i < kGranuleWords; ++i) shadows[i] = word_shadow(summary, i);
  summary = kByWord;
}

}  // namespace kernwright::sim
