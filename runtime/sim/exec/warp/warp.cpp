// The functions of a warp for handlers: divergence, waiting, calls, returns, findings.
#include "sim/exec/warp/warp.h"

#include "base/format.h"
#include "sim/code/program.h"
#include "sim/code/tables.h"
#include "sim/exec/block/cluster.h"
#include "sim/exec/warp/scheduler.h"

#include <algorithm>
#include <bit>
#include <chrono>

namespace kernwright::sim {
namespace {

using ptx::SpecialRegister;

std::uint64_t nanoseconds(auto since_epoch) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(since_epoch).count());
}

/// Clocks count nanoseconds. Other registers read as zero.
std::uint64_t time_special(SpecialRegister which) {
  using enum SpecialRegister;
  switch (which) {
    case clock:
    case clock64: return nanoseconds(std::chrono::steady_clock::now().time_since_epoch());
    case clock_hi: return nanoseconds(std::chrono::steady_clock::now().time_since_epoch()) >> 32;
    case globaltimer:
    case globaltimer_lo: return nanoseconds(std::chrono::system_clock::now().time_since_epoch());
    case globaltimer_hi:
      return nanoseconds(std::chrono::system_clock::now().time_since_epoch()) >> 32;
    default: return 0;
  }
}

}  // namespace

ptx::SourceLine Warp::get_source(const Op* op, int lane) const {
  const ptx::SourceLine direct = program->places[op_index(op)].source;
  const Split& split = schedule->current();
  const std::byte* called = split.frame;
  for (std::uint32_t depth = split.depth; direct.line == 0 && depth != 0;) {
    const std::uint32_t behind =
        reinterpret_cast<const std::uint32_t*>(called + kReturnOffset)[lane];
    if (behind == 0 || behind > program->places.size()) break;  // the lane is elsewhere
    const ptx::SourceLine source = program->places[behind - 1].source;
    if (source.line != 0) return source;
    called = schedule->frame_at(*this, --depth, program->tables->function_at(behind - 1));
  }
  return direct;
}

const Op* Warp::fault(const Op* op, FaultKind kind, int lane, std::uint64_t address,
                      std::uint64_t size, std::string message) {
  const Place& place = program->places[op_index(op)];
  Fault& report = block->fault;
  report = Fault{};
  report.kind = kind;
  report.message = std::move(message);
  report.kernel = program->functions[worker->launch->function].name;
  const auto l = static_cast<std::size_t>(lane >= 0 ? lane : std::countr_zero(mask | 1u << 31));
  const ptx::SourceLine source = get_source(op, static_cast<int>(l));
  const auto file = static_cast<std::size_t>(source.file);
  if (file < program->module->files.size()) report.file = program->module->files[file];
  report.line = source.line;
  report.ptx_line = place.ptx_line;
  report.opcode = std::string(place.opcode);
  report.block = {block->ctaid[0], block->ctaid[1], block->ctaid[2]};
  report.thread = {tid[0][l], tid[1][l], tid[2][l]};
  report.address = address;
  report.access_size = size;
  stop = Stop::fault;
  return nullptr;
}

const Op* Warp::yield(const Op* op) {
  Split& split = schedule->current();
  split.pc = op_index(op) + 1;
  split.window = kFairnessWindow;
  split.deferred = true;
  stop = Stop::yield;
  may_wait = true;
  return nullptr;
}

const Op* Warp::diverge(const Op* op, std::uint32_t taken) {
  const std::uint32_t here = op_index(op);
  executed += static_cast<std::uint64_t>(op->imm);
  window -= static_cast<std::int32_t>(op->flags);
  if (executed > budget) return slow_back_edge(op, op + 1);
  Split& jumped = schedule->fork(
      *this, taken, static_cast<std::uint32_t>(static_cast<std::int32_t>(here) + op->target));
  if (window <= 0) {
    jumped.window = kFairnessWindow;
    jumped.deferred = true;
  }
  Split& split = schedule->current();
  split.mask = mask & ~taken;
  split.pc = here + 1;
  split.window = window > 0 ? window : kFairnessWindow;
  stop = Stop::reschedule;
  return nullptr;
}

const Op* Warp::scatter(const Op* op, const std::int32_t* target) {
  const auto here = static_cast<std::int32_t>(op_index(op));
  executed += static_cast<std::uint64_t>(op->imm);
  window -= static_cast<std::int32_t>(op->flags);
  if (executed > budget) return slow_back_edge(op, op + 1);
  std::uint32_t rest = mask;
  bool first = true;
  while (rest != 0) {
    const std::int32_t to = target[std::countr_zero(rest)];
    std::uint32_t group = 0;
    for (std::uint32_t m = rest; m != 0; m &= m - 1) {
      const int lane = std::countr_zero(m);
      if (target[lane] == to) group |= 1u << lane;
    }
    rest &= ~group;
    Split& split = first ? schedule->current() : schedule->fork(*this, group, 0);
    split.mask = group;
    split.pc = static_cast<std::uint32_t>(here + to);
    split.window = window > 0 ? window : kFairnessWindow;
    split.deferred = window <= 0 && to <= 0;
    first = false;
  }
  stop = Stop::reschedule;
  return nullptr;
}

