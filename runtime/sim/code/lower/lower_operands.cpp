// Operands: registers, constants, addresses, special registers and vectors as Refs.
#include "sim/code/lower/lower.h"

#include "base/format.h"
#include "sim/mem/address.h"

#include <algorithm>
#include <bit>

namespace kernwright::sim {
namespace {

using ptx::OperandKind;
using ptx::Space;
using ptx::SpecialRegister;
using ptx::SymbolKind;

std::uint8_t type_width(ptx::Type type) {
  if (type == ptx::Type::none) return 4;
  if (type == ptx::Type::pred) return kPredicateWidth;
  return static_cast<std::uint8_t>(std::max(2, (ptx::bits(type) + 7) / 8));
}

bool is_per_lane(SpecialRegister which) {
  switch (which) {
    case SpecialRegister::tid_x:
    case SpecialRegister::tid_y:
    case SpecialRegister::tid_z:
    case SpecialRegister::laneid:
    case SpecialRegister::lanemask_eq:
    case SpecialRegister::lanemask_le:
    case SpecialRegister::lanemask_lt:
    case SpecialRegister::lanemask_ge:
    case SpecialRegister::lanemask_gt: return true;
    default: return false;
  }
}

/// The same for a warp in every block of a launch on one worker.
bool is_same_in_all_blocks(SpecialRegister which) {
  switch (which) {
    case SpecialRegister::ntid_x:
    case SpecialRegister::ntid_y:
    case SpecialRegister::ntid_z:
    case SpecialRegister::nctaid_x:
    case SpecialRegister::nctaid_y:
    case SpecialRegister::nctaid_z:
    case SpecialRegister::dynamic_smem_size: return true;
    default: return is_per_lane(which);
  }
}

}  // namespace

std::uint8_t FunctionLowering::operand_width(const ptx::Operand& operand) const {
  switch (operand.kind) {
    case OperandKind::none:
    case OperandKind::label:
    case OperandKind::list: return 0;
    case OperandKind::reg: return register_width(operand.reg);
    case OperandKind::reg_pair:
      return register_width(operand.reg == ptx::kNoRegister ? operand.reg2 : operand.reg);
    case OperandKind::address:
      return operand.base == OperandKind::reg ? register_width(operand.reg) : 8;
    case OperandKind::vector:
      for (const ptx::Operand& element : operand.elements) {
        if (element.kind == OperandKind::reg) return register_width(element.reg);
      }
      return operand.elements.empty() ? 0 : operand_width(operand.elements.front());
    case OperandKind::symbol: return operand.type == ptx::Type::none ? 8 : type_width(operand.type);
    default: return type_width(operand.type);
  }
}

Ref FunctionLowering::constant(std::uint8_t bytes, std::uint64_t bits, bool in_shared) {
  if (bytes == kPredicateWidth) bits = bits != 0 ? 1 : 0;
  if (bytes > kPredicateWidth && bytes < 8) bits &= (std::uint64_t{1} << (8 * bytes)) - 1;
  const ConstantValue value{bytes, bits, in_shared};
  const auto next = static_cast<std::uint32_t>(lowered_.constants.size());
  const auto [known, is_new] = lowered_.constant_index.emplace(value, next);
  if (is_new) lowered_.constants.push_back(value);
  return {Ref::Kind::constant, known->second};
}

Ref FunctionLowering::constant(const ptx::Operand& operand) {
  const std::uint8_t bytes = operand_width(operand);
  std::uint64_t bits = operand.bits;
  if (operand.kind == OperandKind::float64 && bytes == 4) {
    bits = std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(bits)));
  } else if (operand.kind == OperandKind::float32 && bytes == 8) {
    const auto narrow = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    bits = std::bit_cast<std::uint64_t>(static_cast<double>(narrow));
  }
  return constant(bytes, bits);
}

