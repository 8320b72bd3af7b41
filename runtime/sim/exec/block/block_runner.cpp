// A block in flight: its warps run for a time slice each until all have exited.
#include "sim/exec/block/block_runner.h"

#include "base/hash.h"
#include "sim/code/program.h"
#include "sim/code/tables.h"
#include "sim/exec/block/barriers.h"
#include "sim/exec/block/block_waits.h"
#include "sim/exec/block/cluster.h"
#include "sim/exec/block/stop_request.h"
#include "sim/exec/warp/scheduler.h"
#include "sim/exec/warp/warpgroup.h"
#include "sim/exec/watcher.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace kernwright::sim {

struct BlockRunner::State {
  LaunchContext launch;
  Worker worker;
  std::span<const std::uint32_t> processors;
  Block block;
  Barriers barriers;
  std::unique_ptr<Watcher> check, observer;  ///< null without one
  std::vector<Warp::Schedule> schedules;
  std::vector<Warp> warps;
  std::vector<std::uint32_t> lanes;  ///< per warp: those that stand for threads
  std::unique_ptr<std::byte, void (*)(void*)> local{nullptr, std::free};
  Cluster alone;  ///< the cluster of a block that shares none
  ClusterMember member;
  Warpgroups warpgroups;

  std::uint32_t rounds = 0;  ///< of all blocks so far
  BlockWaits waits;

  void make_warps();
  void make_local_memory();
  void call_watchers(std::uint64_t shared_bytes);
  Progress give_up();
  bool may_wait_busily() const;
  bool waits_for_ever() const;
  void place(std::uint64_t block_index) noexcept;
};

