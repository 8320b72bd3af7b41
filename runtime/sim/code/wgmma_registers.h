// Registers of wgmma in use between the instruction and its wait.
#pragma once

#include "sim/code/op.h"

#include <cstdint>

namespace kernwright::sim {

struct Lowered;

/// Gives each wgmma.mma_async of the function the list of its registers (Op::f: those of D, then
/// those of A), and puts touch_product_registers() before each other op with one of them.
void list_wgmma_registers(Lowered& function, std::uint32_t index);

/// In such a list: names a register of a function.
constexpr std::uint32_t wgmma_register(std::uint32_t function, std::uint32_t reg) {
  return function << 20 | (reg & 0xfffff);
}

/// Runs before an instruction with registers of products: sources a and b are lists of those that
/// it reads and writes (Op::imm and imm2 of them); with flags 1 or 2 only if predicate c holds or
/// does not.
const Op* touch_product_registers(const Op* op, Warp& warp);

}  // namespace kernwright::sim
