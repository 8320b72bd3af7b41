// Memory fences, traps and hints: membar, fence, griddepcontrol, trap, brkpt, nanosleep, pmevent,
// setmaxnreg.
#include "sim/exec/warp/traps.h"
#include "sim/ops/lanes.h"
#include "sim/ptx/isa.h"

#include <atomic>

namespace kernwright::sim::KW_SIM_NS {
namespace {

using ptx::Handler;

const Op* fence(const Op* op, Warp&) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return op + 1;
}

const Op* trap(const Op* op, Warp& warp) { return report_trap(op, warp); }

/// Sleeping means letting the others run: simulated time does not pass.
const Op* sleep(const Op* op, Warp& warp) {
  constexpr unsigned kYieldCost = 32;
  warp.charge(kYieldCost);
  return warp.yield(op);
}

}  // namespace

OpPair select_misc(const ptx::Instruction& instruction, const OperandWidths&) {
  switch (instruction.row->handler) {
    case Handler::membar:
    case Handler::fence:
    case Handler::griddepcontrol: return {fence, fence};
    case Handler::trap:
    case Handler::brkpt: return {trap, trap};
    case Handler::nanosleep: return {sleep, sleep};
    case Handler::pmevent:
    case Handler::setmaxnreg: return {no_operation, no_operation};
    default: return {};
  }
}

}  // namespace kernwright::sim::KW_SIM_NS
