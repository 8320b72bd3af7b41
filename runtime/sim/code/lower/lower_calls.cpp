// Calls: signatures, argument areas, and the copies between them and registers.
#include "sim/code/lower/lower.h"

#include "base/format.h"

#include <algorithm>

namespace kernwright::sim {
namespace {

using ptx::OperandKind;
using ptx::Space;
using ptx::SymbolKind;

}  // namespace

bool suits(const CallSite& site, const Builtin& builtin) {
  if (builtin.any_signature) return true;
  const std::size_t count = site.arguments.size();
  const std::size_t results = builtin.result != 0 ? 1 : 0;
  if (count > builtin.parameters.size() || site.results.size() != results) return false;
  if (count < builtin.parameters.size() && builtin.parameters[count] != 0) return false;
  std::uint32_t end = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t bytes = builtin.parameters[i];
    if (bytes == 0 || site.arguments[i].bytes != bytes) return false;
    end = (end + bytes - 1) / bytes * bytes;
    if (site.arguments[i].target != end) return false;
    end += bytes;
  }
  return results == 0 || site.results[0].bytes == builtin.result;
}

std::string signature_text(const Builtin& builtin) {
  std::string sizes;
  for (const std::uint32_t bytes : builtin.parameters) {
    if (bytes != 0) sizes += format("{}{}", sizes.empty() ? "" : ", ", bytes);
  }
  const std::string result = builtin.result != 0 ? format("{} bytes", builtin.result) : "nothing";
  return format("takes parameters of {} bytes and returns {}", sizes, result);
}

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

std::vector<CallValue> FunctionLowering::call_values(const Inst& inst, const ptx::Operand& list,
                                                     const std::vector<ptx::Variable>& formal,
                                                     std::uint32_t& block_bytes) {
  const std::vector<ptx::Operand>& actual = list.elements;
  std::vector<ParameterSlot> slots;
  block_bytes = pack_parameters(formal, slots);
  if (actual.size() != slots.size()) {
    fail(inst, format("{} {} where the function has {}", actual.size(),
                      &list == &inst.operands[0] ? "results" : "arguments", slots.size()));
  }
  std::vector<CallValue> values;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    CallValue value;
    value.offset = area_of_variable(actual[i].symbol_index);
    value.stride = lowered_.areas[value.offset].stride;
    value.bytes = lowered_.areas[value.offset].bytes;
    value.target = slots[i].offset;
    if (value.bytes != slots[i].bytes) {
      fail(inst, format("{} has {} bytes where the function has {}", actual[i].symbol, value.bytes,
                        slots[i].bytes));
    }
    values.push_back(value);
  }
  return values;
}

FunctionLowering::Signature FunctionLowering::signature_of(const Inst& inst) const {
  const ptx::Operand& callee = inst.operands[1];
  if (callee.kind == OperandKind::symbol && callee.symbol_kind == SymbolKind::function) {
    const ptx::Function& target = context_.module.functions[callee.symbol_index];
    if (target.is_entry) fail(inst, format("{} is a kernel and cannot be called", target.name));
    const Builtin* const builtin = context_.tables.builtins[callee.symbol_index];
    if (!target.has_body && builtin == nullptr) {
      fail(inst, format("the function {} is declared but defined nowhere", target.name));
    }
    return {callee.symbol_index, &target.params, &target.returns, builtin};
  }
  if (callee.kind != OperandKind::reg) fail(inst, "what is called is no function");
  if (inst.operands[3].kind == OperandKind::label) {
    const ptx::Label& label = function_.labels[inst.operands[3].label];
    if (label.is_prototype) return {kIndirect, &label.params, &label.returns, nullptr};
    if (!label.call_targets.empty()) {
      const ptx::Function& target = context_.module.functions[label.call_targets[0]];
      return {kIndirect, &target.params, &target.returns, nullptr};
    }
  }
  fail(inst, "an indirect call needs a .callprototype or .calltargets");
}

void FunctionLowering::lower_call(const Inst& inst) {
  const Signature signature = signature_of(inst);
  CallSite site;
  site.function = signature.function;
  site.arguments = call_values(inst, inst.operands[2], *signature.params, site.parameter_bytes);
  site.results = call_values(inst, inst.operands[0], *signature.returns, site.return_bytes);
  if (signature.builtin != nullptr && !suits(site, *signature.builtin)) {
    fail(inst, format("{} is declared with another signature: it {}", signature.builtin->name,
                      signature_text(*signature.builtin)));
  }
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
}

}  // namespace kernwright::sim
