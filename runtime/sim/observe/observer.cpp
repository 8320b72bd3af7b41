// Stands in front of every op of an observed program.
#include "sim/observe/observer.h"

#include "sim/exec/warp/scheduler.h"
#include "sim/observe/trace_recorder.h"
#include "sim/observe/traffic.h"
#include "sim/ptx/isa.h"

#include <algorithm>
#include <bit>

namespace kernwright::sim {

using Part = OpOrigin::Part;

namespace {

/// The lanes of `mask` that did the op at `index`, `depth` calls deep, after its handler returned
/// null: not those still before it or waiting to try again.
std::uint32_t lanes_past(const Warp& warp, std::uint32_t mask, std::uint32_t index,
                         std::uint32_t depth) {
  if (warp.stop == Stop::fault) return 0;
  const Warp::Schedule& schedule = *warp.schedule;
  for (std::uint32_t s = 0; s < schedule.count; ++s) {
    const Split& split = schedule.splits[s];
    const bool tries_again = split.state == SplitState::ready || split.state == SplitState::sync ||
                             split.state == SplitState::mbarrier ||
                             split.state == SplitState::warpgroup;
    if (tries_again && split.pc == index && split.depth == depth) mask &= ~split.mask;
  }
  return mask;
}

}  // namespace

std::uint32_t guard_lanes(const Warp& warp, const ObservedOp& op) {
  const ptx::Instruction& instruction = *op.origin.instruction;
  if (!instruction.guarded) return kAllLanes;
  const auto& offsets = warp.program->tables->register_offsets[op.function];
  const std::uint32_t holds = warp.pred(offsets[instruction.guard]);
  return instruction.guard_negated ? ~holds : holds;
}

std::uint64_t lane_address(const Op* op, const Warp& warp, const ObservedOp& info, int lane,
                           bool second) {
  const AddressPlace& place = second ? info.from : info.address;
  const std::uint32_t reg = second ? op->b : op->a;
  const auto displacement = static_cast<std::uint64_t>(second ? op->imm2 : op->imm);
  const std::uint64_t address =
      place.narrow ? warp.reg<std::uint32_t>(reg)[lane] + static_cast<std::uint32_t>(displacement)
                   : warp.reg<std::uint64_t>(reg)[lane] + displacement;
  return seen_from_block(warp, place.space, address);
}

std::uint32_t copied_bytes(const Op* op, const Warp& warp, const ObservedOp& info, int lane) {
  const std::uint32_t size = warp.reg<std::uint32_t>(op->c)[0];
  if (op->sources < 4) return size;
  const ptx::Operand& limit = info.origin.instruction->operands[3];
  if (limit.type == ptx::Type::pred) return (warp.pred(op->e) >> lane & 1) != 0 ? 0 : size;
  return std::min(size, warp.reg<std::uint32_t>(op->e)[lane]);
}

void Observer::attach() { counts_ = launch_.thread_counts(); }

/// Counts the lanes with the guard off; with all of them off the warp has executed the instruction
/// nonetheless.
void Observer::count_guard(const Warp& warp, const ObservedOp& info, std::uint32_t index,
                           std::uint32_t off) {
  LineCounts& counts = counts_[index];
  counts.instructions += off == warp.mask ? 1 : 0;
  counts.predicated_off += static_cast<std::uint64_t>(std::popcount(off));
  const ptx::Handler handler = info.origin.instruction->row->handler;
  const bool leaves = handler == ptx::Handler::ret || handler == ptx::Handler::exit;
  if (!leaves) return;
  ++counts.branches;
  counts.divergent_branches += off != 0 && off != warp.mask ? 1 : 0;
}

/// Finds the active lanes already counted at this bar.warp.sync: they only check again for exits.
/// Lanes waiting in it may also go on without another check.
std::uint32_t Observer::note_meeting(const Warp& warp, const ObservedOp& info,
                                     std::uint32_t index) {
  if (!info.meets) {
    if (warp.index < meetings_.size()) meetings_[warp.index].lanes &= ~warp.mask;
    return 0;
  }
  if (warp.index >= meetings_.size()) meetings_.resize(warp.index + 1);
  Meeting& meeting = meetings_[warp.index];
  std::uint32_t known = 0;
  for (std::uint32_t m = warp.mask; m != 0; m &= m - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(m));
    known |= meeting.at[lane] == index ? meeting.lanes & (m & (0u - m)) : 0;
    meeting.at[lane] = index;
  }
  meeting.lanes |= warp.mask;
  return known;
}

/// `known`: lanes counted at their first arrival here.
const Op* Observer::run_counted(const Op* op, Warp& warp, const ObservedOp& info, OpFn run,
                                std::uint32_t known, std::uint32_t& done) {
  const std::uint32_t index = warp.op_index(op);
  const std::uint32_t mask = warp.mask, depth = warp.schedule->current().depth;
  const bool is_branch = info.origin.part == Part::branch;
  LineCounts costs;
  if (counts_ != nullptr && is_branch) costs = count_branch(op, warp, info);
  const bool has_memory = info.kind != CheckKind::none || info.uncounted;
  if (counts_ != nullptr && has_memory) costs = count_memory(op, warp, info);
  const Op* const next = run(op, warp);
  done = mask;
  if (next == nullptr && is_branch) done = warp.stop == Stop::fault ? 0 : mask;
  if (next == nullptr && !is_branch && !info.meets) done = lanes_past(warp, mask, index, depth);
  done &= ~known;
  if (counts_ == nullptr || done == 0 || info.origin.part == Part::results) return next;
  LineCounts& counts = counts_[index];
  ++counts.instructions;
  counts.thread_instructions += static_cast<std::uint64_t>(std::popcount(done));
  if (is_branch || has_memory) counts += costs;
  return next;
}

const Op* Observer::step(const Op* op, Warp& warp) {
  const std::uint32_t index = warp.op_index(op);
  const ObservedOp& info = launch_.program.ops[index];
  const OpFn run = warp.code == warp.program->full.data() ? info.full : info.masked;
  TraceRecorder* trace = launch_.trace;
  if (trace != nullptr && !(trace->is_in(warp) && (warp.mask >> trace->lane() & 1) != 0))
    trace = nullptr;
  if (trace != nullptr) trace->settle(warp);
  const Part part = info.origin.part;
  if (part == Part::helper) return run(op, warp);
  const std::uint32_t known = note_meeting(warp, info, index);
  if (part == Part::guard || part == Part::skip) {
    const std::uint32_t off = warp.mask & ~guard_lanes(warp, info);
    if (counts_ != nullptr) count_guard(warp, info, index, off);
    if (trace != nullptr && (off >> trace->lane() & 1) != 0) trace->skip(warp, info, index);
    return run(op, warp);
  }
  if (trace != nullptr && (known >> trace->lane() & 1) != 0) trace = nullptr;
  if (trace != nullptr) trace->open(op, warp, info);
  std::uint32_t done = 0;
  const Op* const next = run_counted(op, warp, info, run, known, done);
  if (trace != nullptr) trace->close(warp, (done >> trace->lane() & 1) != 0);
  return next;
}

void Observer::printed(const Warp& warp, int lane, std::string_view text) {
  TraceRecorder* const trace = launch_.trace;
  if (trace != nullptr && trace->is_in(warp) && trace->lane() == lane) trace->printed(text);
}

}  // namespace kernwright::sim