const Op* Warp::slow_back_edge(const Op* op, const Op* next) {
  if (executed > budget) {
    const LaunchContext& launch = *worker->launch;
    const bool alone = launch.grid_workspace != 0 ||
                       std::uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2] == 1;
    return fault(op, FaultKind::timeout, -1, 0, 0,
                 format("{} ran more than {} instructions: the kernel does not end, {}or needs "
                        "a larger budget (KERNWRIGHT_SIM_BUDGET)",
                        block->overspent ? "the warps of a block" : "a warp",
                        launch.instruction_budget * (block->overspent ? kBudgetsPerBlock : 1),
                        alone ? ""
                              : "waits for blocks that have not begun (those of a cooperative "
                                "launch run side by side), "));
  }
  Split& split = schedule->current();
  split.pc = op_index(next);
  split.window = kFairnessWindow;
  split.deferred = true;
  stop = Stop::yield;
  may_wait = op->flags > kPlainLoopCost;
  return nullptr;
}

const Op* Warp::meet(const Op* op) {
  Split& split = schedule->current();
  split.pc = op_index(op);
  split.window = window;
  stop = Stop::reschedule;
  return nullptr;
}

const Op* Warp::exit(const Op*) {
  live &= ~mask;
  schedule->remove(schedule->running);
  // Whoever waits for lanes of this warp looks again.
  for (std::uint32_t i = 0; i < schedule->count; ++i) {
    if (schedule->splits[i].state == SplitState::sync) {
      schedule->splits[i].state = SplitState::ready;
    }
  }
  stop = Stop::exit;
  return nullptr;
}

std::uint64_t Warp::uniform_special(SpecialRegister which) const {
  using enum SpecialRegister;
  const LaunchContext& launch = *worker->launch;
  const FunctionInfo& entry = program->functions[launch.function];
  const auto within = [&](SpecialRegister first) {  // one of .x .y .z
    return which >= first && static_cast<int>(which) - static_cast<int>(first) < 3;
  };
  const auto axis = [&](const std::array<std::uint32_t, 3>& values, SpecialRegister first) {
    return std::uint64_t{values[static_cast<std::size_t>(which) - static_cast<std::size_t>(first)]};
  };
  if (within(ntid_x)) return axis(launch.block, ntid_x);
  if (within(ctaid_x)) return axis(block->ctaid, ctaid_x);
  if (within(nctaid_x)) return axis(launch.grid, nctaid_x);
  // Without clusters every block is a cluster of its own.
  std::array<std::uint32_t, 3> shape{}, cluster{}, inside{}, clusters{};
  for (std::size_t i = 0; i < 3; ++i) {
    shape[i] = std::max(launch.cluster[i], 1u);
    cluster[i] = block->ctaid[i] / shape[i];
    inside[i] = block->ctaid[i] % shape[i];
    clusters[i] = launch.grid[i] / shape[i];
  }
  if (within(clusterid_x)) return axis(cluster, clusterid_x);
  if (within(nclusterid_x)) return axis(clusters, nclusterid_x);
  if (within(cluster_ctaid_x)) return axis(inside, cluster_ctaid_x);
  if (within(cluster_nctaid_x)) return axis(shape, cluster_nctaid_x);
  switch (which) {
    case cluster_ctarank: return block->member->rank;
    case cluster_nctarank: return block->member->cluster->members.size();
    case is_explicit_cluster: return launch.cluster[0] != 0 ? 1 : 0;
    case warpid: return (worker->first_slot + index) % launch.warp_slots;
    case nwarpid: return launch.warp_slots;
    case smid: return worker->smid % launch.sm_count;
    case nsmid: return launch.sm_count;
    case gridid: return launch.grid_id;
    case envreg1: return launch.grid_workspace >> 32;
    case envreg2: return launch.grid_workspace & 0xffffffff;
    case reserved_smem_offset_begin:
    case reserved_smem_offset_0: return reserved_shared;
    case reserved_smem_offset_1: return reserved_shared + kReservedSharedBytes / 2;
    case reserved_smem_offset_end: return reserved_shared + kReservedSharedBytes;
    case reserved_smem_offset_cap: return kReservedSharedBytes;
    case total_smem_size:
    case aggr_smem_size:
      return entry.dynamic_shared_offset + std::uint64_t{launch.dynamic_shared_bytes};
    case dynamic_smem_size: return launch.dynamic_shared_bytes;
    default: return time_special(which);
  }
}

}  // namespace kernwright::sim