namespace {

/// Rounds of blocks between two looks at whether the launch is to stop.
constexpr std::uint32_t kRoundsToLook = 16;

/// After so many rounds of a cluster with nothing but reads of shared memory, in loops without any
/// other exit (code/passes.h), they never end. One round would be enough, but under a seed some
/// slices of warps have no such read.
constexpr std::uint32_t kBusyRounds = 64;

/// Waits for an mbarrier run out this often, with no warp able to go on and no phase ending in
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

void BlockRunner::State::call_watchers(std::uint64_t shared_bytes) {
  const WatchedBlocks blocks{launch.function, block.warp_count, shared_bytes,
                             warps.size() * kLanes * std::uint64_t{worker.local_bytes}};
  if (launch.checks != nullptr) check = launch.checks->watch(blocks);
  if (launch.observed != nullptr) observer = launch.observed->watch(blocks);
  worker.check = check.get();
  worker.observer = observer.get();
}

BlockRunner::BlockRunner(const LaunchContext& launch, std::span<const std::uint32_t> processors)
    : state_(std::make_unique<State>()) {
  State& state = *state_;
  state.launch = launch;
  state.worker.launch = &state.launch;
  state.processors = processors;
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
  // Aligned to a cache line, so that a warp's access touches as few lines as possible.
  std::uint64_t reserved = 0, end = shared;
  if (entry.uses_reserved_shared) {
    reserved = (shared / kReservedSharedBytes + 2) * kReservedSharedBytes;
    end = reserved + kReservedSharedBytes;
  }
  state.block.shared.resize(end + 63);
  const auto start = reinterpret_cast<std::uintptr_t>(state.block.shared.data());
  state.call_watchers(shared);
  for (Warp& warp : state.warps) {
    warp.shared = state.block.shared.data() + (64 - start % 64) % 64;
    warp.shared_bytes = shared;
    warp.reserved_shared = reserved;
  }
}

BlockRunner::~BlockRunner() = default;

const Fault& BlockRunner::fault() const noexcept { return state_->block.fault; }

void BlockRunner::start(std::array<std::uint32_t, 3> ctaid) {
  State& state = *state_;
  const auto& grid = state.launch.grid;
  state.block.ctaid = ctaid;
  state.block.linear_index =
      ctaid[0] + std::uint64_t{grid[0]} * (ctaid[1] + std::uint64_t{grid[1]} * ctaid[2]);
  state.place(state.block.linear_index);
  if (state.block.fault.kind != FaultKind::none) state.block.fault = Fault{};
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
  state.block.overspent = false;
  for (std::size_t w = 0; w < state.warps.size(); ++w) {
    Warp& warp = state.warps[w];
    warp.in_cluster = state.member.cluster->members.size() > 1;
    warp.rank_bits = std::uint64_t{state.member.rank} << kRankShift;
    begin_warp(warp, state.lanes[w]);
  }
  state.waits.begin(state.warps.size());
}

/// Blocks next to each other have different multiprocessors, as on a GPU.
void BlockRunner::State::place(std::uint64_t block_index) noexcept {
  const std::uint64_t seed = launch.place_seed, count = processors.size();
  const std::uint64_t number = block_index + (seed == 0 ? 0 : splitmix_at(seed, 0) >> 32U);
  if (seed != 0) worker.first_slot = splitmix_at(seed, 1 + block_index) & 0xffff;
  worker.smid = count == 0 ? number % launch.sm_count : processors[number % count];
}

/// Whether all runnable lanes are in loops that only wait for shared memory.
bool BlockRunner::State::may_wait_busily() const {
  if (!waits.seem_long()) return false;
  const std::vector<bool>& busy = launch.program->tables->busy_waits;
  return std::all_of(warps.begin(), warps.end(), [&](const Warp& warp) {
    const Split* const splits = warp.schedule->splits.data();
    return std::all_of(splits, splits + warp.schedule->count, [&](const Split& split) {
      return split.state != SplitState::ready || busy[split.pc];
    });
  });
}

bool BlockRunner::State::waits_for_ever() const {
  const auto& members = member.cluster->members;
  return std::all_of(members.begin(), members.end(), [](const ClusterMember* other) {
    return other->exited || other->busy_rounds >= kBusyRounds;
  });
}

bool BlockRunner::seems_to_wait() const noexcept { return state_->waits.seem_long(); }

std::uint64_t BlockRunner::waited_instructions() const noexcept {
  return state_->waits.instructions();
}

void BlockRunner::give_up_waiting() noexcept {
  for (Warp& warp : state_->warps) warp.budget = 0;
}

Progress BlockRunner::advance() {
  State& state = *state_;
  bool ran = false, left = false, busy = state.may_wait_busily();
  RoundKind kind = RoundKind::plain;
  if (++state.rounds % kRoundsToLook == 0 && state.launch.stop != nullptr &&
      state.launch.stop->is_due()) {
    return state.give_up();
  }
  if (state.observer != nullptr) state.observer->attach();
  const std::uint32_t* const order = state.check == nullptr ? nullptr : state.check->warp_order();
  for (std::size_t w = 0; w < state.warps.size(); ++w) {
    Warp& warp = state.warps[order == nullptr ? w : order[w]];
    if (warp.schedule->count == 0) continue;
    if (!can_run(warp)) {
      left = true;
      continue;
    }
    ran = true;
    const WarpStatus status = busy ? run_warp(warp, busy) : run_warp(warp);
    if (status == WarpStatus::faulted) return Progress::faulted;
    if (status == WarpStatus::done) {
      kind = RoundKind::work;
      continue;
    }
    left = true;
    const RoundKind its = state.waits.slice_kind(warp, status);
    if (its != RoundKind::plain && kind != RoundKind::work) kind = its;
  }
  ClusterMember& member = state.member;
  // A single block ends in the round of its last warp. In a cluster others may read its shared
  // memory in this round.
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
  state.waits.count(released || !ran ? RoundKind::work : kind, met, state.warps);
  if (is_above_budget(state.launch, state.warps)) {
    state.block.overspent = true;
    give_up_waiting();
  }
  const bool changed = met || released;
  member.busy_rounds = !changed && (busy || !ran) ? member.busy_rounds + 1 : 0;
  if (busy && state.waits_for_ever()) {
    // The effect must show first, in all blocks.
    for (ClusterMember* other : member.cluster->members) other->busy_rounds = 0;
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
  if (expired) return Progress::running;
  report_deadlock(state_->member, *state_->launch.program);
  return Progress::faulted;
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

bool BlockRunner::run(std::array<std::uint32_t, 3> ctaid) {
  start(ctaid);
  Progress progress = Progress::running;
  while (progress == Progress::running) progress = advance();
  return progress == Progress::done;
}

}  // namespace kernwright::sim
