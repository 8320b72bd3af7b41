// A PoolResource's state, and its way to more memory; shared by the sources of the pool only.
#pragma once

#include "core/event.h"
#include "core/graph/capture.h"
#include "memory/pool/pool_resource.h"
#include "memory/pool/segment_heap.h"
#include "memory/usage_history.h"

#include <atomic>
#include <chrono>
#include <mutex>
#include <unordered_map>

namespace kernwright {

/// Memory of one graph, or of the graphs of one GraphPool, allocated while they were captured. It
/// is never given to others before the graphs and every user are gone, because each launch uses the
/// same addresses again.
struct PoolResource::Arena {
  SegmentHeap heap;
  std::vector<Stream> streams;            ///< of frees that are not marked yet
  std::vector<Event> marks;               ///< of work until frees
  std::uint64_t first_capture_stamp = 0;  ///< stamp of the first allocation of the latest capture
  bool graph_gone = false;
  void note_stream(const Stream& stream);
};

struct PoolResource::State {
  using Owner = SegmentHeap::Owner;
  using Block = SegmentHeap::Block;

  /// A stream on which memory was freed.
  struct FreeingStream {
    Stream stream;
    /// For a borrowed stream: its work until the last free. Others may destroy the stream.
    std::optional<Event> last_free;
  };

  State(Device& device, const Options& given);

  Owner find_owner(const Stream& stream) const noexcept {
    if (!stream) return legacy.id();
    return stream.handle() == kStreamPerThread ? SegmentHeap::kSettled : stream.id();
  }
  /// Whether the stream's handle may be used at any later time.
  static bool stays_valid(const Stream& stream) noexcept {
    return stream.handle() == nullptr || stream.is_owned();
  }
  CUdeviceptr hand_out(Block* block, std::size_t bytes, Owner stream, bool hit) noexcept;
  /// Throws InvalidArgument unless the block may be freed with this size.
  void require_freeable(const Block* block, CUdeviceptr address, std::size_t bytes);
  void note_freed(const Block& block) noexcept;
  /// The entry of the stream in the list of freeing streams.
  FreeingStream& freeing_stream(const Stream& stream, Owner owner);
  void forget_stream(Owner owner) noexcept;
  void sample(bool always) noexcept;
  HistorySample moment() const noexcept;
  /// The samples until now, and the moment.
  std::vector<HistorySample> whole_history() const;
  MemoryStats whole_stats() const noexcept;
  void note_reserved(std::size_t bytes) noexcept;
  void note_given_back(std::size_t bytes) noexcept;
  /// The arena with a block at `address`, and the block.
  std::pair<Arena*, Block*> find_in_arenas(CUdeviceptr address) const noexcept;
  std::shared_ptr<Arena> detach_if_done(const Arena* arena) noexcept;

  const Options options;
  const Stream legacy;
  std::mutex growth;         ///< one search for more memory at a time; taken before `mutex`
  mutable std::mutex mutex;  ///< guards all below
  SegmentHeap heap;
  std::vector<std::shared_ptr<Arena>> arenas;
  std::unordered_map<Owner, FreeingStream> streams;
  FreeingStream* latest = nullptr;  ///< of `streams`: the one freed on last
  Owner latest_owner = 0;
  std::size_t crowd = 16;  ///< with more streams than this, the pool lets idle ones go
  std::atomic<bool> crowded{false};
  std::uint64_t clock = 0;        ///< counts frees
  std::uint64_t anonymous = 0;    ///< frees on streams without an id
  std::uint64_t block_bytes = 0;  ///< of blocks in use, arenas included
  std::size_t limit = 0;
  MemoryStats stats;  ///< but for padding, cached, limit, blocks, segments
  UsageHistory history;
  const std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
};

/// The search for memory of one request, after the cached memory of its stream.
class PoolResource::Growth {
 public:
  Growth(PoolResource& pool, std::size_t bytes, const Stream& stream);
  /// For a request in a capture: memory of the arena only.
  Growth(PoolResource& pool, std::size_t bytes, const Stream& stream, std::shared_ptr<Arena> arena);

  CUdeviceptr run();

  /// Waits for the work of every freeing stream. Their free memory then serves every stream.
  static void settle_all(PoolResource& pool);
  /// Lets free memory of streams without pending work serve every stream.
  static void settle_idle(PoolResource& pool);
  /// Gives settled free segments back until at most `keep` bytes are reserved. Returns the bytes.
  static std::size_t give_back(PoolResource& pool, std::size_t keep);
  /// The work of the stream until now, nothing while it is captured.
  static std::optional<Event> mark(const Stream& stream);

 private:
  using Block = SegmentHeap::Block;
  static CUresult ask(const Device& device, const State::FreeingStream& other) noexcept;
  CUdeviceptr search(bool first);
  CUdeviceptr take_owned();
  CUdeviceptr take_idle();
  CUdeviceptr take_busy();
  CUdeviceptr grow(std::size_t segment_bytes);
  CUdeviceptr add_segment(CUdeviceptr address, std::size_t segment_bytes);
  std::size_t comfortable_segment() const;
  std::size_t tight_segment() const;
  std::size_t room() const;
  void make_room();
  CUresult wait_for(const Stream& target, const State::FreeingStream& donor,
                    const Event& freed) noexcept;
  [[noreturn]] void fail();

  PoolResource& pool_;
  State& state_;
  const std::size_t bytes_;
  const std::size_t need_;  ///< bytes_ rounded to its size class
  const Stream& stream_;
  const SegmentHeap::Owner owner_;
  const std::shared_ptr<Arena> arena_;
  SegmentHeap& heap_;
  bool limited_ = false;  ///< the limit, not the driver, stood in the way
};

}  // namespace kernwright
