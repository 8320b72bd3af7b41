// The instructions that reach a name, and their state spaces.
#include "sim/code/lower/named_spaces.h"

#include "base/format.h"
#include "sim/ptx/isa.h"

namespace kernwright::sim {
namespace {

using ptx::Handler;
using ptx::OperandKind;
using ptx::Space;
using ptx::SymbolKind;

/// Whether its only address lies in Modifiers::space.
bool has_one_space(Handler handler) {
  return handler == Handler::ld || handler == Handler::ldu || handler == Handler::st ||
         handler == Handler::atom || handler == Handler::red || handler == Handler::prefetch ||
         handler == Handler::ldmatrix || handler == Handler::stmatrix ||
         handler == Handler::mbarrier;
}

const char* space_name(Space space) {
  switch (space) {
    case Space::global: return ".global";
    case Space::constant: return ".const";
    case Space::shared: return ".shared";
    case Space::local: return ".local";
    default: return ".param";
  }
}

}  // namespace

ptx::Space NamedSpaces::operand_space(const ptx::Operand& operand) const {
  switch (operand.symbol_kind) {
    case SymbolKind::variable: return function_.variables[operand.symbol_index].space;
    case SymbolKind::global: return context_.module.globals[operand.symbol_index].space;
    case SymbolKind::parameter:
    case SymbolKind::result: return Space::param;
    default: return Space::generic;
  }
}

void NamedSpaces::check(const ptx::Instruction& inst) const {
  const Handler handler = inst.row->handler;
  const Space asked = inst.modifiers.space;
  for (const ptx::Operand& operand : inst.operands) {
    const bool is_base =
        operand.kind == OperandKind::address && operand.base == OperandKind::symbol;
    const bool is_value = operand.kind == OperandKind::symbol && handler == Handler::cvta;
    if (!is_base && !is_value) continue;
    if (operand.symbol_kind == SymbolKind::function) {
      if (is_value) continue;
      refuse(context_, function_, inst,
             format("{} is a function, not a place in memory", operand.symbol));
    }
    const Space its = operand_space(operand);
    const bool is_access = handler == Handler::ld || handler == Handler::st;
    bool fits = its != Space::param || (asked == Space::param && (is_access || is_value));
    if (has_one_space(handler) || is_value) {
      const bool shared = its == Space::shared && asked == Space::cluster;
      const bool generic = asked == Space::generic && its != Space::constant && its != Space::param;
      fits = asked == its || shared || generic;
    }
    if (fits) continue;
    refuse(context_, function_, inst,
           format("{} lies in {}, which this instruction does not reach by a name", operand.symbol,
                  space_name(its)));
  }
}

const ptx::Instruction& NamedSpaces::rewritten(const ptx::Instruction& inst, Space space) const {
  context_.tables.rewritten.push_back(inst);
  context_.tables.rewritten.back().modifiers.space = space;
  return context_.tables.rewritten.back();
}

const ptx::Instruction& NamedSpaces::in_its_space(const ptx::Instruction& inst) const {
  const Space asked = inst.modifiers.space;
  const Handler handler = inst.row->handler;
  const bool is_parameter = asked == Space::param && !function_.is_entry;
  const bool reads_copy =
      handler == Handler::ld || handler == Handler::st || handler == Handler::cvta;
  if (is_parameter && reads_copy) return rewritten(inst, Space::local);
  if (asked != Space::generic || !has_one_space(handler)) return inst;
  for (const ptx::Operand& operand : inst.operands) {
    if (operand.kind != OperandKind::address || operand.base != OperandKind::symbol) continue;
    const Space its = operand_space(operand);
    if (its == Space::shared || its == Space::local) return rewritten(inst, its);
  }
  return inst;
}

}  // namespace kernwright::sim
