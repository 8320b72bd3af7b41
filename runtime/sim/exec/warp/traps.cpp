// Text of findings outside memory.
#include "sim/exec/warp/traps.h"

#include "base/format.h"
#include "sim/code/program.h"

#include <bit>

namespace kernwright::sim {

const Op* report_trap(const Op* op, Warp& warp) {
  const std::string_view opcode = warp.program->places[warp.op_index(op)].opcode;
  // The headers of cooperative groups trap in sync() of a grid without a workspace.
  const bool is_grid_sync = warp.worker->launch->grid_workspace == 0 &&
                            warp.program->module->text.find("%envreg2") != std::string::npos;
  const char* const message =
      opcode == "brkpt" ? "a breakpoint (brkpt) was reached"
      : is_grid_sync ? "the kernel executed a trap instruction. It uses the whole grid as a group "
                       "(this_grid()), and this launch is not cooperative: launch it with "
                       "k.launch(kw.LaunchConfig(grid=, block=, cooperative=True), ...)"
                     : "the kernel executed a trap instruction";
  return warp.fault(op, FaultKind::trap, std::countr_zero(warp.mask), 0, 0, message);
}

const Op* report_operand(const Op* op, Warp& warp, int lane, const char* what,
                         std::uint64_t value) {
  return warp.fault(op, FaultKind::sync, lane, 0, 0, format("{} (operand value {})", what, value));
}

}  // namespace kernwright::sim
