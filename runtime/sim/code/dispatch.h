// Chooses the handler function of an instruction, for the best instruction set of this CPU.
#pragma once

#include "sim/code/op.h"
#include "sim/ptx/ast.h"

#include <array>

namespace kernwright::sim {

/// Full-warp and masked handler of one instruction form; null when the family has none for it.
struct OpPair {
  OpFn full = nullptr;
  OpFn masked = nullptr;
  std::uint32_t flags = 0;  ///< copied to Op::flags; meaning belongs to the family
  bool uses_site = false;   ///< the instruction gets a MemorySite (Op::site) of its own
};

inline constexpr std::uint8_t kPredicateWidth = 1;

/// Bytes per lane of the slot of each operand, in written order (operands[i] of the instruction):
/// 2, 4, 8 or 16; kPredicateWidth for a predicate; 0 if there is none. For an address the width of
/// its base, for a vector the width of its elements, for `d|p` that of d. They matter for registers
/// wider than the instruction's type (allowed by ld, st, cvt) and for 32-bit addresses.
struct OperandWidths {
  std::array<std::uint8_t, 10> bytes{};
  std::uint8_t operator[](std::size_t i) const noexcept { return bytes[i]; }
};

/// The families of ops/*.cpp (listed in ops/families.inc). Each file is compiled once per
/// instruction set and defines, in namespace kernwright::sim::KW_SIM_NS (numeric/isa_namespace.h),
/// the function
///
///   OpPair select_<family>(const ptx::Instruction&, const OperandWidths&)
///
/// It returns nulls for foreign handlers (row->handler) and for forms it cannot run.
using Selector = OpPair (*)(const ptx::Instruction& instruction, const OperandWidths& widths);

/// "baseline", "avx2" or "avx512": the best of the CPU, or the one in KERNWRIGHT_SIM_ISA. Throws
/// InvalidArgument for a set missing in this build or CPU.
const char* selected_isa();

/// While it lives, its thread gets handlers of the instruction set in the environment at the time
/// of its making. Without one each question reads the environment; this takes as long as the rest
/// of decoding an instruction.
class IsaChoice {
 public:
  IsaChoice();
  ~IsaChoice();
  IsaChoice(const IsaChoice&) = delete;
  IsaChoice& operator=(const IsaChoice&) = delete;

 private:
  const void* before_;
};

/// Asks every family in turn; nulls when none runs the instruction.
OpPair select_handlers(const ptx::Instruction& instruction, const OperandWidths& widths);

/// Handlers placed by decode() itself: they have no opcode of their own or depend on their
/// position.
enum class Internal : std::uint8_t {
  jump,          ///< bra to op + target, forward
  jump_back,     ///< the same, backward: counts imm instructions; flags = fairness cost
  branch,        ///< the same where predicate a ^ b holds, b being all ones or zero; forward: imm
                 ///< and flags are 0
  branch_table,  ///< brx.idx: a = index register, target = index into Tables::branch_tables
  guard,         ///< runs op + 1 for the lanes where predicate a holds, then goes to op + 2
  guard_not,
  call,           ///< target = index into Tables::call_sites
  call_indirect,  ///< a = register with the function pointer
  ret,
  exit,
  leader,           ///< masked code only: start of a basic block, where splits meet
  not_predicate,    ///< d = ~a
  special_uniform,  ///< d = block- or launch-wide value; flags = ptx::SpecialRegister, imm = bytes
  special_lane,     ///< d = per-lane value; flags = ptx::SpecialRegister
  local_address,    ///< d (64-bit) = the lane's local base + imm
  dynamic_shared,   ///< d (64-bit) = offset of the dynamic shared memory + imm
  parameter_copy,   ///< d (64-bit) = local copy (at base + imm) of flags bytes at frame offset a +
                    ///< lane * b
  load_parameter,   ///< d = kernel parameter at imm; flags: see ops/move.cpp
  load_lane,   ///< d = frame bytes at a + lane * b + imm (a .param variable of a call or function)
  store_lane,  ///< frame bytes at a + lane * b + imm = c
  count_
};
OpPair internal_handlers(Internal which);

/// For load_parameter, load_lane and store_lane: Op::flags from the memory type and the register's
/// width.
std::uint32_t parameter_flags(ptx::Type type, std::uint8_t register_bytes);

}  // namespace kernwright::sim
