// The run-time state for handlers: a warp's running split, its block, its worker.
#pragma once

#include "base/fault.h"
#include "sim/code/op.h"
#include "sim/exec/warp/memory_site.h"
#include "sim/mem/memory.h"
#include "sim/ptx/ast.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernwright::sim {

class AccessLog;
class LaunchWatcher;
class StopRequest;
class TextureTable;
class Watcher;
struct ClusterMember;
struct Program;
struct Block;
struct Worker;
struct Barriers;
class Warpgroups;

inline constexpr std::uint32_t kAllLanes = ~std::uint32_t{0};

/// The system's part before or after each block's own shared memory: as on sm_80 and newer.
inline constexpr std::uint32_t kReservedSharedBytes = 1024;

enum class Stop : std::uint8_t {
  none,
  reschedule,  ///< splits changed (divergence, reconvergence, return): pick the next split
  barrier,     ///< waits at bar.sync / barrier.sync
  warp_sync,   ///< waits at a *.sync instruction for lanes that are elsewhere
  exit,        ///< no live lane left in the split
  yield,       ///< lets other splits and warps run (fairness, nanosleep)
  fault,       ///< Block::fault holds the report
};

/// State of a warp. Handlers use the first part; the scheduler owns the rest
/// (exec/warp/scheduler.h).
struct Warp {
  std::byte* frame = nullptr;  ///< registers of the running split
  const Op* code = nullptr;    ///< array that runs: Program::full or Program::masked
  std::uint32_t mask = 0;      ///< lanes of the running split
  Stop stop = Stop::none;
  std::uint32_t pending = ~0u;  ///< op index at which a waiting split of the same depth stands
  std::int32_t window = 0;      ///< what is left of the fairness window
  std::uint64_t executed = 0;   ///< warp instructions, counted at backward branches
  std::uint64_t charged = 0;    ///< by charge(), which lowers the budget by as much
  std::uint64_t budget = ~std::uint64_t{0};                   ///< limit of `executed`
  alignas(64) std::array<std::uint32_t, kLanes> lane_mask{};  ///< mask as 0 / ~0 words
  std::byte* shared = nullptr;                                ///< the block's shared memory
  std::uint64_t shared_bytes = 0;
  /// What addresses of the block's shared memory have above the offset: its rank in the cluster.
  std::uint64_t rank_bits = 0;
  std::byte* local = nullptr;     ///< local memory of lane 0; lane i is i * local_bytes further on
  std::uint64_t local_bytes = 0;  ///< per thread
  Worker* worker = nullptr;
  Block* block = nullptr;
  const Program* program = nullptr;
  /// Begin of the system's part of shared memory, for %reserved_smem_offset_*; 0 = none. It lies
  /// beyond shared_bytes, with an inaccessible gap between.
  std::uint64_t reserved_shared = 0;
  std::uint32_t met_elsewhere = 0;  ///< lanes that met those of the running split at another op
  std::uint32_t live = 0;   ///< lanes that have not exited (lanes past the block's end never live)
  std::uint32_t index = 0;  ///< warp number within the block
  bool in_cluster = false;  ///< of several blocks
  bool may_wait = false;    ///< it yielded in a loop that may wait for other threads
  alignas(64) std::array<std::array<std::uint32_t, kLanes>, 3> tid{};
  struct Schedule;
  Schedule* schedule = nullptr;  ///< splits, frames, waits: private to the scheduler

  template <typename T>
  T* reg(std::uint32_t offset) const noexcept {
    return reinterpret_cast<T*>(frame + offset);
  }
  std::uint32_t& pred(std::uint32_t offset) const noexcept {
    return *reinterpret_cast<std::uint32_t*>(frame + offset);
  }
  /// Number of a lane's thread within the block.
  std::uint32_t thread(int lane) const noexcept {
    return index * std::uint32_t{kLanes} + static_cast<std::uint32_t>(lane);
  }
  /// Position of `op` in Program::full, masked and places.
  std::uint32_t op_index(const Op* op) const noexcept {
    return static_cast<std::uint32_t>(op - code);
  }

  /// Records a finding of `lane` at `op` (place, block and thread are filled in), sets stop = fault
  /// and returns null, so that a handler can `return warp.fault(...)`. Lane -1: the whole warp.
  const Op* fault(const Op* op, FaultKind kind, int lane, std::uint64_t address, std::uint64_t size,
                  std::string message);
  /// The source line of an op of the running split; in functions without lines (those of the
  /// compiler in debug builds) the line of the call into there.
  ptx::SourceLine get_source(const Op* op, int lane) const;

  /// For instructions with a member mask (shfl.sync, vote.sync, match.sync, redux.sync,
  /// bar.warp.sync, mma.sync with a full mask, ...): first thing of the handler,
  ///   if (!warp.converge(op, members)) return nullptr;
  /// `members` holds 32 masks, one for each lane (cooperative groups give each tile its own). True
  /// when every active lane finds all live lanes that it names (itself always counts) among the
  /// active ones. Otherwise the lanes that miss somebody wait here until the others arrive at the
  /// same op; when they have, the op is executed again with all of them. A handler that got true
  /// uses lanes of `mask` only, further restricted to its own members where the instruction's
  /// result depends on them.
  bool converge(const Op* op, const std::uint32_t* members);
  /// bar.warp.sync with the masks in Op::a. Lanes may come from several places of the program, as
  /// long as their masks are the same; those of one mask go on together. Returns the next op, or
  /// null where the split has to stop.
  const Op* meet_anywhere(const Op* op);

  /// Lets other splits and warps run first, then goes on at op + 1. Returns null: `return
  /// warp.yield(op)`.
  const Op* yield(const Op* op);

