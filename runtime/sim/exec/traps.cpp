// Text of findings that are not about memory.
#include "sim/exec/traps.h"

#include "base/format.h"
#include "sim/ir/program.h"

#include <bit>

namespace kernwright::sim {

const Op* report_trap(const Op* op, Warp& warp) {
  const std::string_view opcode = warp.program->places[warp.op_index(op)].opcode;
  return warp.fault(op, FaultKind::trap, std::countr_zero(warp.mask), 0, 0,
                    opcode == "brkpt" ? "a breakpoint (brkpt) was reached"
                                      : "the kernel executed a trap instruction");
}

const Op* report_operand(const Op* op, Warp& warp, int lane, const char* what,
                         std::uint64_t value) {
  return warp.fault(op, FaultKind::sync, lane, 0, 0, format("{} (operand value {})", what, value));
}

}  // namespace kernwright::sim
