// State spaces of named addresses, and the ways to a function's parameters.
#include "sim/code/lower/lower.h"

#include "base/format.h"
#include "sim/ptx/isa.h"

#include <cstddef>

namespace kernwright::sim {
namespace {

using ptx::Handler;
using ptx::OperandKind;
using ptx::Space;
using ptx::SymbolKind;

/// Whether `bytes` at base + offset lie within `limit` bytes. `offset` may be any number, the
/// others are small.
bool lies_within(std::int64_t base, std::int64_t offset, std::int64_t bytes, std::int64_t limit) {
  return offset >= -base && offset <= limit - base - bytes;
}

/// Whose one address lies in Modifiers::space.
bool has_one_space(Handler handler) {
  return handler == Handler::ld || handler == Handler::ldu || handler == Handler::st ||
         handler == Handler::atom || handler == Handler::red || handler == Handler::prefetch ||
         handler == Handler::ldmatrix || handler == Handler::stmatrix ||
         handler == Handler::mbarrier;
}

const char* name_of(Space space) {
  switch (space) {
    case Space::global: return ".global";
    case Space::constant: return ".const";
    case Space::shared: return ".shared";
    case Space::local: return ".local";
    default: return ".param";
  }
}

}  // namespace

ptx::Space FunctionLowering::space_of(const ptx::Operand& operand) const {
  switch (operand.symbol_kind) {
    case SymbolKind::variable: return function_.variables[operand.symbol_index].space;
    case SymbolKind::global: return context_.module.globals[operand.symbol_index].space;
    case SymbolKind::parameter:
    case SymbolKind::result: return Space::param;
    default: return Space::generic;
  }
}

/// Refuses what would reach a variable through another state space than its own.
void FunctionLowering::check_spaces(const Inst& inst) const {
  const Handler handler = inst.row->handler;
  const Space asked = inst.modifiers.space;
  for (const ptx::Operand& operand : inst.operands) {
    const bool is_base =
        operand.kind == OperandKind::address && operand.base == OperandKind::symbol;
    const bool is_value = operand.kind == OperandKind::symbol && handler == Handler::cvta;
    if (!is_base && !is_value) continue;
    if (operand.symbol_kind == SymbolKind::function) {
      if (is_value) continue;
      fail(inst, format("{} is a function, not a place in memory", operand.symbol));
    }
    const Space its = space_of(operand);
    const bool is_access = handler == Handler::ld || handler == Handler::st;
    bool fits = its != Space::param || (asked == Space::param && (is_access || is_value));
    if (has_one_space(handler) || is_value) {
      const bool shared = its == Space::shared && asked == Space::cluster;
      const bool generic = asked == Space::generic && its != Space::constant && its != Space::param;
      fits = asked == its || shared || generic;
    }
    if (fits) continue;
    fail(inst, format("{} lies in {}, which this instruction does not reach by a name",
                      operand.symbol, name_of(its)));
  }
}

const ptx::Instruction& FunctionLowering::in_space(const Inst& inst, Space space) {
  context_.tables.rewritten.push_back(inst);
  context_.tables.rewritten.back().modifiers.space = space;
  return context_.tables.rewritten.back();
}

/// The instruction that does the same in the state space where its variable or parameter lies.
const ptx::Instruction& FunctionLowering::in_its_space(const Inst& inst) {
  const Space asked = inst.modifiers.space;
  const Handler handler = inst.row->handler;
  const bool is_parameter = asked == Space::param && !function_.is_entry;
  const bool reads_copy =
      handler == Handler::ld || handler == Handler::st || handler == Handler::cvta;
  if (is_parameter && reads_copy) return in_space(inst, Space::local);
  if (asked != Space::generic || !has_one_space(handler)) return inst;
  for (const ptx::Operand& operand : inst.operands) {
    if (operand.kind != OperandKind::address || operand.base != OperandKind::symbol) continue;
    const Space its = space_of(operand);
    if (its == Space::shared || its == Space::local) return in_space(inst, its);
  }
  return inst;
}

bool FunctionLowering::has_parameter_copy() const {
  return context_.layout.parameter_copies[index_] != kDynamicOffset;
}

/// The first op of a function whose parameters' addresses are taken.
void FunctionLowering::copy_parameters() {
  LoweredOp op = internal(Internal::parameter_copy, nullptr);
  op.handlers.flags = info_.parameter_bytes;
  op.sources[0] = {Ref::Kind::area, kParameterArea};
  op.sources[1] = {Ref::Kind::fixed, lowered_.areas[kParameterArea].stride};
  op.sources[2] = {Ref::Kind::fixed, context_.layout.parameter_copies[index_]};
  op.source_count = 3;
  emit_plain(std::move(op));
}

/// ld.param and st.param: kernel parameters, and the variables of calls.
bool FunctionLowering::lower_parameter_access(const Inst& inst) {
  if (inst.modifiers.space != Space::param) return false;
  const bool is_load = inst.row->handler == Handler::ld;
  const ptx::Operand& at = inst.operands[is_load ? 1 : 0];
  if (at.base != OperandKind::symbol) return false;
  const bool is_parameter = at.symbol_kind == SymbolKind::parameter;
  if (is_parameter && !is_load) fail(inst, "a function cannot write its parameters");
  LoweredOp form;
  std::int64_t base = 0, limit = info_.parameter_bytes;
  if (is_parameter && function_.is_entry) {
    form = internal(Internal::load_parameter, &inst);
    form.pure = true;
    base = info_.parameters[at.symbol_index].offset;
  } else if (const std::optional<LanePlace> place = lane_place(at)) {
    form = internal(is_load ? Internal::load_lane : Internal::store_lane, &inst);
    form.sources[0] = {Ref::Kind::area, place->area};
    form.sources[1] = {Ref::Kind::fixed, place->stride};
    form.source_count = 2;
    base = place->offset;
    limit = lowered_.areas[place->area].bytes;
  } else {
    fail(inst, format("{} is no parameter", at.symbol));
  }
  const ptx::Operand& value = inst.operands[is_load ? 0 : 1];
  const bool is_vector = value.kind == OperandKind::vector;
  const std::size_t count = is_vector ? value.elements.size() : 1;
  const std::int64_t step = ptx::bits(inst.modifiers.type[0]) / 8;
  if (!lies_within(base, at.offset, step * static_cast<std::int64_t>(count), limit)) {
    fail(inst, format("offset {} lies outside {}", at.offset, at.symbol));
  }
  // Where the copy may have changed since, it holds what is read.
  if (is_parameter && !function_.is_entry && has_parameter_copy()) return false;
  for (std::size_t i = 0; i < count; ++i) {
    const ptx::Operand& part = is_vector ? value.elements[i] : value;
    LoweredOp op = form;
    op.handlers.flags = parameter_flags(inst.modifiers.type[0], width_of(part));
    op.imm = base + at.offset + static_cast<std::int64_t>(i) * step;
    if (i + 1 == count) op.part = OpOrigin::Part::execute;
    if (is_load) {
      op.d = destination(part);
    } else {
      op.sources[op.source_count++] = source(inst, part);
    }
    emit(std::move(op));
  }
  return true;
}

}  // namespace kernwright::sim
