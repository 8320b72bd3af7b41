// A program whose memory and synchronisation ops go through the checks first.
#pragma once

#include "sim/check/flow/shuffle_flow.h"
#include "sim/check/flow/used_values.h"
#include "sim/check/order/clock.h"
#include "sim/code/op.h"
#include "sim/code/program.h"
#include "sim/ptx/types.h"

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace kernwright::sim {

/// How an op takes part in the checks.
enum class CheckKind : std::uint8_t {
  none,
  load,
  store,
  atomic,      ///< atom, red
  tile_load,   ///< ldmatrix: lanes name rows of 16 bytes in shared memory
  tile_store,  ///< stmatrix
  copy,        ///< cp.async
  copy_group,  ///< cp.async.commit_group
  copy_wait,   ///< cp.async.wait_group, wait_all
  bulk,        ///< cp.async.bulk and its relatives, st.async, red.async
  bulk_group,
  bulk_wait,
  proxy_fence,   ///< fence.proxy.async
  map_fence,     ///< fence.proxy.tensormap::generic.acquire
  self_checked,  ///< tensormap, textures and surfaces, which tell the checks themselves
  wgmma,
  wgmma_group,
  wgmma_wait,
  fence,
  meeting,  ///< a *.sync instruction with a member mask in register `operand`
  full_meeting,
  shuffle,  ///< a meeting whose mask is in Op::e
  mbarrier,
  cluster_arrive,  ///< barrier.cluster.arrive
  parameters,      ///< the copy of a parameter block to local memory
  use,             ///< no more than CheckedOp::uses and flows
};

/// The effect of an mbarrier instruction on the order of things. Arrivals release, waits acquire
/// (CheckedOp::release, acquire).
enum class BarrierRole : std::uint8_t {
  none,
  begin,  ///< init, inval
  arrive,
  wait,
  track,  ///< cp.async.mbarrier.arrive
};

/// An op of a checked program. Parallel to Program::full.
struct CheckedOp {
  OpFn full = nullptr, masked = nullptr;  ///< what the op really does
  CheckKind kind = CheckKind::none;
  bool strong = false, is_volatile = false, acquire = false, release = false;
  Reach reach = Reach::device;   ///< of strong operations and fences
  std::uint8_t bytes = 0;        ///< per lane
  std::uint8_t element = 0;      ///< of a vector; `bytes` where there is none
  std::uint32_t used = 0;        ///< of a load: a bit for each byte that counts; 0 = all
  std::uint32_t wanted = ~0u;    ///< of a load: the bytes that somebody uses, sooner or later
  std::uint32_t speculated = 0;  ///< of a load: LoadedBytes::speculated
  bool takes = false;            ///< uses what loads with such bytes read
  bool waits = false;            ///< has an entry in CheckedProgram::loads
  bool uses = false;             ///< has an entry in CheckedProgram::uses
  bool flows = false;            ///< has an entry in CheckedProgram::flow
  std::uint8_t value_width = 0;  ///< store: bytes per lane of the registers with the values
  std::uint8_t operand = 0;      ///< meeting: which source holds the members (0 = Op::a)
  ptx::ShflMode shuffle = ptx::ShflMode::none;
  BarrierRole role = BarrierRole::none;  ///< of mbarrier
  bool waits_for_all = false;            ///< copy_wait without a number
  bool reads_only = false;               ///< bulk_wait: for the sources
  std::uint8_t tiles = 0;                ///< of tile_load, tile_store; wgmma: columns / 8
  bool swaps = false;                    ///< atom.cas: the plain read of its first guess is no race
  bool observes = false;   ///< atom: its result comes from the atomic operations before it
  bool fixed = false;      ///< shared memory through a FixedPlan (code/fast_handlers.h)
  bool guarded = false;    ///< behind a guard, where nothing may park
  std::uint16_t site = 0;  ///< 1 .. kMostSites
};

/// Immutable; shared by all launches of the module. Shares `tables` with its original program where
/// possible, and keeps the module alive.
struct CheckedProgram {
  Program program;
  std::vector<CheckedOp> ops;
  std::vector<std::uint32_t> site_ops;  ///< by site: index of the op; [0] is unused
  /// By op: the loaded bytes that must be written, and when. Without an entry: all, at once.
  std::unordered_map<std::uint32_t, LoadedBytes> loads;
  /// By op: its uses of loads; ValueUse::load is the index of an op here.
  std::unordered_map<std::uint32_t, std::vector<ValueUse>> uses;
  /// By op, and so are the sources: the ops that pass on values of shuffles.
  std::unordered_map<std::uint32_t, FlowStep> flow;
  /// By function: some instruction may order accesses of some warps but not of others. The first
  /// field is for all functions reachable from kernels.
  bool calls_order_parts = false;
  std::vector<bool> orders_parts;
  /// Whether the kernel may reach such an instruction: then each reader has its own entry.
  bool kernel_orders_parts(std::uint32_t kernel) const {
    return calls_order_parts || orders_parts[kernel];
  }
  bool has_volatile = false;  ///< some access is volatile
  /// Blocks of a cluster may touch each other's shared memory.
  bool spans_cluster = false;
  /// The reaches with some fence or atomic operation; the device always counts.
  std::array<bool, kReaches> reaches{false, false, true};
};

/// The instruction's part in the checks; without the fields that depend on its position.
CheckedOp classify(const ptx::Instruction& instruction);

std::unique_ptr<CheckedProgram> make_checked(const Program& program);

/// The op in front of everything checked: full-warp and masked handler for the best instruction set
/// of this CPU. Full warps have others: for loads with CheckedOp::fixed, for global memory, and for
/// ops of Tables::fused (their own handler is CheckedOp::full).
struct CheckedHandlers {
  OpFn full = nullptr, masked = nullptr, fixed_load = nullptr;
  OpFn global_load = nullptr, global_store = nullptr;
  OpFn indexed_load = nullptr, indexed_store = nullptr;
};
CheckedHandlers checked_handlers();

}  // namespace kernwright::sim
