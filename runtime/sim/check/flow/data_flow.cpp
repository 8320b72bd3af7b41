// Basic blocks, and the instructions with writes to each register.
#include "sim/check/flow/data_flow.h"

namespace kernwright::sim {
using ptx::Handler;

Outline make_outline(const ptx::Function& function) {
  Outline outline{std::vector<std::uint32_t>(function.body.size()),
                  std::vector<std::vector<std::uint32_t>>(function.registers.size())};
  std::vector<bool> begins(function.body.size() + 1, false);
  for (const ptx::Label& label : function.labels) begins[label.instruction] = true;
  std::uint32_t block = 0;
  for (std::uint32_t i = 0; i < function.body.size(); ++i) {
    const ptx::Instruction& one = function.body[i];
    block += begins[i] ? 1 : 0;
    outline.blocks[i] = block;
    const bool ends_block =
        is_any(one.row->handler, {Handler::bra, Handler::brx, Handler::ret, Handler::exit});
    block += ends_block ? 1 : 0;
    for (const ptx::Operand& operand : one.operands) {
      each_register(operand, [&](std::uint32_t reg, bool written) {
        if (written) outline.writers[reg].push_back(i);
      });
    }
  }
  return outline;
}

}  // namespace kernwright::sim
