// Copies issued by threads of a block and not yet waited for.
#pragma once

#include "sim/check/history/shadow.h"
#include "sim/exec/copy/watched_copy.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace kernwright::sim {

/// Calls f(begin, bytes) for the pieces in which copies are checked.
template <typename F>
void each_piece(std::uint64_t begin, std::uint64_t bytes, F f) {
  constexpr std::uint64_t kPiece = 16;
  for (std::uint64_t at = begin; at < begin + bytes;) {
    const std::uint64_t end = std::min(begin + bytes, (at / kPiece + 1) * kPiece);
    f(at, static_cast<std::uint32_t>(end - at));
    at = end;
  }
}

/// Bytes [low, high) around all of some pieces: most others are known to lie apart.
struct Span {
  std::uint64_t low = ~std::uint64_t{0}, high = 0;

  bool meets(std::uint64_t begin, std::uint64_t end) const noexcept {
    return begin < high && end > low;
  }
  void add(std::uint64_t begin, std::uint64_t end) noexcept {
    low = begin < low ? begin : low;
    high = end > high ? end : high;
  }
};

/// Copies of one or several threads that repeat each other without an order between them. They do
/// not race with each other; for other accesses, each of them must have ended.
struct CopyTwins {
  std::uint32_t number = 0;       ///< AsyncCopy::twins of them
  Shadow stamp = 0;               ///< words of the shadows: of one under way
  std::vector<Shadow> under_way;  ///< stamps
  std::vector<Shadow> over;       ///< of those that ended: the last two of each warp
};

/// The last cp.async to a word of shared memory.
struct CopyOrigin {
  std::uint64_t from = 0;
  Shadow prior = 0;  ///< the write before it and before the repeated ones; 0: none of interest
  std::uint32_t shape = 0;

  CopyOrigin() = default;
  CopyOrigin(const AsyncCopy& copy, Shadow its_prior)
      : from(copy.from), prior(its_prior), shape(copy_shape(copy)) {}
  /// Whether the copy repeats it.
  bool is_repeated_by(const AsyncCopy& copy) const noexcept {
    return shape == copy_shape(copy) && (copy.source == 0 || from == copy.from);
  }

 private:
  /// Target and sizes; sizes are at most 16.
  static std::uint32_t copy_shape(const AsyncCopy& copy) noexcept {
    return static_cast<std::uint32_t>(copy.to) << 10 | copy.bytes << 5 | copy.source;
  }
};

/// The copies of one block by thread, in order of issue and in groups.
template <typename Copy>
class CopyGroups {
 public:
  /// Clears all remaining ones after calling `f` with each.
  template <typename F>
  void clear(F f) {
    for (Thread& thread : threads_) take(thread, thread.copies.size(), f);
    for (Thread& thread : threads_) thread.ends.clear();
  }
  void add(std::uint32_t thread, Copy copy) { at(thread).copies.push_back(std::move(copy)); }
  void commit(std::uint32_t thread) { at(thread).ends.push_back(at(thread).copies.size()); }
  /// Takes all of the thread's groups but the last `left`; `f` gets each of their copies.
  template <typename F>
  void wait(std::uint32_t thread, std::size_t left, F f) {
    std::vector<std::size_t>& ends = at(thread).ends;
    if (ends.size() <= left) return;
    const std::size_t groups = ends.size() - left, taken = ends[groups - 1];
    take(at(thread), taken, f);
    ends.erase(ends.begin(), ends.begin() + static_cast<std::ptrdiff_t>(groups));
    for (std::size_t& end : ends) end -= taken;
  }
  /// The same, but they stay.
  template <typename F>
  void each(std::uint32_t thread, std::size_t left, F f) {
    const std::vector<std::size_t>& ends = at(thread).ends;
    const std::size_t count = ends.size() <= left ? 0 : ends[ends.size() - left - 1];
    for (std::size_t i = 0; i < count; ++i) f(at(thread).copies[i]);
  }
  /// All of the thread's copies, also those of no group.
  template <typename F>
  void take_all(std::uint32_t thread, F f) {
    take(at(thread), at(thread).copies.size(), f);
    at(thread).ends.clear();
  }
  /// The first copy accepted by `is`, or null.
  template <typename F>
  Copy* find(F is) {
    for (Thread& thread : threads_) {
      for (Copy& copy : thread.copies) {
        if (is(copy)) return &copy;
      }
    }
    return nullptr;
  }

 private:
  struct Thread {
    std::vector<Copy> copies;
    std::vector<std::size_t> ends;  ///< of the groups, in `copies`
  };

  Thread& at(std::uint32_t thread) {
    if (thread >= threads_.size()) threads_.resize(thread + 1);
    return threads_[thread];
  }
  template <typename F>
  void take(Thread& thread, std::size_t end, F f) {
    for (std::size_t i = 0; i < end; ++i) f(thread.copies[i]);
    thread.copies.erase(thread.copies.begin(),
                        thread.copies.begin() + static_cast<std::ptrdiff_t>(end));
  }

  std::vector<Thread> threads_;
};

}  // namespace kernwright::sim
