// st: every space, type, vector length and register width.
#include "sim/ops/memory/memory_choice.h"

namespace kernwright::sim::KW_SIM_NS {

OpPair select_memory_store(const ptx::Instruction& instruction, const OperandWidths& widths) {
  if (instruction.row->handler != ptx::Handler::st) return {};
  const ptx::Modifiers& modifiers = instruction.modifiers;
  return choose_memory<StoreHandlers>(ptx::bits(modifiers.type[0]), widths[1], modifiers.vector,
                                      false, memory_flags(modifiers, widths[0]));
}

}  // namespace kernwright::sim::KW_SIM_NS