Ref FunctionLowering::predicate(const Inst& inst, std::uint32_t reg, bool negated) {
  if (!negated) return {Ref::Kind::reg, reg};
  LoweredOp op = internal(Internal::not_predicate, &inst);
  op.sources[0] = {Ref::Kind::reg, reg};
  op.source_count = 1;
  op.pure = true;
  op.d = {Ref::Kind::reg, lowered_.add_register(kPredicateWidth)};
  const Ref result = op.d;
  emit_plain(std::move(op));
  return result;
}

Ref FunctionLowering::special(const Inst& inst, SpecialRegister which, std::uint8_t bytes,
                              std::optional<Ref> target) {
  if (bytes != kPredicateWidth && bytes != 2 && bytes != 4 && bytes != 8) {
    fail(inst, format("a special register has no {}-byte form", bytes));
  }
  LoweredOp op =
      internal(is_per_lane(which) ? Internal::special_lane : Internal::special_uniform, &inst);
  op.handlers.flags = static_cast<std::uint32_t>(which);
  op.imm = bytes;
  op.pure = is_same_in_all_blocks(which);
  op.d = target ? *target : Ref{Ref::Kind::reg, lowered_.add_register(bytes)};
  if (target) op.part = OpOrigin::Part::execute;
  const Ref result = op.d;
  emit_plain(std::move(op));
  return result;
}

Ref FunctionLowering::variable_address(const Inst& inst, const ptx::Variable& variable,
                                       std::uint32_t place, std::uint8_t bytes,
                                       std::int64_t offset) {
  if (variable.space == Space::global || variable.space == Space::constant) {
    const auto found = context_.symbols.find(std::string(variable.name));
    if (found == context_.symbols.end()) {
      fail(inst, format("the variable {} is declared but defined nowhere", variable.name));
    }
    return constant(bytes, found->second + static_cast<std::uint64_t>(offset));
  }
  if (variable.space == Space::shared && place != kDynamicOffset) {
    return constant(bytes, place + static_cast<std::uint64_t>(offset), true);
  }
  if (variable.space != Space::shared && variable.space != Space::local) {
    fail(inst, format("the address of {} cannot be taken", variable.name));
  }
  const auto distance = static_cast<std::uint64_t>(offset);
  if (variable.space == Space::local) return local_address(inst, place + distance, bytes);
  return frame_address(inst, Internal::dynamic_shared, distance, bytes);
}

Ref FunctionLowering::local_address(const Inst& inst, std::uint64_t offset, std::uint8_t bytes) {
  return frame_address(inst, Internal::local_address, offset, bytes);
}

/// An address computed by each warp, at `offset` bytes from the begin of `which`.
Ref FunctionLowering::frame_address(const Inst& inst, Internal which, std::uint64_t offset,
                                    std::uint8_t bytes) {
  LoweredOp op = internal(which, &inst);
  op.handlers.flags = bytes;
  op.imm = static_cast<std::int64_t>(offset);
  op.pure = function_.is_entry;
  op.d = {Ref::Kind::reg, lowered_.add_register(bytes)};
  const Ref result = op.d;
  emit_plain(std::move(op));
  return result;
}

Ref FunctionLowering::symbol(const Inst& inst, const ptx::Operand& operand, std::uint8_t bytes,
                             std::int64_t offset) {
  const std::uint32_t at = operand.symbol_index;
  switch (operand.symbol_kind) {
    case SymbolKind::function: return constant(bytes, kFunctionWindow + 16 * std::uint64_t{at});
    case SymbolKind::global:
      return variable_address(inst, context_.module.globals[at], context_.layout.shared_globals[at],
                              bytes, offset);
    case SymbolKind::variable:
      return variable_address(inst, function_.variables[at], context_.layout.variables[index_][at],
                              bytes, offset);
    case SymbolKind::parameter: {
      const std::uint64_t inside = info_.parameters[at].offset + static_cast<std::uint64_t>(offset);
      if (function_.is_entry) return constant(bytes, inside);
      if (!has_parameter_copy())
        fail(inst, format("the address of {} is not kept", operand.symbol));
      return local_address(inst, context_.layout.parameter_copies[index_] + inside, bytes);
    }
    default: fail(inst, format("the address of {} cannot be taken", operand.symbol));
  }
}

