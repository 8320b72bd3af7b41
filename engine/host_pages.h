// Copies of cached pages in page-locked memory of the host, and their ways there and back.
#pragma once

#include "core/event.h"
#include "core/stream.h"
#include "kernels_src/steps/page_copies.h"
#include "memory/pinned_buffer.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kernwright::engine {

/// Memory of the host in slots of a page of all caches. Pages go there on a stream of its own
/// beside the steps, and come back on the stream of the steps. Not thread-safe.
class HostPages {
 public:
  static constexpr std::size_t kMostSaved = 64;  ///< pages of a save()

  /// `caches` are all arrays with pages; `stream` is that of the steps. Throws InvalidArgument for
  /// less memory than a page takes, OutOfMemory.
  HostPages(std::vector<Array> caches, std::size_t bytes, const Stream& stream);
  ~HostPages();
  HostPages(const HostPages&) = delete;
  HostPages& operator=(const HostPages&) = delete;

  std::int32_t slots() const noexcept { return slots_; }
  /// Whether the pages of the last save() have arrived: else no other one begins.
  bool is_idle();
  /// Queues copies to the host behind the steps queued so far.
  void save(std::span<const kernels::PageMove> moves);
  /// Queues copies to the device in front of the work to come. With `overwrites` that may write to
  /// pages of save(), and waits for it.
  void load(std::span<const kernels::PageMove> moves, bool overwrites);

 private:
  Stream stream_, side_;
  kernels::PageCopies copies_;
  PinnedBuffer memory_;
  std::int32_t slots_ = 0;
  Event computed_, saved_;
  bool saves_ = false;  ///< since is_idle()
};

}  // namespace kernwright::engine
