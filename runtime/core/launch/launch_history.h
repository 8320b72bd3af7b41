// The last launches on one device, kept so that a late error can name the kernels behind it.
#pragma once

#include "core/launch/launch_site.h"
#include "core/source_origin.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kernwright {

/// A kernel's name in a fixed block of words: copied at each launch without touching the heap, and
/// still readable after the kernel is gone. Made once per kernel.
struct KernelTag {
  static constexpr std::size_t kWords = 8;
  std::array<std::uint64_t, kWords> words{};  ///< NUL-padded text, cut with "..." when longer
  std::uint64_t lowered_hash = 0;             ///< of the name in the object code
  std::uint64_t file_hash = 0;                ///< of the file that holds the kernel's text
  std::uint64_t first_line = 1;               ///< of the text in that file

  KernelTag() = default;
  KernelTag(std::string_view name, std::string_view lowered,
            const SourceOrigin& origin = {}) noexcept;
  std::string name() const;
  static std::uint64_t hash(std::string_view lowered) noexcept;
  /// First line in `file` of the kernel's text, of the last one of that name and file; 1 for an
  /// unknown one, and after many thousands of later ones. For findings that outlive the history of
  /// launches. Thread-safe.
  static std::uint64_t find_first_line(std::string_view lowered, std::string_view file);
};

/// A ring of the newest launches. note() is lock-free and costs a dozen plain stores; entries()
/// skips what is being overwritten while it reads. Thread-safe.
class LaunchHistory {
 public:
  static constexpr std::size_t kCapacity = 8;

  struct Entry {
    KernelTag kernel;
    LaunchSite site;
  };

  void note(const KernelTag& kernel, const LaunchSite& site) noexcept;
  /// A point in the history, for forget_until().
  std::uint64_t position() const noexcept { return next_.load(std::memory_order_relaxed); }
  /// Launches before `position` have ended well and are no longer reported.
  void forget_until(std::uint64_t position) noexcept;
  /// The remembered launches, newest first.
  std::vector<Entry> entries() const;
  /// "saxpy (app.py:12), fill x 3 (app.py:9)", newest first; empty when nothing is remembered.
  std::string describe() const;

 private:
  // A sequence lock per slot: 2 * ticket + 1 while it is written, 2 * ticket + 2 when complete.
  // All words are atomics, so that a torn read is detected and never undefined.
  struct alignas(64) Slot {
    std::atomic<std::uint64_t> sequence{0};
    std::array<std::atomic<std::uint64_t>, KernelTag::kWords> words{};
    std::atomic<std::uint64_t> lowered_hash{0};
    std::atomic<std::uint64_t> file_hash{0};
    std::atomic<std::uint64_t> first_line{1};
    std::atomic<const void*> origin{nullptr};
    std::atomic<std::uint64_t> position{0};
    std::atomic<LaunchSite::Resolver> resolve{nullptr};
  };
  bool read(std::uint64_t ticket, Entry& entry) const noexcept;

  std::array<Slot, kCapacity> slots_{};
  std::atomic<std::uint64_t> next_{0};
  std::atomic<std::uint64_t> first_{0};
};

}  // namespace kernwright
