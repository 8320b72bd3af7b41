// ld and ldu: every space, type, vector length and register width.
#include "sim/exec/ops/memory_choice.h"

namespace kernwright::sim::KW_SIM_NS {
namespace {

using ptx::Type;
using Choice = MemoryChoice<LoadHandler>;

}  // namespace

OpPair select_memory_load(const ptx::Instruction& instruction, const OperandWidths& widths) {
  const auto handler = instruction.row->handler;
  if (handler != ptx::Handler::ld && handler != ptx::Handler::ldu) return {};
  const ptx::Modifiers& modifiers = instruction.modifiers;
  const std::uint32_t flags = memory_flags(modifiers, widths[1]);
  const Type type = modifiers.type[0];
  const int vector = modifiers.vector, reg = widths[0];
  const bool is_signed = type == Type::s8 || type == Type::s16 || type == Type::s32;
  switch (ptx::bits(type)) {
    case 8:
      return is_signed ? Choice::registers<std::int8_t>(vector, reg, flags)
                       : Choice::registers<std::uint8_t>(vector, reg, flags);
    case 16:
      return is_signed ? Choice::registers<std::int16_t>(vector, reg, flags)
                       : Choice::registers<std::uint16_t>(vector, reg, flags);
    case 32:
      return is_signed && reg == 8 ? Choice::registers<std::int32_t>(vector, reg, flags)
                                   : Choice::registers<std::uint32_t>(vector, reg, flags);
    case 64:
      return Choice::vectors<std::uint64_t, std::uint64_t, true>(vector, flags);
    case 128:
      return vector == 1 ? form_pair<LoadHandler, Bits128, Bits128, 1, false>(flags) : OpPair{};
    default:
      return {};
  }
}

}  // namespace kernwright::sim::KW_SIM_NS
