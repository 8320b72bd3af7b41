// Basic blocks and the instructions that write to each register.
#include "sim/check/flow/data_flow.h"

namespace kernwright::sim {
namespace {

using ptx::Handler;

bool ends_block(const ptx::Instruction& one) {
  const Handler handler = one.row->handler;
  return handler == Handler::bra || handler == Handler::brx || handler == Handler::ret ||
         handler == Handler::exit;
}

}  // namespace

Outline outline_of(const ptx::Function& function) {
  Outline outline{std::vector<std::uint32_t>(function.body.size()),
                  std::vector<std::vector<std::uint32_t>>(function.registers.size())};
  std::vector<bool> begins(function.body.size() + 1, false);
  for (const ptx::Label& label : function.labels) begins[label.instruction] = true;
  std::uint32_t block = 0;
  for (std::uint32_t i = 0; i < function.body.size(); ++i) {
    const ptx::Instruction& one = function.body[i];
    block += begins[i] ? 1 : 0;
    outline.blocks[i] = block;
    if (ends_block(one)) ++block;
    for (const ptx::Operand& operand : one.operands) {
      each_register(operand, [&](std::uint32_t reg, bool written) {
        if (written) outline.writers[reg].push_back(i);
      });
    }
  }
  return outline;
}

}  // namespace kernwright::sim
