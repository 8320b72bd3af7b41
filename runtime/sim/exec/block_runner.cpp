// A block in flight: its warps take turns until all have exited.
#include "sim/exec/block_runner.h"

#include "base/format.h"
#include "sim/check/block_check.h"
#include "sim/exec/barriers.h"
#include "sim/exec/cluster.h"
#include "sim/exec/scheduler.h"
#include "sim/exec/stop_request.h"
#include "sim/exec/warpgroup.h"
#include "sim/ir/program.h"
#include "sim/ir/tables.h"
#include "sim/observe/observer.h"
#include "sim/ptx/isa.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace kernwright::sim {

namespace {

/// Of a block. In an `idle` one a warp went round in a loop that may wait for other blocks; in a
/// `plain` one warps came to barriers of the block, as they do in such a loop, too.
enum class TurnKind : std::uint8_t { idle, plain, work };

}  // namespace

struct BlockRunner::State {
  LaunchContext launch;
  Worker worker;
  Block block;
  Barriers barriers;
  std::unique_ptr<BlockCheck> check;
  std::unique_ptr<Observer> observer;
  std::vector<Warp::Schedule> schedules;
  std::vector<Warp> warps;
  std::vector<std::uint32_t> lanes;              ///< per warp: those that stand for threads
  std::vector<std::uint64_t> executed_at_yield;  ///< per warp
  std::unique_ptr<std::byte, void (*)(void*)> local{nullptr, std::free};
  Cluster alone;  ///< the cluster of a block that shares none
  ClusterMember member;
  Warpgroups warpgroups;

  std::uint32_t turns = 0;        ///< of all blocks so far
  std::uint32_t idle_turns = 0;   ///< since the last one with work; see seems_to_wait()
  std::uint32_t plain_turns = 0;  ///< in a row without an idle one
  std::uint64_t executed = 0;     ///< by all warps of the block
  std::uint64_t waited = 0;       ///< instructions since the last turn with work

  void make_warps();
  void make_local_memory();
  Progress stuck();
  Progress give_up();
  TurnKind kind_of_turn(const Warp& warp, WarpStatus status);
  void count_turn(TurnKind kind, bool released);
  bool may_poll() const;
  bool polls_for_ever() const;
};

namespace {

/// Where a split waits: one that polls stands anywhere in its loop, which is told by what it reads.
std::uint32_t waiting_op(const Program& program, const Split& split) {
  const Program::Tables& tables = *program.tables;
  const auto reads = [&](std::uint32_t op) {
    const ptx::Instruction* const instruction = tables.instructions[op];
    return instruction != nullptr && (instruction->row->handler == ptx::Handler::mbarrier ||
                                      instruction->row->handler == ptx::Handler::ld);
  };
  if (split.state != SplitState::ready || !tables.polls[split.pc]) return split.pc;
  for (std::uint32_t op = split.pc; op < tables.polls.size() && tables.polls[op]; ++op) {
    if (reads(op)) return op;
  }
  for (std::uint32_t op = split.pc; op != 0 && tables.polls[op]; --op) {
    if (reads(op)) return op;
  }
  return split.pc;
}

/// Who waits there, and for what.
FaultPlace describe_split(const Warp& warp, const Split& split) {
  const char* what = split.state == SplitState::barrier     ? "a barrier"
                     : split.state == SplitState::cluster   ? "the barrier of the cluster"
                     : split.state == SplitState::mbarrier  ? "a phase of an mbarrier"
                     : split.state == SplitState::warpgroup ? "other warps of the warpgroup"
                     : split.state == SplitState::ready     ? "what they poll"
                                                            : "other lanes of the warp";
  FaultPlace there = warp.program->place_of(waiting_op(*warp.program, split));
  const auto& members = warp.block->member->cluster->members;
  if (members.size() > 1) {
    const auto& [x, y, z] = warp.block->ctaid;
    there.what = format("block ({}, {}, {}), ", x, y, z);
  }
  there.what += format("warp {}: lanes {:#010x} wait for {}", warp.index, split.mask, what);
  return there;
}

const char* stuck_text(SplitState state) {
  switch (state) {
    case SplitState::barrier:
      return "threads wait at a barrier for threads that never arrive";
    case SplitState::cluster:
      return "threads wait at the barrier of their cluster for threads that never arrive";
    case SplitState::mbarrier:
      return "threads wait for a phase of an mbarrier that never ends: an arrival is missing, or "
             "the bytes that were expected are not those that were copied";
    case SplitState::warpgroup:
      return "a warp waits for products of wgmma that other warps of its warpgroup never issue";
    case SplitState::ready:
      return "threads poll an mbarrier or a word of shared memory that nobody is left to change: "
             "an arrival, a store or the bytes of a copy are missing";
    default:
      return "lanes wait at a .sync instruction for lanes that never arrive there";
  }
}

/// Turns of blocks between two looks at whether the launch is to stop.
constexpr std::uint32_t kTurnsToLook = 16;

/// A block that did nothing but wait for so many turns seems to wait for others.
constexpr std::uint32_t kIdleTurns = 256;

/// Instructions from one yield to the next in a loop that waits: 16 iterations, in which what is
/// jumped over counts.
constexpr std::uint64_t kIdleInstructions = 32768;

/// Those of a loop that does little but wait.
constexpr std::uint64_t kFewInstructions = 2048;

/// Barriers on the way from one such yield to the next: more than those are no loop that waits.
constexpr std::uint32_t kPlainTurns = 1024;

/// A longer loop, or one with barriers in it, may as well work on shared data with atomics. So it
/// takes more of that until a launch counts as one that does not end.
constexpr std::uint64_t kDoubtfulWeight = 8;

/// After so many turns of all warps of a cluster in which nobody did more than look at shared
/// memory, in loops that nothing else ends (ir/polls.h), they do so for ever. One would do, but
/// under a seed warps have turns in which they do not look.
constexpr std::uint32_t kPollingTurns = 64;

/// Waits for an mbarrier run out this often, with nobody able to go on and no phase ending in
/// between, before they count as endless.
constexpr int kPatience = 64;

}  // namespace