Ref FunctionLowering::address(const Inst& inst, const ptx::Operand& operand,
                              std::int64_t& displacement) {
  displacement = 0;
  if (operand.base == OperandKind::integer) {
    return constant(8, static_cast<std::uint64_t>(operand.offset),
                    inst.modifiers.space == Space::shared);
  }
  displacement = operand.offset;
  if (operand.base == OperandKind::reg) return {Ref::Kind::reg, operand.reg};
  return symbol(inst, operand, 8, 0);
}

Ref FunctionLowering::vector(const Inst& inst, const ptx::Operand& operand, bool is_destination) {
  Lowered::List list;
  list.is_destination = is_destination;
  for (const ptx::Operand& element : operand.elements) {
    list.elements.push_back(is_destination ? destination(element) : source(inst, element));
  }
  lowered_.lists.push_back(std::move(list));
  return {Ref::Kind::list, static_cast<std::uint32_t>(lowered_.lists.size() - 1)};
}

Ref FunctionLowering::destination(const ptx::Operand& operand) const {
  if (operand.kind == OperandKind::reg) return {Ref::Kind::reg, operand.reg};
  return {Ref::Kind::fixed, kSinkOffset};
}

Ref FunctionLowering::source(const Inst& inst, const ptx::Operand& operand) {
  switch (operand.kind) {
    case OperandKind::reg: return predicate(inst, operand.reg, operand.negated);
    case OperandKind::special: return special(inst, operand.special, type_width(operand.type));
    case OperandKind::symbol: return symbol(inst, operand, operand_width(operand), operand.offset);
    case OperandKind::vector: return vector(inst, operand, false);
    case OperandKind::sink: return constant(type_width(operand.type), 0);
    case OperandKind::integer:
    case OperandKind::float32:
    case OperandKind::float64: return constant(operand);
    default: fail(inst, "an operand of this kind cannot be read");
  }
}

void FunctionLowering::bind_operands(const Inst& inst, LoweredOp& op) {
  int addresses = 0;
  for (const ptx::Operand& operand : inst.operands) {
    if (operand.kind == OperandKind::none) continue;
    if (operand.kind == OperandKind::vector && op.count == 0) {
      op.count = static_cast<std::uint8_t>(operand.elements.size());
    }
    const bool writes = operand.is_destination ||
                        (operand.kind == OperandKind::vector && !operand.elements.empty() &&
                         operand.elements.front().is_destination);
    if (writes) {
      if (operand.kind == OperandKind::reg_pair) {
        const bool skips_first = operand.reg == ptx::kNoRegister;
        op.d = skips_first ? Ref{Ref::Kind::fixed, kSinkOffset} : Ref{Ref::Kind::reg, operand.reg};
        op.d2 = {Ref::Kind::reg, operand.reg2};
      } else {
        op.d = operand.kind == OperandKind::vector ? vector(inst, operand, true)
                                                   : destination(operand);
        op.d2 = {Ref::Kind::fixed, kSinkOffset};
      }
      continue;
    }
    if (op.source_count == op.sources.size()) fail(inst, "too many source operands");
    if (operand.kind == OperandKind::address) {
      if (addresses == 2) fail(inst, "more than two addresses");
      std::int64_t displacement = 0;
      op.sources[op.source_count++] = address(inst, operand, displacement);
      if (addresses++ == 0) {
        op.imm = displacement;
      } else {
        op.imm2 = static_cast<std::int32_t>(displacement);
        if (op.imm2 != displacement) fail(inst, "the displacement of an address is too large");
      }
    } else {
      op.sources[op.source_count++] = source(inst, operand);
    }
  }
  if (inst.selectors != 0) {
    if (op.source_count == op.sources.size()) fail(inst, "too many source operands");
    op.sources[op.source_count++] = constant(8, inst.selectors);
  }
}

}  // namespace kernwright::sim
