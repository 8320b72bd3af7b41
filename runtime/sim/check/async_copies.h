// Copies that threads of a block issued with cp.async and that nobody waited for yet.
#pragma once

#include "sim/check/cell.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kernwright::sim {

/// One thread's cp.async.
struct AsyncCopy {
  Cell stamp = 0;            ///< what the cells of its target say while it is under way
  std::uint64_t to = 0;      ///< in shared memory
  std::uint64_t from = 0;    ///< in global memory
  std::uint32_t bytes = 0;   ///< written
  std::uint32_t source = 0;  ///< bytes read
  std::uint32_t op = 0;      ///< index of the instruction

  bool reads(std::uint64_t begin, std::uint64_t end) const noexcept {
    return begin < from + source && end > from;
  }
};

/// Bytes [low, high) that hold all of some ranges, so that most others are known to lie apart.
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

/// The copies of one block by thread, in order of issue and in groups.
class AsyncCopies {
 public:
  /// All that are left; `f` gets each.
  template <typename F>
  void clear(F f) {
    for (Thread& thread : threads_) take(thread, thread.copies.size(), f);
    for (Thread& thread : threads_) thread.ends.clear();
  }
  void add(std::uint32_t thread, const AsyncCopy& copy) {
    if (thread >= threads_.size()) threads_.resize(thread + 1);
    threads_[thread].copies.push_back(copy);
  }
  void commit(std::uint32_t thread) {
    if (thread >= threads_.size()) threads_.resize(thread + 1);
    threads_[thread].ends.push_back(threads_[thread].copies.size());
  }
  /// Takes all of the thread's groups but the last `left`; `f` gets each of their copies.
  template <typename F>
  void wait(std::uint32_t thread, std::size_t left, F f) {
    if (thread >= threads_.size() || threads_[thread].ends.size() <= left) return;
    std::vector<std::size_t>& ends = threads_[thread].ends;
    const std::size_t groups = ends.size() - left;
    take(threads_[thread], ends[groups - 1], f);
    const std::size_t taken = ends[groups - 1];
    ends.erase(ends.begin(), ends.begin() + static_cast<std::ptrdiff_t>(groups));
    for (std::size_t& end : ends) end -= taken;
  }
  /// The same with all of its copies, also those of no group.
  template <typename F>
  void take_all(std::uint32_t thread, F f) {
    if (thread >= threads_.size()) return;
    take(threads_[thread], threads_[thread].copies.size(), f);
    threads_[thread].ends.clear();
  }
  /// A copy that reads bytes of [begin, end), or null.
  const AsyncCopy* reader_of(std::uint64_t begin, std::uint64_t end) const {
    for (const Thread& thread : threads_) {
      for (const AsyncCopy& copy : thread.copies) {
        if (copy.reads(begin, end)) return &copy;
      }
    }
    return nullptr;
  }

 private:
  struct Thread {
    std::vector<AsyncCopy> copies;
    std::vector<std::size_t> ends;  ///< of the groups, in `copies`
  };

  template <typename F>
  void take(Thread& thread, std::size_t end, F f) {
    for (std::size_t i = 0; i < end; ++i) f(thread.copies[i]);
    thread.copies.erase(thread.copies.begin(),
                        thread.copies.begin() + static_cast<std::ptrdiff_t>(end));
  }

  std::vector<Thread> threads_;
};

}  // namespace kernwright::sim