void BlockRunner::State::make_warps() {
  const auto& shape = launch.block;
  const std::uint32_t threads = shape[0] * shape[1] * shape[2];
  const std::uint32_t count = (threads + kLanes - 1) / kLanes;
  schedules = std::vector<Warp::Schedule>(count);
  warps = std::vector<Warp>(count);
  for (std::uint32_t w = 0; w < count; ++w) {
    Warp& warp = warps[w];
    warp.worker = &worker;
    warp.block = &block;
    warp.program = launch.program;
    warp.index = w;
    warp.schedule = &schedules[w];
    if (launch.instruction_budget != 0) warp.budget = launch.instruction_budget;
    std::uint32_t present = 0;
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
      const std::uint32_t thread = w * kLanes + lane;
      warp.tid[0][lane] = thread % shape[0];
      warp.tid[1][lane] = thread / shape[0] % shape[1];
      warp.tid[2][lane] = thread / shape[0] / shape[1];
      if (thread < threads) present |= 1u << lane;
    }
    lanes.push_back(present);
  }
  block.warps = warps.data();
  block.warp_count = count;
  block.barriers = &barriers;
  block.warpgroups = &warpgroups;
}

void BlockRunner::State::make_local_memory() {
  const std::uint64_t bytes = launch.program->functions[launch.function].stack_bytes;
  worker.local_bytes = static_cast<std::uint32_t>(bytes);
  if (bytes == 0) return;
  local.reset(static_cast<std::byte*>(std::calloc(warps.size() * kLanes, bytes)));
  if (local == nullptr) throw std::bad_alloc();
  worker.local = local.get();
  for (Warp& warp : warps) {
    warp.local = worker.local + std::uint64_t{warp.index} * kLanes * bytes;
    warp.local_bytes = bytes;
  }
}

BlockRunner::BlockRunner(const LaunchContext& launch, std::uint32_t sm)
    : state_(std::make_unique<State>()) {
  State& state = *state_;
  state.launch = launch;
  state.worker.launch = &state.launch;
  state.worker.smid = sm;
  state.worker.sites.resize(launch.program->site_count);
  state.make_warps();
  state.member.block = &state.block;
  state.block.member = &state.member;
  join(state.alone, 0);
  state.make_local_memory();
  const FunctionInfo& entry = launch.program->functions[launch.function];
  const std::size_t shared =
      launch.dynamic_shared_bytes == 0
          ? entry.shared_bytes
          : std::size_t{entry.dynamic_shared_offset} + launch.dynamic_shared_bytes;
  // Aligned to a cache line, so that a warp's access touches as few of them as possible.
  std::uint64_t reserved = 0, end = shared;
  if (entry.uses_reserved_shared) {
    reserved = (shared / kReservedSharedBytes + 2) * kReservedSharedBytes;
    end = reserved + kReservedSharedBytes;
  }
  state.block.shared.resize(end + 63);
  const auto start = reinterpret_cast<std::uintptr_t>(state.block.shared.data());
  if (launch.checks != nullptr) {
    const std::uint64_t local =
        state.warps.size() * kLanes * std::uint64_t{state.worker.local_bytes};
    state.check =
        std::make_unique<BlockCheck>(*launch.checks, launch.function,
                                     static_cast<std::uint32_t>(state.warps.size()), shared, local);
    state.worker.check = state.check.get();
  }
  if (launch.observed != nullptr) {
    state.observer = std::make_unique<Observer>(*launch.observed);
    state.worker.observer = state.observer.get();
  }
  for (Warp& warp : state.warps) {
    warp.shared = state.block.shared.data() + (64 - start % 64) % 64;
    warp.shared_bytes = shared;
    warp.reserved_shared = reserved;
  }
}

