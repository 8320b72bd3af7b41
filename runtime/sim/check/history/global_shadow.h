// The checks' data about global memory, by touched regions of 64 KiB.
#pragma once

#include "sim/check/history/shadow.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

namespace kernwright::sim {

inline constexpr int kRegionShift = 16;
inline constexpr std::uint64_t kRegionBytes = std::uint64_t{1} << kRegionShift;
inline constexpr std::uint64_t kRegionWords = kRegionBytes / 4;
inline constexpr std::uint64_t kRegionGranules = kRegionBytes / kGranuleBytes;

/// Zeroed pages without cost until their first write, for munmap().
void* lazy_zeros(std::size_t bytes);

/// Calls f(address, bytes) for each part of the range within one region.
template <typename F>
void by_region(std::uint64_t address, std::uint64_t bytes, F f) {
  while (bytes != 0) {
    const std::uint64_t part = std::min(bytes, kRegionBytes - address % kRegionBytes);
    f(address, part);
    address += part;
    bytes -= part;
  }
}

/// Readers beside the one in the shadow, by read shadow: where some of them may be ordered before a
/// write and others not.
using ReaderLists = std::unordered_map<const Shadow*, std::vector<Shadow>>;

/// Accesses hidden by the atomic one in a write shadow, by this shadow, in order: the atomic one
/// does not race with some accesses that race with them.
using HiddenAccesses = std::unordered_map<const Shadow*, std::vector<Shadow>>;

/// The race check's data about a region of global memory or a block's shared memory.
struct AccessHistory {
  Shadow* write = nullptr;  ///< by word
  Shadow* read = nullptr;
  ReaderLists& readers;  ///< which lie behind what every access looks at
  HiddenAccesses& hidden;

  /// The eight shadows of a word's bytes: writes, then reads. Throws std::bad_alloc.
  virtual Shadow* find_bytes(std::uint64_t word) = 0;

 protected:
  AccessHistory(ReaderLists& its_readers, HiddenAccesses& its_hidden)
      : readers(its_readers), hidden(its_hidden) {}
  ~AccessHistory() = default;
};

/// Shadows of a region's words and bits of its bytes. Untouched pages cost nothing.
struct GlobalRegion final : AccessHistory {
  /// Held while one of several workers looks at or changes the rest.
  std::atomic<bool> busy{false};
  Granule* granules = nullptr;  ///< kRegionGranules; look here first
  Shadow* exact = nullptr;  ///< 8 per word: writes of its four bytes, then reads; made when needed
  /// Null: everything is initialised. Set by whoever allocates, also while kernels run.
  std::atomic<std::uint64_t*> poison{nullptr};
  /// The launch (BlockOrder::launch_floor) without reads here so far, and with all writes in word
  /// shadows instead of granules; 0: none is known.
  Shadow scattered = 0;
  /// Stores of lanes far apart since the last attempt; below 0: the attempt failed.
  std::int32_t visits = 0;

  void lock() noexcept {
    // Only read, do not exchange, while another thread holds it: its cache line stays there.
    for (std::uint32_t spins = 1; busy.exchange(true, std::memory_order_acquire);) {
      while (busy.load(std::memory_order_relaxed)) {
        if (spins++ % kSpinsToYield == 0) std::this_thread::yield();  // it may not be running
      }
    }
  }
  void unlock() noexcept { busy.store(false, std::memory_order_release); }
  /// After this the shadows of the word's granule are complete.
  void spread_at(std::uint64_t word) noexcept {
    Granule& granule = granules[word / kGranuleWords];
    const std::uint64_t first = word & ~(kGranuleWords - 1);
    spread(granule.write, write + first);
    spread(granule.read, read + first);
  }
  /// The same for an access of no pattern.
  void by_word(std::uint64_t word) noexcept {
    spread_at(word);
    end_scatter(scattered);
  }
  /// Whether shadows of words tell all about this launch. For stores of lanes far apart: the
  /// granules are looked at all together, where such stores are many.
  bool is_scattered(Shadow launch) noexcept {
    return scattered == launch || (++visits >= kVisits && scatter(launch));
  }
  /// An access of another kind.
  void end_scatter(Shadow launch) noexcept {
    if (scattered == 0) return;
    visits = scattered == launch ? -kPatience : 0;
    scattered = 0;
  }
  /// Forgets the data beside the shadows.
  void forget() noexcept {
    readers.clear();
    hidden.clear();
    scattered = 0;
    visits = 0;
  }
  Shadow* find_bytes(std::uint64_t word) override;
  GlobalRegion();
  ~GlobalRegion();
  GlobalRegion(const GlobalRegion&) = delete;
  GlobalRegion& operator=(const GlobalRegion&) = delete;

 private:
  ReaderLists reader_lists_;
  HiddenAccesses hidden_accesses_;
  static constexpr std::int32_t kVisits = 16, kPatience = 256;
  static constexpr std::uint32_t kSpinsToYield = 4096;

  bool scatter(Shadow launch) noexcept;
};

/// Unwritten bytes of a range.
struct Unwritten {
  std::uint64_t bytes = 0;
  std::uint64_t first = 0;  ///< offset in the range
};

/// All regions of all devices: addresses are unique. Thread-safe; clear() only while nothing runs.
class GlobalShadow {
 public:
  /// The region around `address`. Throws std::bad_alloc.
  GlobalRegion& region(std::uint64_t address);
  /// The same, or null where nothing was noted yet.
  GlobalRegion* find(std::uint64_t address) noexcept;

  /// Fresh memory: reads of it are findings until it is written.
  void poison(std::uint64_t address, std::uint64_t bytes);
  /// Marks memory as written, or its state as unknown.
  void unpoison(std::uint64_t address, std::uint64_t bytes) noexcept;
  /// `to` is initialised where `from` is.
  void copy_poison(std::uint64_t to, std::uint64_t from, std::uint64_t bytes);
  /// How many bytes of the range are known to be unwritten, and where the first one is.
  Unwritten unwritten(std::uint64_t address, std::uint64_t bytes);
  void clear() noexcept;
  /// Forgets all accesses, keeps the initialised bytes. Needed when ticks begin anew.
  void clear_shadows() noexcept;

 private:
  /// Regions kept by clear() for later: their pages need not be made again.
  static constexpr std::size_t kMostSpare = 256;

  std::mutex mutex_;  // guards all below
  std::unordered_map<std::uint64_t, std::unique_ptr<GlobalRegion>> regions_;
  std::vector<std::unique_ptr<GlobalRegion>>
      spare_;  ///< all of their shadows are of launches before
};

}  // namespace kernwright::sim
