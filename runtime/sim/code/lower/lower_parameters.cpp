// The ways to a function's parameters.
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

}  // namespace

bool FunctionLowering::has_parameter_copy() const {
  return context_.layout.parameter_copies[index_] != kDynamicOffset;
}

/// The first op of a function with addresses taken of its parameters.
void FunctionLowering::copy_parameters() {
  LoweredOp op = internal(Internal::parameter_copy, nullptr);
  op.handlers.flags = info_.parameter_bytes;
  op.sources[0] = {Ref::Kind::area, kParameterArea};
  op.sources[1] = {Ref::Kind::fixed, areas_.at(kParameterArea).stride};
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
  } else if (const std::optional<LaneAreas::Place> place = areas_.place(at)) {
    form = internal(is_load ? Internal::load_lane : Internal::store_lane, &inst);
    form.sources[0] = {Ref::Kind::area, place->area};
    form.sources[1] = {Ref::Kind::fixed, place->stride};
    form.source_count = 2;
    base = place->offset;
    limit = areas_.at(place->area).bytes;
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
  // The copy has the current value, because it may have changed.
  if (is_parameter && !function_.is_entry && has_parameter_copy()) return false;
  for (std::size_t i = 0; i < count; ++i) {
    const ptx::Operand& part = is_vector ? value.elements[i] : value;
    LoweredOp op = form;
    op.handlers.flags = parameter_flags(inst.modifiers.type[0], operand_width(part));
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
