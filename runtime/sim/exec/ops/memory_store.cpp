// st: every space, type, vector length and register width.
#include "sim/exec/ops/memory_transfer.h"

namespace kernwright::sim::KW_SIM_NS {
namespace {

template <typename Mem, typename Reg, bool kHot = false>
OpPair vectors(int vector, std::uint32_t flags) {
  switch (vector) {
    case 1:
      return form_pair<StoreHandler, Mem, Reg, 1, kHot>(flags);
    case 2:
      return form_pair<StoreHandler, Mem, Reg, 2, kHot>(flags);
    case 4:
      return form_pair < StoreHandler, Mem, Reg, 4, kHot && sizeof(Mem) == 4 > (flags);
    case 8:
      if constexpr (sizeof(Mem) == 4 && sizeof(Reg) == 4)
        return form_pair<StoreHandler, Mem, Reg, 8, false>(flags);
      return {};
    default:
      return {};
  }
}

/// The low bits of a register that is as wide as the memory type or wider.
template <typename Mem>
OpPair registers(int vector, int reg, std::uint32_t flags) {
  if constexpr (sizeof(Mem) <= 2) {
    if (reg == 2) return vectors<Mem, std::uint16_t>(vector, flags);
  }
  if (reg == 4) return vectors<Mem, std::uint32_t, sizeof(Mem) == 4>(vector, flags);
  return reg == 8 ? vectors<Mem, std::uint64_t>(vector, flags) : OpPair{};
}

}  // namespace

OpPair select_memory_store(const ptx::Instruction& instruction, const OperandWidths& widths) {
  if (instruction.row->handler != ptx::Handler::st) return {};
  const ptx::Modifiers& modifiers = instruction.modifiers;
  const std::uint32_t flags = memory_flags(modifiers, widths[0]);
  const int vector = modifiers.vector, reg = widths[1];
  switch (ptx::bits(modifiers.type[0])) {
    case 8:
      return registers<std::uint8_t>(vector, reg, flags);
    case 16:
      return registers<std::uint16_t>(vector, reg, flags);
    case 32:
      return registers<std::uint32_t>(vector, reg, flags);
    case 64:
      return vectors<std::uint64_t, std::uint64_t, true>(vector, flags);
    case 128:
      return vector == 1 ? form_pair<StoreHandler, Bits128, Bits128, 1, false>(flags) : OpPair{};
    default:
      return {};
  }
}

}  // namespace kernwright::sim::KW_SIM_NS
