// A caching pool: freed memory is reused in stream order instead of going back to the driver.
#pragma once

#include "core/event.h"
#include "memory/memory_resource.h"
#include "memory/memory_snapshot.h"
#include "memory/reclaim.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace kernwright {

class GraphPool;

/// Takes segments from an upstream resource, hands out blocks of size classes (size_class.h), and
/// keeps freed blocks. Thread-safe. An allocation is served, in this order, by
///  - memory freed on the same stream, at once, and memory without pending work;
///  - memory of another stream without pending work;
///  - a new segment, while the reserved bytes stay within `overhead` times the peak of the used
///    ones;
///  - memory of a busy stream: the new stream waits for it by an event, the host does not;
///  - a new segment, after free segments were given back;
///  - a new segment after everything cached went back, also by other pools of the device, and after
///    evictable buffers were moved to the host;
/// else it throws OutOfMemory with a list of the largest users.
///
/// While a Graph captures a stream, allocations on it come from memory of the graph, or of its
/// GraphPool, which keeps it until its own end. Memory freed on it goes back after the capture.
///
/// The pool keeps a stream alive while memory freed on it waits for reuse, as long as there are few
/// of them. A borrowed stream may vanish: an event marks the end of its work instead.
class PoolResource final : public MemoryResource,
                           public std::enable_shared_from_this<PoolResource>,
                           private Reclaimer {
 public:
  struct Options {
    std::size_t smallest_segment = std::size_t{2} << 20;  ///< bytes
    /// A segment is as large as the request, or an eighth of the reserved bytes if that is more.
    /// The eighth is at most this large.
    std::size_t largest_step = std::size_t{256} << 20;
    /// Reserved bytes over the peak of the used ones. Before the pool would exceed it, it gives
    /// free segments back.
    double overhead = 1.3;
    /// The overhead has no effect up to so many reserved bytes.
    std::size_t slack = std::size_t{16} << 20;
    std::size_t limit = 0;  ///< bytes reserved; 0: none
  };

  /// Throws InvalidArgument for a null upstream and for options out of range.
  explicit PoolResource(std::shared_ptr<MemoryResource> upstream);
  PoolResource(std::shared_ptr<MemoryResource> upstream, Options options);
  /// Gives all unused memory back. Memory in use is lost, with a line in the log.
  ~PoolResource() override;
  PoolResource(const PoolResource&) = delete;
  PoolResource& operator=(const PoolResource&) = delete;

  CUdeviceptr allocate(std::size_t bytes, const Stream& stream) override;
  void release(CUdeviceptr address, std::size_t bytes, const Stream& stream) override;
  void deallocate(CUdeviceptr address, std::size_t bytes, const Stream& stream) noexcept override;
  CUdeviceptr try_allocate(std::size_t bytes, const Stream& stream) override;
  bool try_release(CUdeviceptr address, std::size_t bytes, const Stream& stream) noexcept override;

  Device& device() const override { return device_; }
  std::string name() const override { return "PoolResource"; }
  MemoryStats stats() const override;
  std::vector<AllocationRecord> records() const override;
  std::vector<HistorySample> history() const override;
  std::size_t trim(std::size_t bytes_to_keep = 0) override;
  void let_idle_streams_go() override;
  void set_limit(std::size_t bytes) override;
  bool is_synchronous() const noexcept override { return false; }
  bool belongs_to(Capture& capture, CUdeviceptr address) const override;
  bool is_host_accessible() const noexcept override { return upstream_->is_host_accessible(); }

  MemorySnapshot snapshot() const;
  const std::shared_ptr<MemoryResource>& upstream() const noexcept { return upstream_; }
  void note_eviction() noexcept override;

 private:
  struct State;
  struct Arena;
  class Growth;

  std::size_t reclaim(std::size_t bytes) override;
  int reclaim_order() const noexcept override { return 0; }
  CUdeviceptr allocate_in_capture(std::size_t bytes, const Stream& stream);
  bool release_in_capture(CUdeviceptr address, std::size_t bytes, const Stream& stream);
  void release_marked(CUdeviceptr address, std::size_t bytes, const Stream& stream);
  std::shared_ptr<Arena> release_arena_block(CUdeviceptr address, std::size_t bytes,
                                             const Stream& stream, std::optional<Event> mark = {});
  std::shared_ptr<void> new_arena();
  void continue_arena(Arena& arena, GraphPool& graphs);
  void release_held(CUdeviceptr address, const Stream& stream);
  void give_back_arena(Arena& arena) noexcept;
  void drop_graph(const Arena& arena) noexcept;

  std::shared_ptr<MemoryResource> upstream_;
  Device& device_;
  std::unique_ptr<State> state_;
};

}  // namespace kernwright
