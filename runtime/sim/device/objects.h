// What stands behind the handles of the simulated driver.
#pragma once

#include "base/fault_report.h"
#include "driver/driver_types.h"
#include "sim/device/loader.h"
#include "sim/device/profile.h"
#include "sim/exec/heap.h"
#include "sim/mem/memory.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace kernwright::sim {

class Platform;
struct SimDevice;

/// A primary context, from its first retain to its last release. Ids are never reused.
struct Context {
  Context(SimDevice& its_device, std::uint64_t its_id);

  SimDevice& device;
  const std::uint64_t id;
  std::array<std::atomic<std::size_t>, kLimitCount> limits{};
  Heap heap;            ///< of malloc() in device code
  std::mutex mutex;     ///< guards peers
  std::set<int> peers;  ///< ordinals of the devices whose memory kernels may access
};

struct Stream {
  std::shared_ptr<Context> context;
  std::uint64_t id = 0;
  unsigned flags = 0;
  int priority = 0;
};

struct Event {
  std::shared_ptr<Context> context;
  unsigned flags = 0;
  std::atomic<std::int64_t> nanoseconds{0};  ///< steady clock at the last record; 0 = never
};

struct Function;

/// Its variables go away when nothing runs, so never drop the last reference while holding
/// Platform::execution.
struct Module {
  Module() = default;
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  Platform* platform = nullptr;
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
  KernelResources resources;
  std::atomic<int> max_dynamic_shared{0};
  std::atomic<int> carveout{-1};
};

struct MemoryPool {
  SimDevice* device = nullptr;
  bool is_default = false;
  std::mutex mutex;  ///< guards the rest
  std::uint64_t used = 0, used_high = 0, reserved_high = 0;
  std::uint64_t release_threshold = 0;
  std::array<int, 3> reuse{1, 1, 1};
};

/// What the driver knows about an allocation beyond Memory's own record.
struct AllocationInfo {
  AllocationKind kind = AllocationKind::device;
  std::uint64_t buffer_id = 0;
  std::uint64_t context_id = 0;
  std::uint64_t bytes = 0;
  unsigned flags = 0;                ///< of cuMemHostAlloc or cuMemHostRegister
  bool registered = false;           ///< by cuMemHostRegister
  std::shared_ptr<MemoryPool> pool;  ///< of stream-ordered allocations
};

struct SimDevice {
  SimDevice(int its_ordinal, std::uint64_t memory_bytes)
      : ordinal(its_ordinal), memory(memory_bytes) {}

  const int ordinal;
  Memory memory;
  std::mutex context_mutex;          ///< guards the next two
  std::shared_ptr<Context> primary;  ///< null while nobody retains it
  unsigned retains = 0;
  CUcontext handle = nullptr;  ///< of the primary context, the same for ever
  std::shared_ptr<MemoryPool> default_pool;
  CUmemoryPool default_pool_handle = nullptr;
};

}  // namespace kernwright::sim
