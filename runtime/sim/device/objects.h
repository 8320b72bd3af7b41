// The objects behind the handles of the simulated driver.
#pragma once

#include "base/fault.h"
#include "driver/driver_types.h"
#include "sim/check/order/vector_clock.h"
#include "sim/device/module/loader.h"
#include "sim/device/profile.h"
#include "sim/exec/heap.h"
#include "sim/mem/memory.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace kernwright::sim {

class SimDriver;
struct SimDevice;

struct Stream;
struct QueuedWork;
struct Capture;
struct GraphNode;
struct GreenContext;
struct GraphMemory;

/// The end of a piece of work; events point at the recorded one.
struct Mark {
  std::atomic<bool> done{false};
  std::atomic<std::int64_t> nanoseconds{0};  ///< steady clock when it was reached
  VectorClock clock;                         ///< what happened before; set before others see it

  void reach() noexcept;
};

/// A primary context, from its first retain to its last release. Ids are never reused.
struct Context {
  Context(SimDevice& its_device, std::uint64_t its_id);

  SimDevice& device;
  const std::uint64_t id;
  std::array<std::atomic<std::size_t>, kLimitCount> limits{};
  Heap heap;            ///< of malloc() in device code
  std::mutex mutex;     ///< guards peers and per_thread
  std::set<int> peers;  ///< ordinals of the devices whose memory kernels may access
  const std::shared_ptr<Stream> legacy;
  std::map<std::uint64_t, std::shared_ptr<Stream>> per_thread;  ///< by thread_number()

  /// Why every further call fails, where errors stick (sim/device.h); else CUDA_SUCCESS.
  std::atomic<CUresult> lost{CUDA_SUCCESS};
  VectorClock blocking_clock;  ///< all work of blocking streams so far; guarded by StreamOrder
  VectorClock whole_clock;     ///< all work so far
};

/// The default streams have an object too; their `context` is null (see StreamUse).
struct Stream {
  std::shared_ptr<Context> context;
  std::uint64_t id = 0;
  unsigned flags = 0;
  int priority = 0;
  bool legacy = false;
  std::shared_ptr<GreenContext> green;  ///< null: on all multiprocessors
  bool blocking() const noexcept { return !legacy && (flags & CU_STREAM_NON_BLOCKING) == 0; }

  // Guarded by WorkQueues.
  std::deque<std::shared_ptr<QueuedWork>> queue;
  bool busy = false;           ///< its oldest work runs
  std::shared_ptr<Mark> last;  ///< end of the work issued last; null when that never was deferred

  // Guarded by Captures.
  std::shared_ptr<Capture> capture;
  std::vector<std::shared_ptr<GraphNode>> tips;  ///< what the next captured work depends on

  // Guarded by StreamOrder.
  Actor actor = 0;  ///< 0 = none yet
  VectorClock clock;
};

struct Event {
  std::shared_ptr<Context> context;
  unsigned flags = 0;
  std::mutex mutex;            ///< guards the rest
  std::shared_ptr<Mark> mark;  ///< of the last record; null = never recorded
  /// The capture of the last record; null if it was not captured.
  std::shared_ptr<Capture> capture;
  std::vector<std::shared_ptr<GraphNode>> tips;

  /// For ended handles: a node may hold the event, but the event must not hold the node for ever.
  void forget_capture();
};

struct Function;

/// Its variables go away when nothing runs, so never drop the last reference while holding
/// SimDriver::execution.
struct Module {
  Module() = default;
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  SimDriver* driver = nullptr;
  std::shared_ptr<Context> context;
  std::unique_ptr<LoadedModule> code;
  CUmodule handle = nullptr;
  std::vector<CUfunction> functions;  ///< one for each entry, in the order of the PTX
};

struct Function {
  std::shared_ptr<Context> context;
  std::weak_ptr<Module> module;
  const LoadedModule* code = nullptr;  ///< valid while the module is locked
  CUmodule module_handle = nullptr;
  std::uint32_t index = 0;  ///< into Program::functions
  std::string name;
  std::uint32_t shared_bytes = 0;    ///< static, of one block
  std::uint32_t constant_bytes = 0;  ///< the module's __constant__ variables
  std::uint32_t max_threads = 0;     ///< from __launch_bounds__; 0 = none
  std::atomic<int> registers{0};     ///< of one thread
  std::atomic<std::uint32_t> local_bytes{0};
  std::atomic<int> max_dynamic_shared{0};
  std::atomic<int> carveout{-1};
  std::atomic<bool> large_clusters{false};  ///< of more than the portable number of blocks
};

struct MemoryPool {
  SimDevice* device = nullptr;
  bool is_default = false;
  std::mutex mutex;  ///< guards the rest
  std::uint64_t used = 0, used_high = 0, reserved_high = 0;
  std::uint64_t release_threshold = 0;
  std::array<int, 3> reuse{1, 1, 1};
};

/// The driver's data about an allocation, besides Memory's own record.
struct AllocationInfo {
  AllocationKind kind = AllocationKind::device;
  std::uint64_t buffer_id = 0;
  std::uint64_t context_id = 0;
  std::uint64_t bytes = 0;
  unsigned flags = 0;                ///< of cuMemHostAlloc or cuMemHostRegister
  bool registered = false;           ///< by cuMemHostRegister
  std::shared_ptr<MemoryPool> pool;  ///< of stream-ordered allocations
  std::weak_ptr<GraphMemory> graph;  ///< of allocations that belong to a graph
  bool is_graph = false;
  bool freeing = false;  ///< a cuMemFreeAsync was issued
};

/// A CUDA array: elements row by row in private memory of the device.
struct CudaArray {
  std::shared_ptr<Context> context;
  CUDA_ARRAY3D_DESCRIPTOR descriptor{};
  std::uint64_t address = 0;
  std::size_t element = 0, row = 0, slice = 0;  ///< bytes; a slice is a layer where there are any
};

struct SimDevice {
  SimDevice(int its_ordinal, std::uint64_t memory_bytes, std::uint64_t least_bytes)
      : ordinal(its_ordinal), memory(memory_bytes, least_bytes) {}

  const int ordinal;
  Memory memory;
  std::mutex context_mutex;          ///< guards the next two
  std::shared_ptr<Context> primary;  ///< null while it is not retained
  unsigned retains = 0;
  CUcontext handle = nullptr;  ///< of the primary context, the same for ever
  std::shared_ptr<MemoryPool> default_pool;
  CUmemoryPool default_pool_handle = nullptr;
};

}  // namespace kernwright::sim
