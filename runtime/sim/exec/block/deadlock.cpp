// The waiting threads and their places in a deadlock.
#include "base/format.h"
#include "sim/code/program.h"
#include "sim/code/tables.h"
#include "sim/exec/block/cluster.h"
#include "sim/exec/warp/scheduler.h"
#include "sim/ptx/isa.h"

#include <bit>
#include <utility>
#include <vector>

namespace kernwright::sim {
namespace {

/// The op of a waiting split. A busy wait may be anywhere in its loop; the loop's read tells it.
std::uint32_t waiting_op(const Program& program, const Split& split) {
  const Program::Tables& tables = *program.tables;
  const auto reads = [&](std::uint32_t op) {
    const ptx::Instruction* const instruction = tables.instructions[op];
    return instruction != nullptr && (instruction->row->handler == ptx::Handler::mbarrier ||
                                      instruction->row->handler == ptx::Handler::ld);
  };
  if (split.state != SplitState::ready || !tables.busy_waits[split.pc]) return split.pc;
  for (std::uint32_t op = split.pc; op < tables.busy_waits.size() && tables.busy_waits[op]; ++op) {
    if (reads(op)) return op;
  }
  for (std::uint32_t op = split.pc; op != 0 && tables.busy_waits[op]; --op) {
    if (reads(op)) return op;
  }
  return split.pc;
}

/// The threads waiting there, and the awaited event.
FaultPlace describe_split(const Warp& warp, const Split& split) {
  const char* what = split.state == SplitState::barrier     ? "a barrier"
                     : split.state == SplitState::cluster   ? "the barrier of the cluster"
                     : split.state == SplitState::mbarrier  ? "a phase of an mbarrier"
                     : split.state == SplitState::warpgroup ? "other warps of the warpgroup"
                     : split.state == SplitState::ready     ? "what they poll"
                                                            : "other lanes of the warp";
  FaultPlace there = warp.program->get_place(waiting_op(*warp.program, split));
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
    case SplitState::barrier: return "threads wait at a barrier for threads that never arrive";
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
    default: return "lanes wait at a .sync instruction for lanes that never arrive there";
  }
}

}  // namespace

void report_deadlock(ClusterMember& member, const Program& program) {
  std::vector<FaultPlace> places;
  const Split* first = nullptr;
  Warp* holder = nullptr;
  // The other blocks of a cluster, too: the missing event may be theirs.
  for (const ClusterMember* other : member.cluster->members) {
    if (other->exited) continue;
    for (std::uint32_t w = 0; w < other->block->warp_count; ++w) {
      Warp& warp = other->block->warps[w];
      for (std::uint32_t s = 0; s < warp.schedule->count; ++s) {
        const Split& split = warp.schedule->splits[s];
        places.push_back(describe_split(warp, split));
        if (other != &member) continue;
        // Lanes without others of their warp come first, except polling ones: others wait elsewhere
        // because of them.
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
  holder->code = program.full.data();
  holder->fault(holder->code + waiting_op(program, *first), FaultKind::sync,
                std::countr_zero(first->mask), 0, 0, stuck_text(first->state));
  member.block->fault.places = std::move(places);
}

}  // namespace kernwright::sim