BlockRunner::~BlockRunner() = default;

const FaultReport& BlockRunner::fault() const noexcept { return state_->block.fault; }

void BlockRunner::start(std::array<std::uint32_t, 3> ctaid) {
  State& state = *state_;
  const auto& grid = state.launch.grid;
  state.block.ctaid = ctaid;
  state.block.linear_index =
      ctaid[0] + std::uint64_t{grid[0]} * (ctaid[1] + std::uint64_t{grid[1]} * ctaid[2]);
  if (state.block.fault.kind != FaultKind::none) state.block.fault = FaultReport{};
  std::memset(state.block.shared.data(), kSharedPoison, state.block.shared.size());
  const Warp& any = state.warps.front();
  if (any.reserved_shared != 0)
    std::memset(any.shared + any.reserved_shared, 0, kReservedSharedBytes);
  state.barriers.reset(state.block.warp_count);
  state.member.reset(state.block.warp_count);
  state.warpgroups.reset(state.block.warp_count);
  state.member.copies.reset(state.launch.copy_seed, state.block.warp_count * kLanes);
  state.member.cluster->patient_phases = ~std::uint64_t{0};
  if (state.check != nullptr) state.check->begin(state.block);
  for (std::size_t w = 0; w < state.warps.size(); ++w) begin_warp(state.warps[w], state.lanes[w]);
  state.executed_at_yield.assign(state.warps.size(), 0);
  state.idle_turns = state.plain_turns = 0;
  state.executed = state.waited = 0;
}

TurnKind BlockRunner::State::kind_of_turn(const Warp& warp, WarpStatus status) {
  if (status == WarpStatus::yielded) {
    const std::uint64_t before = std::exchange(executed_at_yield[warp.index], warp.executed);
    const bool is_idle = warp.may_wait && warp.executed - before <= kIdleInstructions;
    return is_idle ? TurnKind::idle : TurnKind::work;
  }
  const auto* const splits = warp.schedule->splits.data();
  const bool at_barriers =
      std::all_of(splits, splits + warp.schedule->count,
                  [](const Split& split) { return split.state == SplitState::barrier; });
  return status == WarpStatus::waiting && at_barriers ? TurnKind::plain : TurnKind::work;
}

void BlockRunner::State::count_turn(TurnKind kind, bool released) {
  const std::uint64_t before = std::exchange(executed, 0);
  for (const Warp& warp : warps) executed += warp.executed;
  plain_turns = kind == TurnKind::idle ? 0 : plain_turns + 1;
  const std::uint64_t ran = executed - before;
  if (kind == TurnKind::work || ran > kIdleInstructions * warps.size() ||
      plain_turns > kPlainTurns) {
    idle_turns = 0;
    waited = 0;
    return;
  }
  if (kind == TurnKind::idle) ++idle_turns;
  const bool doubtful =
      released || kind == TurnKind::plain || ran > kFewInstructions * warps.size();
  waited += doubtful ? ran / kDoubtfulWeight : ran;
}

/// Whether all that can run stands in loops that only wait for shared memory.
bool BlockRunner::State::may_poll() const {
  if (idle_turns < kIdleTurns) return false;
  const std::vector<bool>& polls = launch.program->tables->polls;
  return std::all_of(warps.begin(), warps.end(), [&](const Warp& warp) {
    const Split* const splits = warp.schedule->splits.data();
    return std::all_of(splits, splits + warp.schedule->count, [&](const Split& split) {
      return split.state != SplitState::ready || polls[split.pc];
    });
  });
}

bool BlockRunner::State::polls_for_ever() const {
  const auto& members = member.cluster->members;
  return std::all_of(members.begin(), members.end(), [](const ClusterMember* other) {
    return other->exited || other->polling_turns >= kPollingTurns;
  });
}

bool BlockRunner::seems_to_wait() const noexcept { return state_->idle_turns >= kIdleTurns; }

std::uint64_t BlockRunner::waited_instructions() const noexcept { return state_->waited; }

void BlockRunner::give_up_waiting() noexcept {
  for (Warp& warp : state_->warps) warp.budget = 0;
}

