// Chooses the handler function of an instruction, for the best instruction set of this CPU.
#pragma once

#include "sim/exec/op.h"
#include "sim/ptx/ast.h"

namespace kernwright::sim {

/// Full-warp and masked handler of one instruction form; null when the family has none for it.
struct OpPair {
  OpFn full = nullptr;
  OpFn masked = nullptr;
};

/// The families of exec/ops/*.cpp; each file is compiled once per instruction set (KW_SIM_ISA) and defines
///   OpPair KW_SIM_NS::select_<family>(const ptx::Instruction&)
/// which returns nulls for handlers that are not its own.
using Selector = OpPair (*)(const ptx::Instruction& instruction);

/// "baseline", "avx2" or "avx512": the best the CPU has, or what KERNWRIGHT_SIM_ISA names.
const char* selected_isa();

/// Asks every family in turn.
OpPair select_handlers(const ptx::Instruction& instruction);

}  // namespace kernwright::sim
