// Handlers for patterns recognised by decode(): addresses with the same value in every block, and
// frequent pairs of ops. Full warps only; masked code keeps the ops one by one. README.md of this
// module says what each saves.
#pragma once

#include "sim/code/dispatch.h"

#include <cstdint>

namespace kernwright::sim {

/// How one memory op of a frame reaches shared memory: made when the op first runs. All zero =
/// nothing known yet. Lies in the frame at Op::e, so each warp has its own.
struct FixedPlan {
  std::uint32_t pattern = 0;  ///< a Pattern of ops/memory/memory_plan.h
  std::uint32_t base = 0;     ///< of lane 0, within the block's shared memory
  std::int32_t half = 0;      ///< as MemorySite::half; of a gather what CheckSite::tag was, or 0
  std::uint32_t epoch = 0;    ///< when the checks looked at it (SharedHistory::read_epoch)
};
static_assert(sizeof(FixedPlan) == 16);

/// The full-warp handler of a load from or store to shared memory with a constant address register
/// for the life of the frame; null when there is none for this form.
OpFn fixed_handler(const ptx::Instruction& instruction, const OperandWidths& widths);

/// mad.wide: d (64-bit) = c (64-bit) + a * b; a and b are 32-bit integers.
OpPair index_address_handlers(bool is_signed);

/// Such an address op fused with the following load or store of the full-warp handler `access`. The
/// access uses this address, and b is its number of bytes for each lane. If it cannot do both it
/// runs handler_alone() of the address op, and goes on to the access. Null when there is none.
OpFn indexed_handler(OpFn access);

/// The comparison with the full-warp handler `compare`, fused with the following Internal::branch
/// on its result; null when there is none.
OpFn branching_handler(OpFn compare);
/// The same, also fused with the sum of 32-bit integers before them, an operand of the comparison.
/// Null for other types too.
OpFn stepping_handler(OpFn compare);

/// Makes `address` run `both`, an indexed_handler(), and keeps its own handler in Op::imm.
inline void set_indexed(Op& address, OpFn both) {
  address.imm = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(address.fn));
  address.fn = both;
}
inline OpFn handler_alone(const Op& address) {
  return reinterpret_cast<OpFn>(static_cast<std::uintptr_t>(address.imm));
}

}  // namespace kernwright::sim
