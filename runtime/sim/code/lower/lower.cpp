// Blocks, branches, guards, and the simple instructions with bound operands alone.
#include "sim/code/lower/lower.h"

#include "sim/code/fast_handlers.h"
#include "sim/ptx/isa.h"

#include <algorithm>

namespace kernwright::sim {
namespace {

using ptx::Handler;
using ptx::OperandKind;
using ptx::Space;
using Part = OpOrigin::Part;

/// Under a guard, these need a branch around them instead of a narrowed mask: they park the split
/// or depend on the lanes' grouping.
bool needs_branch(const ptx::Instruction& inst) {
  switch (inst.row->handler) {
    case Handler::brx:
    case Handler::call:
    case Handler::ret:
    case Handler::exit:
    case Handler::bar:
    case Handler::barrier:
    case Handler::barrier_cluster:
    case Handler::mbarrier:
    case Handler::nanosleep:
    case Handler::activemask:
    case Handler::elect: return true;
    default: return inst.modifiers.sync;
  }
}

/// A loop around such an instruction may wait for another thread's doing.
bool may_spin(const ptx::Instruction& inst) {
  using ptx::Semantics;
  switch (inst.row->handler) {
    case Handler::atom:
    case Handler::red:
    case Handler::mbarrier:
    case Handler::nanosleep: return true;
    case Handler::ld:
      return inst.modifiers.semantics == Semantics::volatile_ ||
             inst.modifiers.semantics == Semantics::relaxed ||
             inst.modifiers.semantics == Semantics::acquire;
    default: return false;
  }
}

/// Arithmetic on registers, without side effects.
bool is_pure(const ptx::Instruction& inst) {
  const Handler handler = inst.row->handler;
  const bool carries = inst.modifiers.cc || handler == Handler::addc || handler == Handler::subc ||
                       handler == Handler::madc;
  return !carries && (handler == Handler::mov || handler == Handler::cvt ||
                      handler == Handler::cvta || ptx::computes(handler));
}

/// Moves whole registers; addresses of global and constant memory are generic ones already.
bool is_copy(const ptx::Instruction& inst, const OperandWidths& widths) {
  const Handler handler = inst.row->handler;
  const Space space = inst.modifiers.space;
  const bool moves =
      handler == Handler::mov ||
      (handler == Handler::cvta && (space == Space::global || space == Space::constant));
  if (!moves || widths[0] != widths[1] || widths[0] == kPredicateWidth) return false;
  if (inst.operands[0].kind != OperandKind::reg) return false;
  return inst.operands[1].kind != OperandKind::vector;
}

}  // namespace

FunctionLowering::FunctionLowering(LoweringContext& context, std::uint32_t index)
    : context_(context),
      index_(index),
      function_(context.module.functions[index]),
      info_(context.layout.functions[index]),
      spaces_(context, function_),
      areas_(lowered_, function_, info_) {
  for (const ptx::Register& reg : function_.registers) {
    const int bits = ptx::bits(reg.type);
    lowered_.register_bytes.push_back(reg.type == ptx::Type::pred
                                          ? kPredicateWidth
                                          : static_cast<std::uint8_t>(std::max(2, (bits + 7) / 8)));
  }
  lowered_.local_bytes = info_.local_bytes;
}

Lowered FunctionLowering::run() {
  new_block();
  if (has_parameter_copy()) copy_parameters();
  split_at_labels();
  for (std::size_t i = 0; i < function_.body.size(); ++i) {
    if (block_at_[i] != ~0u) start_block(block_at_[i]);
    lower(function_.body[i]);
  }
  if (block_at_.back() != ~0u) start_block(block_at_.back());
  lower_leave(Internal::ret, function_.body.empty() ? nullptr : &function_.body.back());
  return std::move(lowered_);
}

void FunctionLowering::split_at_labels() {
  block_at_.assign(function_.body.size() + 1, ~0u);
  for (const ptx::Label& label : function_.labels) {
    if (label.is_prototype || block_at_[label.instruction] != ~0u) continue;
    block_at_[label.instruction] = new_block();
    lowered_.blocks.back().is_meeting_point = true;
  }
}

std::uint32_t FunctionLowering::new_block() {
  lowered_.blocks.emplace_back();
  return static_cast<std::uint32_t>(lowered_.blocks.size() - 1);
}

void FunctionLowering::start_block(std::uint32_t block) {
  // The current block falls through unless its end is set; an ended one is followed by a fresh,
  // unreachable block.
  current().end = LoweredBlock::End::fall;
  current().fall = block;
  current_ = block;
}

std::uint32_t FunctionLowering::label_block(std::uint32_t label) const {
  return block_at_[function_.labels[label].instruction];
}

void FunctionLowering::fail(const Inst& inst, const std::string& what) const {
  refuse(context_, function_, inst, what);
}

LoweredOp FunctionLowering::internal(Internal which, const Inst* inst) const {
  LoweredOp op;
  op.handlers = internal_handlers(which);
  op.origin = inst;
  return op;
}

void FunctionLowering::emit_plain(LoweredOp op) { current().ops.push_back(std::move(op)); }

void FunctionLowering::emit(LoweredOp op) {
  if (guard_) {
    LoweredOp guard = internal(guard_negated_ ? Internal::guard_not : Internal::guard, op.origin);
    guard.sources[0] = *guard_;
    guard.source_count = 1;
    // The last op of an instruction with several stands for it.
    if (op.part == Part::execute) guard.part = Part::guard;
    emit_plain(std::move(guard));
    op.guarded = true;
  }
  emit_plain(std::move(op));
}

void FunctionLowering::lower(const Inst& inst) {
  if (!inst.guarded || inst.row->handler == Handler::bra) return lower_unguarded(inst);
  const Ref condition{Ref::Kind::reg, inst.guard};
  if (!needs_branch(inst)) {
    guard_ = condition;
    guard_negated_ = inst.guard_negated;
    lower_unguarded(inst);
    guard_.reset();
    return;
  }
  const std::uint32_t inside = new_block(), after = new_block();
  LoweredBlock& block = current();
  block.end = LoweredBlock::End::branch;
  block.condition = condition;
  block.negated = !inst.guard_negated;
  block.taken = after;
  block.fall = inside;
  block.origin = &inst;
  current_ = inside;
  lower_unguarded(inst);
  start_block(after);
  current().is_meeting_point = true;
}

void FunctionLowering::lower_unguarded(const Inst& inst) {
  spaces_.check(inst);
  switch (inst.row->handler) {
    case Handler::bra: return lower_branch(inst);
    case Handler::brx: return lower_table(inst);
    case Handler::call: return lower_call(inst);
    case Handler::ret: return lower_leave(Internal::ret, &inst);
    case Handler::exit: return lower_leave(Internal::exit, &inst);
    case Handler::mov:
      if (lower_move(inst)) return;
      break;
    case Handler::ld:
    case Handler::st:
      if (lower_parameter_access(inst)) return;
      break;
    default: break;
  }
  lower_generic(spaces_.in_its_space(inst));
}

void FunctionLowering::lower_branch(const Inst& inst) {
  const std::uint32_t target = label_block(inst.operands[0].label);
  const std::uint32_t next = new_block();
  LoweredBlock& block = current();
  block.origin = &inst;
  block.taken = target;
  block.end = LoweredBlock::End::jump;
  if (inst.guarded) {
    block.end = LoweredBlock::End::branch;
    block.condition = {Ref::Kind::reg, inst.guard};
    block.negated = inst.guard_negated;
    block.fall = next;
  }
  current_ = next;
}

void FunctionLowering::lower_table(const Inst& inst) {
  const ptx::Label& targets = function_.labels[inst.operands[1].label];
  if (targets.branch_targets.empty()) fail(inst, "the label names no .branchtargets list");
  const Ref index = source(inst, inst.operands[0]);
  const std::uint32_t next = new_block();
  LoweredBlock& block = current();
  block.origin = &inst;
  block.end = LoweredBlock::End::table;
  block.condition = index;
  for (const std::uint32_t label : targets.branch_targets) {
    block.table.push_back(label_block(label));
  }
  current_ = next;
}

void FunctionLowering::lower_leave(Internal which, const Inst* inst) {
  LoweredOp op = internal(which, inst);
  // A function may end without ret or exit.
  const bool is_written = inst != nullptr && (inst->row->handler == Handler::ret ||
                                              inst->row->handler == Handler::exit);
  if (is_written) op.part = Part::execute;
  emit_plain(std::move(op));
  const std::uint32_t next = new_block();
  current().end = LoweredBlock::End::leave;
  current_ = next;
}

bool FunctionLowering::lower_move(const Inst& inst) {
  const ptx::Operand& from = inst.operands[1];
  const ptx::Operand& to = inst.operands[0];
  if (from.kind != OperandKind::special || to.kind != OperandKind::reg || guard_) return false;
  special(inst, from.special, register_width(to.reg), destination(to));
  return true;
}

void FunctionLowering::lower_generic(const Inst& inst) {
  OperandWidths widths;
  if (inst.operands.size() > widths.bytes.size()) fail(inst, "too many operands");
  for (std::size_t i = 0; i < inst.operands.size(); ++i) {
    widths.bytes[i] = operand_width(inst.operands[i]);
  }
  LoweredOp op;
  op.handlers = select_handlers(inst, widths);
  if (op.handlers.full == nullptr) fail(inst, "this form is not simulated");
  op.origin = &inst;
  op.whole = true;
  op.part = Part::execute;
  op.spins = may_spin(inst);
  op.pure = is_pure(inst);
  if (inst.modifiers.space == Space::shared) op.fixed = fixed_handler(inst, widths);
  op.copies = is_copy(inst, widths);
  if (!bind_wide_operands(inst, op)) bind_operands(inst, op);
  emit(std::move(op));
}

}  // namespace kernwright::sim
