// Reads of a block's shared memory without a shadow yet. If nothing was written since the last
// barrier of the whole block, a read is no race. It matters only if a write follows before the next
// barrier. So it is put on a list; most barriers throw the list away.
#pragma once

#include "sim/check/history/shadow.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace kernwright::sim {

/// One access of a warp, of at least four bytes per lane. Small: a block has hundreds between two
/// barriers, and they take room in the first-level cache from its registers.
struct LateRead {
  std::uint32_t word = 0;
  std::int32_t half = 0;  ///< words from the first half to the second, where the pattern has two
  std::uint32_t mask = 0;
  std::uint16_t site = 0;
  std::uint8_t warp = 0;
  std::uint8_t shape =
      0;  ///< words per lane, and above kPatternShift a Pattern of ops/memory/memory_plan.h

  static constexpr int kPatternShift = 4;
};
static_assert(sizeof(LateRead) == 16);

/// When reads were made: those of the list from `from` on.
struct LateMoment {
  Shadow stamp = 0;  ///< the tick
  Shadow met = 0;    ///< BlockOrder::met() of their warp
  std::size_t from = 0;
};

/// In order, at most kMost. The same words by the same warp at one epoch are listed once.
struct LateReads {
  static constexpr std::size_t kMost = 1024;
  static constexpr LateMoment kNone{~Shadow{0}, 0, 0};  ///< no stamp is like this
  std::vector<LateRead> list;
  std::size_t count = 0;
  std::vector<LateMoment> moments;
  LateMoment last = kNone;  ///< of them
  /// For patterns without a shape: the lanes' distances in words from LateRead::word, in order.
  std::vector<std::array<std::uint32_t, 32>> offsets;

  void reserve() {
    list.resize(kMost);
    moments.reserve(kMost);
    offsets.reserve(kMost);
  }
  /// Whether there is room for an entry, and its moment equals the last one's.
  bool goes_on(Shadow stamp, Shadow met) const noexcept {
    return last.stamp == stamp && last.met == met && count < kMost;
  }
  /// The next entry is of this moment.
  void begin_moment(Shadow stamp, Shadow met) {
    last = {stamp, met, count};
    moments.push_back(last);
  }
  void clear() noexcept {
    count = 0;
    last = kNone;
    moments.clear();
    offsets.clear();
  }
};

/// Granules of shared memory written since the last barrier of the whole block: one bit each. The
/// targets of asynchronous copies count as written until a thread has waited.
class WrittenGranules {
 public:
  explicit WrittenGranules(std::uint64_t bytes)
      : bits_(words(bytes)), kept_(words(bytes)), holds_(bytes / kGranuleBytes + 1) {}

  bool any(std::uint64_t begin, std::uint64_t end) const noexcept {
    const std::uint64_t first = begin / kGranuleBytes, last = (end - 1) / kGranuleBytes;
    const std::uint64_t low = ~std::uint64_t{0} << (first & 63);
    const std::uint64_t high = ~std::uint64_t{0} >> (63 - (last & 63));
    if (first / 64 == last / 64) return (bits_[first / 64] & low & high) != 0;
    std::uint64_t found = (bits_[first / 64] & low) | (bits_[last / 64] & high);
    for (std::uint64_t w = first / 64 + 1; w < last / 64; ++w) found |= bits_[w];
    return found != 0;
  }
  /// Whether there are no marks at all.
  bool none() const noexcept { return none_; }
  void mark(std::uint64_t begin, std::uint64_t end) noexcept {
    for (std::uint64_t g = begin / kGranuleBytes; g <= (end - 1) / kGranuleBytes; ++g)
      bits_[g / 64] |= std::uint64_t{1} << (g & 63);
    none_ = false;
  }
  /// For good: reads there are never postponed.
  void keep(std::uint64_t byte) noexcept {
    const std::uint64_t granule = byte / kGranuleBytes;
    kept_[granule / 64] |= std::uint64_t{1} << (granule & 63);
    keeps_ = true;
    mark(byte, byte + 1);
  }
  /// Until as many calls of release().
  void hold(std::uint64_t begin, std::uint64_t end) noexcept {
    for (std::uint64_t g = begin / kGranuleBytes; g <= (end - 1) / kGranuleBytes; ++g) {
      ++holds_[g];
      ++held_;
    }
    mark(begin, end);
  }
  void release(std::uint64_t begin, std::uint64_t end) noexcept {
    for (std::uint64_t g = begin / kGranuleBytes; g <= (end - 1) / kGranuleBytes; ++g) {
      --holds_[g];
      --held_;
    }
  }
  void forget() noexcept {
    if (none_) return;
    bits_ = kept_;
    none_ = !keeps_ && held_ == 0;
    if (held_ == 0) return;
    for (std::uint64_t g = 0; g < holds_.size(); ++g)
      bits_[g / 64] |= std::uint64_t{holds_[g] != 0} << (g & 63);
  }

 private:
  static std::size_t words(std::uint64_t bytes) { return bytes / (64 * kGranuleBytes) + 1; }

  std::vector<std::uint64_t> bits_, kept_;
  std::vector<std::uint32_t> holds_;  ///< by granule
  std::uint64_t held_ = 0;            ///< sum of holds_
  bool none_ = true, keeps_ = false;
};

}  // namespace kernwright::sim
