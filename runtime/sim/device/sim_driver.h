// The process-wide state of the simulated driver, and the guard around each of its functions.
#pragma once

#include "driver/driver_api.h"
#include "sim/device/graph/captures.h"
#include "sim/device/graph/graph.h"
#include "sim/device/green_context.h"
#include "sim/device/handle_table.h"
#include "sim/device/launch/checks.h"
#include "sim/device/launch/observation.h"
#include "sim/device/objects.h"
#include "sim/device/stream/stream_order.h"
#include "sim/device/stream/work_queues.h"
#include "sim/exec/texture.h"

#include <chrono>
#include <exception>
#include <functional>
#include <new>
#include <utility>

namespace kernwright::sim {

/// Leaves a driver function with an error code, and with a report where there is something to tell.
struct Failure {
  CUresult code;
  std::optional<Fault> report{};
};

[[noreturn]] inline void fail(CUresult code) { throw Failure{code, {}}; }
inline void require(bool condition, CUresult code = CUDA_ERROR_INVALID_VALUE) {
  if (!condition) fail(code);
}
/// Leaves with a finding of kind bounds, use-after-free, ... about an argument of a driver call.
[[noreturn]] void fail_call(CUresult code, FaultKind kind, std::string message,
                            std::uint64_t address = 0, std::uint64_t size = 0,
                            std::string allocation = {});

/// Made by cuInit, never destroyed.
class SimDriver {
 public:
  /// Reads the environment. Throws InvalidArgument, OutOfMemory.
  SimDriver();

  std::vector<std::unique_ptr<SimDevice>> devices;
  std::uint64_t instruction_budget = 0;  ///< of one warp; 0 = none
  std::chrono::seconds launch_limit{0};  ///< 0 = none
  int threads = 1;                       ///< host threads of a launch
  std::atomic<bool> sticky_errors{false};
  Memory host_memory;  ///< page-locked, registered and managed memory, known to every device
  /// Held while simulated work runs or memory is freed, so that the two never overlap. Never held
  /// while code of the user runs.
  std::mutex execution;

  HandleTable<CUstream, Stream> streams{2};
  HandleTable<CUevent, Event> events{3};
  HandleTable<CUmodule, Module> modules{4};
  HandleTable<CUfunction, Function> functions{5};
  HandleTable<CUmemoryPool, MemoryPool> pools{6};
  HandleTable<CUgraph, Graph> graphs{7};
  HandleTable<CUgraphExec, GraphExec> executables{8};
  HandleTable<CUgraphNode, GraphNode> nodes{9};
  HandleTable<CUarray, CudaArray> arrays{10};
  HandleTable<CUgreenCtx, GreenContext> green_contexts{11};
  HandleTable<CUdevResourceDesc, ResourceDescriptor> descriptors{12};
  TextureTable textures;

  WorkQueues queues;
  Captures captures;
  StreamOrder order;
  Checks checks;
  Observation observation;

  std::mutex allocations_mutex;  ///< guards allocations
  std::map<std::uint64_t, AllocationInfo> allocations;
  /// Null when none begins there. Call with allocations_mutex held.
  AllocationInfo* allocation_at(std::uint64_t address) noexcept;
  std::uint64_t next_id() noexcept { return ids_.fetch_add(1) + 1; }

  SimDevice& device(CUdevice ordinal);                     ///< throws Failure INVALID_DEVICE
  SimDevice* get_device(CUcontext handle) const noexcept;  ///< null for a foreign handle
  /// The memory with `address`, else null.
  Memory* get_memory(std::uint64_t address) noexcept;
  /// For messages about an address outside all memories.
  std::string describe(std::uint64_t address, std::uint64_t size, bool* freed);

 private:
  std::atomic<std::uint64_t> ids_{0};
};

/// The simulated driver. Throws Failure NOT_INITIALIZED before cuInit and in a child made by fork.
SimDriver& sim_driver();
/// Makes it where it is not there yet.
void initialise_sim_driver();

/// The driver while no launch runs; made where it is not there yet.
struct QuietDriver {
  SimDriver& driver = (initialise_sim_driver(), sim_driver());
  const std::lock_guard<std::mutex> execution{driver.execution};
};
/// Calls change(SimDriver&) while no launch runs. For destructors, in host functions too: a scope
/// left in a list after its end would be used.
void change_at_end(const std::function<void(SimDriver&)>& change) noexcept;

/// The context stack of the calling thread.
std::vector<CUcontext>& context_stack() noexcept;
/// The context behind a handle. Throws Failure INVALID_CONTEXT or CONTEXT_IS_DESTROYED.
std::shared_ptr<Context> live_context(CUcontext handle);
/// The context on top. Throws Failure INVALID_CONTEXT or CONTEXT_IS_DESTROYED.
std::shared_ptr<Context> current_context();
/// The stream behind a handle; null and the special handles mean default streams of the current
/// context. Throws Failure INVALID_HANDLE.
StreamUse use_stream(CUstream stream);
/// A small number for each thread of the process, never 0.
std::uint64_t thread_number() noexcept;
/// With set_sticky_errors(), errors that end a context on a GPU end this one.
void lose(Context& context, CUresult code) noexcept;

/// Puts work into a stream: it runs, waits, or becomes a node of the stream's captured graph; then
/// and when nothing waits the result is null. Throws Failure.
std::shared_ptr<Mark> submit(const StreamUse& use, Work&& work,
                             std::vector<std::shared_ptr<Mark>> after = {});

/// The thread's last finding, for kwTakeReport.
void leave_report(Fault report) noexcept;
void forget_report() noexcept;
bool take_report(Fault& report);

template <auto kBody>
struct Guarded;
template <typename... Args, void (*kBody)(Args...)>
struct Guarded<kBody> {
  static CUresult call(Args... args) noexcept {
    try {
      kBody(args...);
      return CUDA_SUCCESS;
    } catch (Failure& failure) {
      forget_report();
      if (failure.report) leave_report(std::move(*failure.report));
      return failure.code;
    } catch (const std::bad_alloc&) {
      forget_report();
      return CUDA_ERROR_OUT_OF_MEMORY;
    } catch (const std::exception&) {
      forget_report();
      return CUDA_ERROR_UNKNOWN;
    }
  }
};
/// A driver function with the body kBody. Failure is caught and becomes a result code.
template <auto kBody>
inline constexpr auto guarded = Guarded<kBody>::call;

/// The body of each function of the table, by its name there. Throws Failure.
namespace calls {
#define KW_DRIVER(name, symbol, since, need, parameters) void name parameters;
#define KW_DRIVER_EXTENSION(name, parameters) void name parameters;
#include "driver/driver_api.def"
}  // namespace calls

}  // namespace kernwright::sim
