// Puts an observer in front of a program's ops.
#include "sim/observe/observed_program.h"

#include "base/format.h"
#include "sim/check/flow/data_flow.h"
#include "sim/observe/observer.h"
#include "sim/ptx/isa.h"

#include <algorithm>
#include <functional>

namespace kernwright::sim {
namespace {

using ptx::Handler;
using ptx::OperandKind;

const Op* observed(const Op* op, Warp& warp) {
  return static_cast<Observer*>(warp.worker->observer)->step(op, warp);
}

AddressPlace address_place(const ptx::Function& function, const ptx::Operand& operand,
                           ptx::Space space) {
  AddressPlace place;
  place.space = space;
  place.narrow =
      operand.base == OperandKind::reg && ptx::bits(function.registers[operand.reg].type) <= 32;
  return place;
}

/// Tiles of wmma and texels in an order chosen by hardware, and copies by engines of their own.
bool moves_data_otherwise(const ptx::Instruction& instruction) {
  const Handler handler = instruction.row->handler;
  const ptx::Verb verb = instruction.modifiers.verb;
  if (handler == Handler::wmma) return verb == ptx::Verb::load || verb == ptx::Verb::store;
  if (handler == Handler::wgmma) return verb == ptx::Verb::mma;
  if (handler == Handler::cp) return instruction.modifiers.bulk;
  return is_any(handler, {Handler::cp_bulk, Handler::st_async, Handler::red_async, Handler::tex,
                          Handler::tld4, Handler::suld, Handler::sust, Handler::sured});
}

void describe_memory(ObservedOp& op, const ptx::Function& function,
                     const ptx::Instruction& instruction) {
  const CheckedOp use = classify(instruction);
  op.uncounted = moves_data_otherwise(instruction);
  const Handler handler = instruction.row->handler;
  op.meets = (handler == Handler::bar || handler == Handler::barrier) &&
             instruction.modifiers.verb == ptx::Verb::warp_sync;
  switch (use.kind) {
    case CheckKind::load:
    case CheckKind::store:
    case CheckKind::atomic:
    case CheckKind::tile_load:
    case CheckKind::tile_store:
    case CheckKind::copy: break;
    default: return;
  }
  if (instruction.modifiers.space == ptx::Space::param) {
    // Named parameters are no memory of the device: they lie in frames.
    const bool by_name = std::any_of(
        instruction.operands.begin(), instruction.operands.end(), [](const ptx::Operand& operand) {
          return operand.kind == OperandKind::address && operand.base == OperandKind::symbol;
        });
    if (by_name) return;
  }
  op.kind = use.kind;
  op.bytes = use.bytes;
  op.tiles = use.tiles;
  const bool copies = use.kind == CheckKind::copy;
  std::vector<const ptx::Operand*> addresses;
  for (const ptx::Operand& operand : instruction.operands)
    if (operand.kind == OperandKind::address) addresses.push_back(&operand);
  const ptx::Space space = copies ? ptx::Space::shared : instruction.modifiers.space;
  if (!addresses.empty()) op.address = address_place(function, *addresses[0], space);
  if (addresses.size() > 1) op.from = address_place(function, *addresses[1], ptx::Space::global);
}

}  // namespace

std::unique_ptr<ObservedProgram> make_observed(const Program& written) {
  auto made = std::make_unique<ObservedProgram>();
  Program& program = made->program;
  program = written;
  program.tables = std::make_shared<Program::Tables>(*written.tables);
  std::vector<OpFn>& behind = program.tables->behind_leader;
  made->ops.resize(written.full.size());
  for (std::size_t i = 0; i < written.full.size(); ++i) {
    ObservedOp& op = made->ops[i];
    OpFn& masked = behind[i] != nullptr ? behind[i] : program.masked[i].fn;
    op.full = program.full[i].fn;
    op.masked = masked;
    op.origin = written.tables->origins[i];
    op.function = written.tables->function_at(static_cast<std::uint32_t>(i));
    if (op.origin.part == OpOrigin::Part::execute)
      describe_memory(op, program.module->functions[op.function], *op.origin.instruction);
    program.full[i].fn = observed;
    masked = observed;
  }
  return made;
}

std::string instruction_text(const ptx::Module& module, const ptx::Function& function,
                             const ptx::Instruction& instruction) {
  std::string text;
  if (instruction.guarded)
    text = format("@{}{} ", instruction.guard_negated ? "!" : "",
                  full_name(function.registers[instruction.guard]));
  // An opcode written with spaces inside is stored elsewhere; then the stored form is used.
  const char* const begin = module.text.data();
  const char* const end = begin + module.text.size();
  const char* at = instruction.opcode.data();
  if (std::less<>()(at, begin) || !std::less<>()(at, end))
    return text + std::string(instruction.opcode);
  bool space = false;
  for (; at != end && *at != ';'; ++at) {
    const bool blank = *at == ' ' || *at == '\t' || *at == '\n' || *at == '\r';
    if (!blank && space) text += ' ';
    if (!blank) text += *at;
    space = blank;
  }
  return text;
}

}  // namespace kernwright::sim
