// Branches, calls, guards and barriers.
#include "sim/code/program.h"
#include "sim/code/tables.h"
#include "sim/exec/warp/scheduler.h"
#include "sim/exec/warp/traps.h"
#include "sim/ops/branch.h"
#include "sim/ops/lanes.h"
#include "sim/ptx/isa.h"

namespace kernwright::sim::KW_SIM_NS {

OpPair internal_control(Internal which);

namespace {

const Op* jump(const Op* op, Warp&) { return op + op->target; }
const Op* jump_back(const Op* op, Warp& warp) { return back_edge(op, warp, op + op->target); }

template <bool kMasked>
const Op* branch(const Op* op, Warp& warp) {
  return take_branch<kMasked>(op, warp, warp.pred(op->a));
}

const Op* branch_table(const Op* op, Warp& warp) {
  const auto& table = warp.program->tables->branch_tables[static_cast<std::size_t>(op->target)];
  const auto* index = warp.reg<std::uint32_t>(op->a);
  std::int32_t targets[kLanes] = {};
  bool uniform = true;
  const int first = std::countr_zero(warp.mask);
  for (std::uint32_t m = warp.mask; m != 0; m &= m - 1) {
    const int lane = std::countr_zero(m);
    if (index[lane] >= table.size()) {
      return report_operand(op, warp, lane, "index past the end of .branchtargets", index[lane]);
    }
    targets[lane] = table[index[lane]];
    uniform &= targets[lane] == targets[first];
  }
  if (!uniform) return warp.scatter(op, targets);
  return back_edge(op, warp, op + targets[first]);
}

/// Runs the next op with fewer lanes. That op neither parks nor branches (decode() sees to it).
template <bool kNegated>
const Op* guard(const Op* op, Warp& warp) {
  const std::uint32_t all = warp.mask;
  const std::uint32_t on = (kNegated ? ~warp.pred(op->a) : warp.pred(op->a)) & all;
  if (on == 0) return op + 2;
  if (on == all) return op + 1;
  const Op* const code = warp.code;
  warp.code = warp.program->masked.data();
  warp.set_mask(on);
  const Op* inner = warp.code + (op + 1 - code);
  if (inner->fn(inner, warp) == nullptr) return nullptr;
  warp.set_mask(all);
  warp.code = code;
  return op + 2;
}

/// Stands in front of the first op of a block where splits meet.
const Op* leader(const Op* op, Warp& warp) {
  const std::uint32_t index = warp.op_index(op);
  if (index >= warp.pending) return warp.meet(op);
  return warp.program->tables->behind_leader[index](op, warp);
}

const Op* call(const Op* op, Warp& warp) { return warp.call(op); }
const Op* call_indirect(const Op* op, Warp& warp) { return warp.call_indirect(op); }
const Op* ret(const Op* op, Warp& warp) { return warp.ret(op); }
const Op* exit_op(const Op* op, Warp& warp) { return warp.exit(op); }

const Op* warp_barrier(const Op* op, Warp& warp) { return warp.meet_anywhere(op); }

const Op* barrier_sync(const Op* op, Warp& warp) {
  Warp::Arrival arrival;
  arrival.id = warp.reg<std::uint32_t>(op->a);
  if (op->sources > 1) arrival.threads = warp.reg<std::uint32_t>(op->b);
  return warp.barrier(op, arrival);
}

const Op* barrier_arrive(const Op* op, Warp& warp) {
  Warp::Arrival arrival;
  arrival.id = warp.reg<std::uint32_t>(op->a);
  arrival.threads = warp.reg<std::uint32_t>(op->b);
  arrival.wait = false;
  return warp.barrier(op, arrival);
}

const Op* barrier_reduce(const Op* op, Warp& warp) {
  Warp::Arrival arrival;
  arrival.id = warp.reg<std::uint32_t>(op->a);
  if (op->sources > 2) arrival.threads = warp.reg<std::uint32_t>(op->b);
  arrival.reduce = true;
  arrival.votes = warp.pred(op->sources > 2 ? op->c : op->b);
  return warp.barrier(op, arrival);
}

OpPair both(OpFn fn, Reduction reduction = Reduction::none) {
  return {fn, fn, static_cast<std::uint32_t>(reduction)};
}

OpPair select_barrier(const ptx::Modifiers& mods) {
  if (mods.verb == ptx::Verb::warp_sync) return both(warp_barrier);
  if (mods.arrive) return both(barrier_arrive);
  if (!mods.red) return both(barrier_sync);
  switch (mods.bool_op) {
    case ptx::BoolOp::popc: return both(barrier_reduce, Reduction::count);
    case ptx::BoolOp::and_: return both(barrier_reduce, Reduction::all);
    case ptx::BoolOp::or_: return both(barrier_reduce, Reduction::any);
    default: return {};
  }
}

}  // namespace

OpPair internal_control(Internal which) {
  switch (which) {
    case Internal::jump: return both(jump);
    case Internal::jump_back: return both(jump_back);
    case Internal::branch: return {branch<false>, branch<true>};
    case Internal::branch_table: return both(branch_table);
    case Internal::guard: return both(guard<false>);
    case Internal::guard_not: return both(guard<true>);
    case Internal::call: return both(call);
    case Internal::call_indirect: return both(call_indirect);
    case Internal::ret: return both(ret);
    case Internal::exit: return both(exit_op);
    case Internal::leader: return both(leader);
    default: return {};
  }
}

OpPair select_control(const ptx::Instruction& inst, const OperandWidths&) {
  using ptx::Handler;
  switch (inst.row->handler) {
    case Handler::bar:
    case Handler::barrier: return select_barrier(inst.modifiers);
    default: return {};
  }
}

}  // namespace kernwright::sim::KW_SIM_NS
