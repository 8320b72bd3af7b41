// Calls: signatures, argument areas, and the copies between them and registers.
#include "sim/ir/lower.h"

#include "base/format.h"

#include <algorithm>

namespace kernwright::sim {
namespace {

using ptx::OperandKind;
using ptx::Space;
using ptx::SymbolKind;

/// Type as which a register of `bytes` is copied bit by bit.
ptx::Type bits_type(std::uint32_t bytes) {
  switch (bytes) {
    case 1:
      return ptx::Type::b8;
    case 2:
      return ptx::Type::b16;
    case 8:
      return ptx::Type::b64;
    case 16:
      return ptx::Type::b128;
    default:
      return ptx::Type::b32;
  }
}

}  // namespace

std::uint32_t FunctionLowering::add_area(std::uint32_t bytes) {
  lowered_.areas.push_back({bytes, std::max(16u, (bytes + 15) / 16 * 16)});
  return static_cast<std::uint32_t>(lowered_.areas.size() - 1);
}

std::uint32_t FunctionLowering::area_of_variable(std::uint32_t index) {
  std::uint32_t& area = variable_areas_[index];
  if (area == ~0u) area = add_area(static_cast<std::uint32_t>(function_.variables[index].bytes()));
  return area;
}

std::optional<FunctionLowering::LanePlace> FunctionLowering::lane_place(
    const ptx::Operand& operand) {
  LanePlace place;
  if (operand.symbol_kind == SymbolKind::variable &&
      function_.variables[operand.symbol_index].space == Space::param) {
    place.area = area_of_variable(operand.symbol_index);
  } else if (operand.symbol_kind == SymbolKind::parameter && !function_.is_entry) {
    place.area = kParameterArea;
    place.offset = info_.parameters[operand.symbol_index].offset;
  } else if (operand.symbol_kind == SymbolKind::result && !function_.is_entry) {
    std::vector<ParameterSlot> slots;
    pack_parameters(function_.returns, slots);
    place.area = kReturnArea;
    place.offset = slots[operand.symbol_index].offset;
  } else {
    return std::nullopt;
  }
  place.stride = lowered_.areas[place.area].stride;
  return place;
}

void FunctionLowering::lower_arguments(const Inst& inst, const std::vector<ptx::Variable>& formal,
                                       CallSite& site) {
  std::vector<ParameterSlot> slots;
  site.parameter_bytes = pack_parameters(formal, slots);
  const std::vector<ptx::Operand>& actual = inst.operands[2].elements;
  if (actual.size() != slots.size()) {
    fail(inst, format("{} arguments for {} parameters", actual.size(), slots.size()));
  }
  for (std::size_t i = 0; i < actual.size(); ++i) {
    CallValue value;
    value.target = slots[i].offset;
    if (const auto place = lane_place(actual[i])) {
      value.offset = place->area;
      value.bytes = std::min(slots[i].bytes, lowered_.areas[place->area].bytes);
    } else {
      value.offset = add_area(slots[i].bytes);
      value.bytes = slots[i].bytes;
      LoweredOp op = internal(Internal::store_lane, &inst);
      op.handlers.flags = parameter_flags(bits_type(value.bytes), width_of(actual[i]));
      op.sources[0] = {Ref::Kind::area, value.offset};
      op.sources[1] = {Ref::Kind::fixed, lowered_.areas[value.offset].stride};
      op.sources[2] = source(inst, actual[i]);
      op.source_count = 3;
      emit_plain(std::move(op));
    }
    value.stride = lowered_.areas[value.offset].stride;
    site.arguments.push_back(value);
  }
}

void FunctionLowering::lower_results(const Inst& inst, const std::vector<ptx::Variable>& formal,
                                     CallSite& site, std::vector<LoweredOp>& after) {
  std::vector<ParameterSlot> slots;
  site.return_bytes = pack_parameters(formal, slots);
  const std::vector<ptx::Operand>& actual = inst.operands[0].elements;
  if (actual.size() != slots.size()) {
    fail(inst, format("{} results where the function has {}", actual.size(), slots.size()));
  }
  for (std::size_t i = 0; i < actual.size(); ++i) {
    CallValue value;
    value.target = slots[i].offset;
    if (const auto place = lane_place(actual[i])) {
      value.offset = place->area;
      value.bytes = std::min(slots[i].bytes, lowered_.areas[place->area].bytes);
    } else {
      value.offset = add_area(slots[i].bytes);
      value.bytes = slots[i].bytes;
      LoweredOp op = internal(Internal::load_lane, &inst);
      op.handlers.flags = parameter_flags(bits_type(value.bytes), width_of(actual[i]));
      op.sources[0] = {Ref::Kind::area, value.offset};
      op.sources[1] = {Ref::Kind::fixed, lowered_.areas[value.offset].stride};
      op.source_count = 2;
      op.d = destination(actual[i]);
      after.push_back(std::move(op));
    }
    value.stride = lowered_.areas[value.offset].stride;
    site.results.push_back(value);
  }
  if (!after.empty()) after.back().part = OpOrigin::Part::results;
}

FunctionLowering::Signature FunctionLowering::signature_of(const Inst& inst) const {
  const ptx::Operand& callee = inst.operands[1];
  if (callee.kind == OperandKind::symbol && callee.symbol_kind == SymbolKind::function) {
    const ptx::Function& target = context_.module.functions[callee.symbol_index];
    if (target.is_entry) fail(inst, format("{} is a kernel and cannot be called", target.name));
    if (!target.has_body && context_.tables.builtins[callee.symbol_index] == nullptr) {
      fail(inst, format("the function {} is declared but defined nowhere", target.name));
    }
    return {callee.symbol_index, &target.params, &target.returns};
  }
  if (callee.kind != OperandKind::reg) fail(inst, "what is called is no function");
  if (inst.operands[3].kind == OperandKind::label) {
    const ptx::Label& label = function_.labels[inst.operands[3].label];
    if (label.is_prototype) return {kIndirect, &label.params, &label.returns};
    if (!label.call_targets.empty()) {
      const ptx::Function& target = context_.module.functions[label.call_targets[0]];
      return {kIndirect, &target.params, &target.returns};
    }
  }
  fail(inst, "an indirect call needs a .callprototype or .calltargets");
}

void FunctionLowering::lower_call(const Inst& inst) {
  const Signature signature = signature_of(inst);
  CallSite site;
  site.function = signature.function;
  std::vector<LoweredOp> after;
  lower_arguments(inst, *signature.params, site);
  lower_results(inst, *signature.returns, site, after);
  site.block_offset = add_area(site.parameter_bytes);
  site.block_stride = lowered_.areas.back().stride;
  site.return_offset = add_area(site.return_bytes);
  site.return_stride = lowered_.areas.back().stride;

  const bool is_indirect = site.function == kIndirect;
  LoweredOp op = internal(is_indirect ? Internal::call_indirect : Internal::call, &inst);
  op.spins = true;
  op.part = OpOrigin::Part::execute;
  op.table = static_cast<std::int32_t>(context_.tables.call_sites.size());
  if (is_indirect) {
    op.sources[0] = source(inst, inst.operands[1]);
    op.source_count = 1;
  }
  call_sites_.push_back(static_cast<std::uint32_t>(context_.tables.call_sites.size()));
  context_.tables.call_sites.push_back(std::move(site));
  emit_plain(std::move(op));
  start_block(new_block());
  current().is_meeting_point = true;  // lanes come back one group after the other
  for (LoweredOp& load : after) emit_plain(std::move(load));
}

}  // namespace kernwright::sim
