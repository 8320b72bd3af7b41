// st: every space, type, vector length and register width.
#include "sim/exec/ops/memory_choice.h"

namespace kernwright::sim::KW_SIM_NS {
namespace {

using Choice = MemoryChoice<StoreHandler>;

}  // namespace

OpPair select_memory_store(const ptx::Instruction& instruction, const OperandWidths& widths) {
  if (instruction.row->handler != ptx::Handler::st) return {};
  const ptx::Modifiers& modifiers = instruction.modifiers;
  const std::uint32_t flags = memory_flags(modifiers, widths[0]);
  const int vector = modifiers.vector, reg = widths[1];
  switch (ptx::bits(modifiers.type[0])) {
    case 8:
      return Choice::registers<std::uint8_t>(vector, reg, flags);
    case 16:
      return Choice::registers<std::uint16_t>(vector, reg, flags);
    case 32:
      return Choice::registers<std::uint32_t>(vector, reg, flags);
    case 64:
      return Choice::vectors<std::uint64_t, std::uint64_t, true>(vector, flags);
    case 128:
      return vector == 1 ? form_pair<StoreHandler, Bits128, Bits128, 1, false>(flags) : OpPair{};
    default:
      return {};
  }
}

}  // namespace kernwright::sim::KW_SIM_NS
