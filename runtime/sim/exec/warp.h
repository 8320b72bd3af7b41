// The run-time state that handlers see: a warp's running split, its block, its worker.
#pragma once

#include "base/fault_report.h"
#include "sim/exec/memory_site.h"
#include "sim/exec/op.h"
#include "sim/mem/memory.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kernwright::sim {

struct Program;
struct Block;
struct Worker;

enum class Stop : std::uint8_t {
  none,
  reschedule,  ///< splits changed (divergence, reconvergence, return): pick the next split
  barrier,     ///< waits at bar.sync / barrier.sync
  warp_sync,   ///< waits at a *.sync instruction for lanes that are elsewhere
  exit,        ///< no live lane left in the split
  yield,       ///< lets other warps run (fairness, nanosleep)
  fault,       ///< Block::fault holds the report
};

/// State of a warp. Handlers use the first part; the scheduler owns the rest (exec/scheduler.h).
struct Warp {
  std::byte* frame = nullptr;       ///< registers of the running split
  std::uint32_t mask = 0;           ///< lanes of the running split
  Stop stop = Stop::none;
  alignas(64) std::array<std::uint32_t, kLanes> lane_mask{};  ///< mask as 0 / ~0 words
  Worker* worker = nullptr;
  Block* block = nullptr;
  const Program* program = nullptr;
  std::uint32_t live = 0;           ///< lanes that have not exited
  std::uint32_t index = 0;          ///< warp number within the block
  std::uint64_t executed = 0;       ///< warp instructions, counted at backward branches
  std::array<std::array<std::uint32_t, kLanes>, 3> tid{};
  struct Schedule;
  Schedule* schedule = nullptr;     ///< splits, frames, waits: private to the scheduler

  template <typename T>
  T* reg(std::uint32_t offset) const noexcept { return reinterpret_cast<T*>(frame + offset); }
  std::uint32_t& pred(std::uint32_t offset) const noexcept {
    return *reinterpret_cast<std::uint32_t*>(frame + offset);
  }

  /// Records a finding of `lane` at `op` (place, block and thread are filled in), sets stop = fault and
  /// returns null, so that a handler can `return warp.fault(...)`.
  const Op* fault(const Op* op, FaultKind kind, int lane, std::uint64_t address, std::uint64_t size,
                  std::string message);
};

/// State of one block in flight.
struct Block {
  std::array<std::uint32_t, 3> ctaid{};
  std::vector<std::byte> shared;             ///< static + dynamic shared memory
  std::uint64_t linear_index = 0;
  FaultReport fault;
};

/// What a launch gives to every block.
struct LaunchContext {
  const Program* program = nullptr;
  std::uint32_t function = 0;                ///< entry, index into Program::functions
  std::array<std::uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1};
  std::uint32_t dynamic_shared_bytes = 0;
  const std::byte* parameters = nullptr;     ///< packed as the PTX .param layout says
  std::uint32_t parameter_bytes = 0;
  Memory* memory = nullptr;
  std::uint64_t instruction_budget = 0;      ///< warp instructions per warp; 0 = none
  void (*print)(void* sink, std::string_view text) = nullptr;  ///< device printf, thread-safe
  void* print_sink = nullptr;
  void* heap = nullptr;                      ///< device malloc (exec/builtins)
};

/// Per host thread: storage that is reused from block to block.
struct Worker {
  const LaunchContext* launch = nullptr;
  std::vector<MemorySite> sites;
  std::byte* local = nullptr;                ///< local memory of all threads of the block in flight
  std::uint32_t local_bytes = 0;             ///< per thread
};

}  // namespace kernwright::sim
