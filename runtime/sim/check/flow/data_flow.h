// Questions about a function's instructions, for following values.
#pragma once

#include "sim/ptx/ast.h"
#include "sim/ptx/isa.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace kernwright::sim {

/// The places of a function's instructions and registers.
struct Outline {
  std::vector<std::uint32_t> blocks;                ///< by instruction: its basic block
  std::vector<std::vector<std::uint32_t>> writers;  ///< by register: instructions, in their order
};
Outline make_outline(const ptx::Function& function);

inline bool is_any(ptx::Handler handler, std::initializer_list<ptx::Handler> some) {
  return std::find(some.begin(), some.end(), handler) != some.end();
}

/// Each lane's result comes from its own operands, and memory is left alone.
inline bool works_by_lane(const ptx::Instruction& one) {
  const ptx::Handler handler = one.row->handler;
  return handler == ptx::Handler::mov || handler == ptx::Handler::cvt || ptx::computes(handler);
}

/// Calls f(register, is_written) for each register of the operand.
template <typename F>
void each_register(const ptx::Operand& operand, const F& f) {
  using ptx::OperandKind;
  const auto call = [&](std::uint32_t reg) {
    if (reg != ptx::kNoRegister) f(reg, operand.is_destination);
  };
  if (operand.kind == OperandKind::reg || operand.kind == OperandKind::reg_pair) call(operand.reg);
  if (operand.kind == OperandKind::reg_pair) call(operand.reg2);
  if (operand.kind == OperandKind::address && operand.base == OperandKind::reg)
    f(operand.reg, false);
  for (const ptx::Operand& element : operand.elements) each_register(element, f);
}

}  // namespace kernwright::sim
