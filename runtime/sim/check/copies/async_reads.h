// Reads of shared memory by asynchronous operations: bulk copies out of it and wgmma.
#pragma once

#include "sim/check/copies/copy_groups.h"
#include "sim/check/history/shadow.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace kernwright::sim {

/// All reads of one bulk copy, or of one group of a warp's wgmma.
struct AsyncRead {
  Shadow stamp = 0;         ///< tick, place and thread of its issue
  std::uint32_t ended = 0;  ///< tick of the first wait for it; 0: it is under way
  /// Ticks of the waits of all warps of the warpgroup: each shows that the others' parts are done
  /// too.
  std::array<std::uint32_t, 4> waited{};
  std::vector<std::uint64_t> chunks;

  static constexpr std::uint64_t kChunk = 16;  ///< bytes for a bit of `chunks`

  void add(std::uint64_t begin, std::uint64_t bytes) {
    const std::uint64_t last = (begin + bytes - 1) / kChunk;
    if (chunks.size() <= last / 64) chunks.resize(last / 64 + 1);
    for (std::uint64_t c = begin / kChunk; c <= last; ++c) chunks[c / 64] |= bit(c);
  }
  bool meets(std::uint64_t begin, std::uint64_t end) const noexcept {
    for (std::uint64_t c = begin / kChunk; c <= (end - 1) / kChunk && c / 64 < chunks.size(); ++c)
      if ((chunks[c / 64] & bit(c)) != 0) return true;
    return false;
  }

 private:
  static std::uint64_t bit(std::uint64_t chunk) { return std::uint64_t{1} << (chunk & 63); }
};

/// The asynchronous reads of one block, by number, oldest first.
class AsyncReads {
 public:
  /// Finished reads that writers may still need to follow; beyond this number the oldest are lost.
  static constexpr std::size_t kMostEnded = 256;

  std::uint32_t begin(Shadow stamp) {
    reads_[++last_].stamp = stamp;
    return last_;
  }
  void add(std::uint32_t number, std::uint64_t begin, std::uint64_t bytes) {
    reads_[number].add(begin, bytes);
    span.add(begin, begin + bytes);
  }
  /// The warp with this index in its warpgroup waited for it.
  void end(std::uint32_t number, std::uint32_t warp, std::uint32_t tick) {
    const auto found = reads_.find(number);
    if (found == reads_.end()) return;
    AsyncRead& over = found->second;
    over.waited[warp] = tick;
    if (over.ended != 0) return;
    over.ended = tick;
    if (++ended_ <= kMostEnded) return;
    drop_if([&](const AsyncRead& read) { return read.ended != 0 && ended_ > kMostEnded; });
  }
  void drop(std::uint32_t number) {
    reads_.erase(number);
    if (reads_.empty()) span = {};
  }
  template <typename F>
  void drop_if(F f) {
    std::erase_if(reads_, [&](const auto& entry) {
      const bool goes = f(entry.second);
      if (goes && entry.second.ended != 0) --ended_;
      return goes;
    });
    if (reads_.empty()) span = {};
  }
  /// The first read of these bytes accepted by `is`, or null.
  template <typename F>
  const AsyncRead* find(std::uint64_t begin, std::uint64_t end, F is) const {
    for (const auto& [number, read] : reads_) {
      if (read.meets(begin, end) && is(read)) return &read;
    }
    return nullptr;
  }
  void clear() {
    reads_.clear();
    ended_ = 0;
    span = {};
  }

  Span span;  ///< of all

 private:
  std::map<std::uint32_t, AsyncRead> reads_;
  std::uint32_t last_ = 0;
  std::size_t ended_ = 0;
};

}  // namespace kernwright::sim
