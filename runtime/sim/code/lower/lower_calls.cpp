// Calls: signatures, and the copies between them and registers.
#include "sim/code/lower/lower.h"

#include "base/format.h"

namespace kernwright::sim {
namespace {

using ptx::OperandKind;
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
    value.offset = areas_.variable_area(actual[i].symbol_index);
    value.stride = areas_.at(value.offset).stride;
    value.bytes = areas_.at(value.offset).bytes;
    value.target = slots[i].offset;
    if (value.bytes != slots[i].bytes) {
      fail(inst, format("{} has {} bytes where the function has {}", actual[i].symbol, value.bytes,
                        slots[i].bytes));
    }
    values.push_back(value);
  }
  return values;
}

FunctionLowering::Signature FunctionLowering::call_signature(const Inst& inst) const {
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
  const Signature signature = call_signature(inst);
  CallSite site;
  site.function = signature.function;
  site.arguments = call_values(inst, inst.operands[2], *signature.params, site.parameter_bytes);
  site.results = call_values(inst, inst.operands[0], *signature.returns, site.return_bytes);
  if (signature.builtin != nullptr && !suits(site, *signature.builtin)) {
    fail(inst, format("{} is declared with another signature: it {}", signature.builtin->name,
                      signature_text(*signature.builtin)));
  }
  site.block_offset = areas_.add(site.parameter_bytes);
  site.block_stride = areas_.at(site.block_offset).stride;
  site.return_offset = areas_.add(site.return_bytes);
  site.return_stride = areas_.at(site.return_offset).stride;

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
