// ld and ldu: every space, type, vector length and register width.
#include "sim/exec/ops/memory_transfer.h"

namespace kernwright::sim::KW_SIM_NS {
namespace {

using ptx::Type;

template <typename Mem, typename Reg, bool kHot = false>
OpPair vectors(int vector, std::uint32_t flags) {
  switch (vector) {
    case 1:
      return form_pair<LoadHandler, Mem, Reg, 1, kHot>(flags);
    case 2:
      return form_pair<LoadHandler, Mem, Reg, 2, kHot>(flags);
    case 4:
      return form_pair < LoadHandler, Mem, Reg, 4, kHot && sizeof(Mem) == 4 > (flags);
    case 8:
      if constexpr (sizeof(Mem) == 4 && sizeof(Reg) == 4)
        return form_pair<LoadHandler, Mem, Reg, 8, false>(flags);
      return {};
    default:
      return {};
  }
}

/// `reg` bytes wide destination of a memory type of the same or a smaller size.
template <typename Mem>
OpPair registers(int vector, int reg, std::uint32_t flags) {
  if constexpr (sizeof(Mem) <= 2) {
    if (reg == 2) return vectors<Mem, std::uint16_t>(vector, flags);
  }
  if (reg == 4) return vectors<Mem, std::uint32_t, sizeof(Mem) == 4>(vector, flags);
  return reg == 8 ? vectors<Mem, std::uint64_t>(vector, flags) : OpPair{};
}

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
      return is_signed ? registers<std::int8_t>(vector, reg, flags)
                       : registers<std::uint8_t>(vector, reg, flags);
    case 16:
      return is_signed ? registers<std::int16_t>(vector, reg, flags)
                       : registers<std::uint16_t>(vector, reg, flags);
    case 32:
      return is_signed && reg == 8 ? registers<std::int32_t>(vector, reg, flags)
                                   : registers<std::uint32_t>(vector, reg, flags);
    case 64:
      return vectors<std::uint64_t, std::uint64_t, true>(vector, flags);
    case 128:
      return vector == 1 ? form_pair<LoadHandler, Bits128, Bits128, 1, false>(flags) : OpPair{};
    default:
      return {};
  }
}

}  // namespace kernwright::sim::KW_SIM_NS