Progress BlockRunner::advance() {
  State& state = *state_;
  bool ran = false, left = false, polls = state.may_poll();
  TurnKind kind = TurnKind::plain;
  if (++state.turns % kTurnsToLook == 0 && state.launch.stop != nullptr &&
      state.launch.stop->is_due()) {
    return state.give_up();
  }
  if (state.observer != nullptr) state.observer->attach();
  const std::uint32_t* const turns = state.check == nullptr ? nullptr : state.check->turns();
  for (std::size_t w = 0; w < state.warps.size(); ++w) {
    Warp& warp = state.warps[turns == nullptr ? w : turns[w]];
    if (warp.schedule->count == 0) continue;
    if (!can_run(warp)) {
      left = true;
      continue;
    }
    ran = true;
    const WarpStatus status = polls ? run_warp(warp, polls) : run_warp(warp);
    if (status == WarpStatus::faulted) return Progress::faulted;
    if (status == WarpStatus::done) {
      kind = TurnKind::work;
      continue;
    }
    left = true;
    const TurnKind its = state.kind_of_turn(warp, status);
    if (its != TurnKind::plain && kind != TurnKind::work) kind = its;
  }
  ClusterMember& member = state.member;
  // A block alone ends in the turn in which its last warp does. In a cluster others may look at its
  // shared memory in that turn.
  left |= ran && member.cluster->members.size() > 1;
  if (!left) {
    if (!member.exited && !member.copies.finish()) return Progress::faulted;
    if (!member.exited && state.check != nullptr) state.check->end();
    member.exited = true;
    return Progress::done;
  }
  const bool met = state.barriers.release(state.block);
  bool released = member.cluster->release();
  released |= member.wake();
  released |= state.warpgroups.release(state.block);
  state.count_turn(released || !ran ? TurnKind::work : kind, met);
  const bool changed = met || released;
  member.polling_turns = !changed && (polls || !ran) ? member.polling_turns + 1 : 0;
  if (polls && state.polls_for_ever()) {
    // What that lets go must show first, in all blocks.
    for (ClusterMember* other : member.cluster->members) other->polling_turns = 0;
    return relieve();
  }
  if (ran || changed) return Progress::running;
  return member.cluster->members.size() > 1 ? Progress::waiting : relieve();
}

void BlockRunner::join(Cluster& cluster, std::uint32_t rank) {
  if (cluster.members.size() <= rank) cluster.members.resize(std::size_t{rank} + 1);
  cluster.members[rank] = &state_->member;
  state_->member.cluster = &cluster;
  state_->member.rank = rank;
}

Progress BlockRunner::relieve() {
  Cluster& cluster = *state_->member.cluster;
  bool ok = true;
  for (ClusterMember* member : cluster.members) {
    if (member->copies.run_one(ok)) return ok ? Progress::running : Progress::faulted;
  }
  if (std::exchange(cluster.patient_phases, cluster.phases) != cluster.phases)
    cluster.patience = kPatience;
  bool expired = false;
  if (cluster.patience-- > 0) {
    for (ClusterMember* member : cluster.members) expired |= member->expire();
  }
  return expired ? Progress::running : state_->stuck();
}

/// Ends the block where it is, since the launch is to stop.
Progress BlockRunner::State::give_up() {
  for (Warp& warp : warps) {
    if (warp.schedule->count == 0) continue;
    const Split& split = warp.schedule->splits[0];
    warp.set_mask(split.mask);
    warp.code = launch.program->full.data();
    warp.fault(warp.code + split.pc, launch.stop->reason(), std::countr_zero(split.mask), 0, 0,
               launch.stop->message());
    return Progress::faulted;
  }
  return Progress::running;  // it has ended: the next one will see to it
}

/// Nobody can run and no barrier is complete: a finding.
Progress BlockRunner::State::stuck() {
  std::vector<FaultPlace> places;
  const Split* first = nullptr;
  Warp* holder = nullptr;
  // The other blocks of a cluster, too: what is missing may be theirs.
  for (const ClusterMember* other : member.cluster->members) {
    if (other->exited) continue;
    for (std::uint32_t w = 0; w < other->block->warp_count; ++w) {
      Warp& warp = other->block->warps[w];
      for (std::uint32_t s = 0; s < warp.schedule->count; ++s) {
        const Split& split = warp.schedule->splits[s];
        places.push_back(describe_split(warp, split));
        if (other != &member) continue;
        // Lanes that miss others of their warp come first, but for those that poll: others wait
        // elsewhere because of them.
        const auto rank = [](const Split& one) {
          return one.state == SplitState::ready ? 2 : one.state == SplitState::sync ? 1 : 0;
        };
        if (first != nullptr && rank(split) <= rank(*first)) continue;
        first = &split;
        holder = &warp;
      }
    }
  }
  holder->set_mask(first->mask);
  holder->code = launch.program->full.data();
  holder->fault(holder->code + waiting_op(*launch.program, *first), FaultKind::sync,
                std::countr_zero(first->mask), 0, 0, stuck_text(first->state));
  block.fault.places = std::move(places);
  return Progress::faulted;
}

bool BlockRunner::run(std::array<std::uint32_t, 3> ctaid) {
  start(ctaid);
  Progress progress = Progress::running;
  while (progress == Progress::running) progress = advance();
  return progress == Progress::done;
}

}  // namespace kernwright::sim
