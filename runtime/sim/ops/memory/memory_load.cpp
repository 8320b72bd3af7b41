// ld and ldu: every space, type, vector length and register width.
#include "sim/ops/memory/memory_choice.h"

namespace kernwright::sim::KW_SIM_NS {

OpPair select_memory_load(const ptx::Instruction& instruction, const OperandWidths& widths) {
  using ptx::Type;
  const auto handler = instruction.row->handler;
  if (handler != ptx::Handler::ld && handler != ptx::Handler::ldu) return {};
  const ptx::Modifiers& modifiers = instruction.modifiers;
  const Type type = modifiers.type[0];
  const bool is_signed = type == Type::s8 || type == Type::s16 || type == Type::s32;
  return choose_memory<LoadHandlers>(ptx::bits(type), widths[0], modifiers.vector, is_signed,
                                     memory_flags(modifiers, widths[1]));
}

}  // namespace kernwright::sim::KW_SIM_NS