  /// Value of a special register common to all lanes of the warp.
  std::uint64_t uniform_special(ptx::SpecialRegister which) const;

  // Control flow, called by ops/control.cpp; each sets `stop` where it returns null.

  /// Lanes of `taken` (a proper part of mask) go to op + op->target, the others to op + 1.
  const Op* diverge(const Op* op, std::uint32_t taken);
  /// Lanes go to different ops, op + target[lane].
  const Op* scatter(const Op* op, const std::int32_t* target);
  /// For ops as long as so many instructions of some 4 ns: a loop of them does not run for hours
  /// until the budget is used up. Order of magnitude only. Waiting loops are still told by
  /// `executed`.
  void charge(std::uint64_t instructions) noexcept {
    charged += instructions;
    budget -= std::min(budget, instructions);
  }
  std::uint64_t spent() const noexcept { return executed + charged; }
  /// The budget is used up or the fairness window is over; `next` is where the split goes on.
  const Op* slow_back_edge(const Op* op, const Op* next);
  /// In masked code, at a block's first op when a waiting split stands at or before it.
  const Op* meet(const Op* op);
  const Op* call(const Op* op);
  const Op* call_indirect(const Op* op);
  const Op* ret(const Op* op);
  const Op* exit(const Op* op);
  /// Narrows the running split to `lanes`, a part of its mask, in masked code (lane_mask follows).
  void set_mask(std::uint32_t lanes) noexcept;

  /// bar / barrier: arrives with the active lanes. `id` and `threads` per lane (0 threads = all of
  /// the block). `wait` is false for arrive. For .red, `votes` are the lanes with a true predicate.
  struct Arrival {
    const std::uint32_t* id = nullptr;
    const std::uint32_t* threads = nullptr;  ///< null: all
    bool wait = true;
    bool reduce = false;
    std::uint32_t votes = 0;
  };
  const Op* barrier(const Op* op, const Arrival& arrival);
};

/// State of one block in flight.
struct Block {
  std::array<std::uint32_t, 3> ctaid{};
  Warp* warps = nullptr;
  std::uint32_t warp_count = 0;
  Barriers* barriers = nullptr;      ///< exec/block/barriers.h
  std::vector<std::byte> shared;     ///< static + dynamic shared memory
  ClusterMember* member = nullptr;   ///< exec/block/cluster.h
  Warpgroups* warpgroups = nullptr;  ///< exec/warp/warpgroup.h
  std::uint64_t linear_index = 0;
  bool overspent = false;  ///< its warps together ran more than they may
  Fault fault;
};

/// The common data of a launch's blocks.
struct LaunchContext {
  const Program* program = nullptr;
  std::uint32_t function = 0;  ///< entry, index into Program::functions
  std::array<std::uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1};
  std::array<std::uint32_t, 3> cluster{0, 0, 0};  ///< blocks; zeros: launched without clusters
  std::uint64_t copy_seed =
      0;  ///< asynchronous copies run late (exec/copy/bulk_copies.h); 0 = at once
  std::uint32_t dynamic_shared_bytes = 0;
  const std::byte* parameters = nullptr;  ///< packed as the PTX .param layout says
  std::uint32_t parameter_bytes = 0;
  Memory* memory = nullptr;
  std::uint64_t instruction_budget = 0;  ///< warp instructions per warp; 0 = none
  void (*print)(void* sink, std::string_view text) = nullptr;  ///< device printf, thread-safe
  void* print_sink = nullptr;
  void* heap = nullptr;         ///< device malloc (exec/builtins)
  std::uint64_t grid_id = 0;    ///< %gridid
  std::uint32_t sm_count = 1;   ///< %nsmid
  std::uint64_t residents = 1;  ///< blocks that the device holds at a time
  /// For a cooperative launch: %envreg1 (high half) and %envreg2; 0 in any other.
  std::uint64_t grid_workspace = 0;
  AccessLog* accesses = nullptr;           ///< takes every access to global memory; null = no log
  LaunchWatcher* checks = nullptr;         ///< null = no check beyond `memory`
  LaunchWatcher* observed = nullptr;       ///< traces or counts; null = no observer
  StopRequest* stop = nullptr;             ///< exec/block/stop_request.h; null = runs to its end
  const TextureTable* textures = nullptr;  ///< exec/texture.h; null = there are none
  /// Registers begin with random bits of this seed where the code may read them before it writes
  /// them; 0: with zeros.
  std::uint64_t register_seed = 0;
  std::uint32_t warp_slots = 64;  ///< %nwarpid
  /// Blocks get multiprocessors and warp slots drawn by this seed; 0: the same in each launch.
  std::uint64_t place_seed = 0;
};

/// The budget of all warps of a block, in budgets of one warp: they take turns on one thread.
inline constexpr std::uint64_t kBudgetsPerBlock = 2;

/// Whether the block of these warps must end.
inline bool is_above_budget(const LaunchContext& launch, std::span<const Warp> warps) noexcept {
  const std::uint64_t budget = launch.instruction_budget;
  std::uint64_t spent = 0;
  for (const Warp& warp : warps) spent += warp.spent();
  return budget != 0 && spent / kBudgetsPerBlock > budget;
}

/// Per host thread: storage reused from block to block.
struct Worker {
  const LaunchContext* launch = nullptr;
  std::vector<MemorySite> sites;
  std::byte* local = nullptr;     ///< local memory of all threads of the block in flight
  std::uint32_t local_bytes = 0;  ///< per thread
  std::uint32_t smid = 0;         ///< %smid of the blocks that run here
  std::uint32_t first_slot = 0;   ///< %warpid of the block's first warp
  Watcher* check = nullptr;       ///< of LaunchContext::checks
  Watcher* observer = nullptr;    ///< of LaunchContext::observed
};

}  // namespace kernwright::sim
