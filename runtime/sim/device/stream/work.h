// Work for a stream: run at once, kept in the stream's queue, or captured as a node of a graph.
#pragma once

#include "driver/order_scope.h"
#include "sim/device/memory/checked_range.h"
#include "sim/device/objects.h"
#include "sim/device/stream/stream_order.h"

#include <variant>

namespace kernwright::sim {

struct GraphPlan;

/// Does nothing, in its turn.
struct EmptyWork {
  const char* call = "";
};

struct KernelWork {
  CUfunction handle = nullptr;
  std::shared_ptr<Function> function;
  std::shared_ptr<GreenContext> green;  ///< null: runs on all multiprocessors
  std::shared_ptr<Module> module;       ///< keeps the code while the work waits; null in graphs
  std::array<std::uint32_t, 3> grid{}, block{};
  std::array<std::uint32_t, 3> cluster{};  ///< blocks; zeros: none
  std::uint32_t shared_bytes = 0;
  bool cooperative = false;
  std::vector<std::byte> parameters;
};

/// Distances in bytes between the rows and slices of one side of a copy.
struct CopyPitch {
  std::size_t row = 0, slice = 0;
};

/// `bytes` of each of `rows` rows of `slices` slices.
struct CopyWork {
  const char* call = "";
  std::uint64_t to = 0, from = 0;
  std::size_t bytes = 0;
  Side to_side = Side::device, from_side = Side::device;
  /// The contents of `from` when the copy was issued, without gaps; empty = read later.
  std::vector<std::byte> staged;
  std::size_t rows = 1, slices = 1;
  CopyPitch to_pitch{}, from_pitch{};
  bool is_order = OrderScope::current();  ///< of the call
};

/// `height` rows of `width` elements of `element` bytes, `pitch` bytes apart.
struct FillWork {
  const char* call = "";
  std::uint64_t to = 0;
  std::size_t pitch = 0;
  std::uint32_t value = 0;
  std::uint32_t element = 1;
  std::size_t width = 0, height = 1;
};

struct HostWork {
  CUhostFn function = nullptr;
  void* user_data = nullptr;
};

/// Outside graphs the event's mark is QueuedWork::end, in them one of GraphWork::marks.
struct RecordWork {
  std::shared_ptr<Event> event;
};

/// QueuedWork::after has its conditions.
struct WaitWork {
  std::shared_ptr<Event> event;
};

/// The beginning of an allocation's life. The address is known before.
struct AllocWork {
  std::uint64_t address = 0, bytes = 0;
  std::shared_ptr<GraphMemory> graph;  ///< null outside graphs
};

struct FreeWork {
  std::uint64_t address = 0;
  std::shared_ptr<GraphMemory> graph;  ///< null outside graphs
};

struct GraphWork {
  std::shared_ptr<const GraphPlan> plan;
  std::vector<std::shared_ptr<Mark>> marks;  ///< of this launch, for each node that records
  std::uint64_t seed = 0;                    ///< orders the nodes; 0 = as they were made
};

using Work = std::variant<EmptyWork, KernelWork, CopyWork, FillWork, HostWork, RecordWork, WaitWork,
                          AllocWork, FreeWork, GraphWork>;

// Each runs one piece of work, on the calling thread, with no lock held. `log` takes its touched
// ranges unless it is null. Throws Failure.
void perform(const KernelWork& work, AccessLog* log);
void perform(const CopyWork& work, AccessLog* log);
void perform(const FillWork& work, AccessLog* log);
void perform(const HostWork& work, AccessLog* log);
void perform(const AllocWork& work, AccessLog* log);
void perform(const FreeWork& work, AccessLog* log);
void perform(const GraphWork& work, AccessLog* log);
inline void perform(const EmptyWork&, AccessLog*) {}
inline void perform(const RecordWork&, AccessLog*) {}
inline void perform(const WaitWork&, AccessLog*) {}
void perform(const Work& work, AccessLog* log);

// Check the arguments as far as possible, for later work. Throw Failure.
void check(const CopyWork& work);
void check(const FillWork& work);
void check(const Work& work);

/// Reaches the marks of a graph launch that did not run to its end.
void settle(const Work& work);

/// "kernel saxpy", "cuMemcpyAsync", ...
std::string describe(const Work& work);

/// True inside a host function, where the driver may not be called.
bool& in_host_function() noexcept;

}  // namespace kernwright::sim
