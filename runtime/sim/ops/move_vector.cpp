// mov.v2 and mov.v4: several registers at once.
#include "sim/code/program.h"
#include "sim/ops/types.h"
#include "sim/ptx/isa.h"

namespace kernwright::sim::KW_SIM_NS {
namespace {

/// All sources are read before the first part is written.
template <bool kMasked, typename T>
const Op* move_parts(const Op* op, Warp& warp) {
  constexpr std::size_t kMostParts = 4;
  const std::uint32_t* const lists = warp.program->lists.data();
  alignas(64) T values[kMostParts][kLanes];
  for (std::size_t k = 0; k < op->count; ++k)
    std::memcpy(values[k], warp.reg<T>(lists[op->a + k]), sizeof values[k]);
  for (std::size_t k = 0; k < op->count; ++k)
    write_lanes<kMasked, T>(warp, lists[op->d + k], [&](int i) { return values[k][i]; });
  return op + 1;
}

}  // namespace

OpPair select_move_vector(const ptx::Instruction& inst, const OperandWidths&) {
  if (inst.row->handler != ptx::Handler::mov || inst.modifiers.vector == 1) return {};
  return by_width(inst.modifiers.type[0], []<typename T>() {
    return OpPair{move_parts<false, T>, move_parts<true, T>};
  });
}

}  // namespace kernwright::sim::KW_SIM_NS
