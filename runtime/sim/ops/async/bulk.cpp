// cp.async.bulk, cp.reduce.async.bulk, st.async and red.async: their forms (exec/copy/bulk_ops.h).
#include "sim/exec/copy/bulk_ops.h"
#include "sim/exec/copy/bulk_reduce.h"
#include "sim/ops/lanes.h"
#include "sim/ptx/isa.h"

namespace kernwright::sim::KW_SIM_NS {
namespace {

using ptx::Handler;
using ptx::OperandKind;
using ptx::Space;
using ptx::Verb;

/// The addresses in 32-bit registers.
std::uint32_t narrow_addresses(const ptx::Instruction& instruction, const OperandWidths& widths) {
  std::uint32_t narrow = 0;
  unsigned address = 0;
  for (unsigned i = 0; i < instruction.operands.size(); ++i) {
    if (instruction.operands[i].kind != OperandKind::address) continue;
    if (widths[i] == 4) narrow |= 1u << address;
    ++address;
  }
  return narrow;
}

BulkForm::Kind bulk_kind(const ptx::Instruction& instruction) {
  const ptx::Modifiers& modifiers = instruction.modifiers;
  const bool tensor =
      !instruction.operands[0].elements.empty() ||
      (instruction.operands.size() > 1 && !instruction.operands[1].elements.empty());
  if (modifiers.verb == Verb::prefetch)
    return tensor ? BulkForm::tensor_prefetch : BulkForm::prefetch;
  if (modifiers.space == Space::global)
    return tensor ? BulkForm::tensor_to_global : BulkForm::to_global;
  if (tensor) return BulkForm::tensor_to_shared;
  return modifiers.space2 == Space::global ? BulkForm::to_shared : BulkForm::between_shared;
}

OpPair select_copy(const ptx::Instruction& instruction, const OperandWidths& widths,
                   BulkForm::Kind kind) {
  const ptx::Modifiers& modifiers = instruction.modifiers;
  BulkForm form;
  form.kind = kind;
  form.narrow = narrow_addresses(instruction, widths);
  form.rank = modifiers.vector;
  form.reduction = modifiers.atom;
  form.type = modifiers.type[0];
  if (kind == BulkForm::store) {
    if (ptx::bits(form.type) * modifiers.vector > 128) return {};
    // One value in braces is a list all the same.
    if (form.rank == 1 && instruction.operands[1].kind == OperandKind::vector) return {};
  } else {
    form.multicast = modifiers.multicast;
    form.local_target = modifiers.space == Space::shared;
    form.im2col = modifiers.im2col;
  }
  const bool tensor = kind == BulkForm::tensor_to_global || kind == BulkForm::tensor_to_shared;
  if (form.reduction != ptx::AtomOp::none && !tensor && !can_reduce(form.reduction, form.type))
    return {};
  return {bulk_copy, bulk_copy, form.pack()};
}

}  // namespace

OpPair select_bulk(const ptx::Instruction& instruction, const OperandWidths& widths) {
  switch (instruction.row->handler) {
    case Handler::cp_bulk: return select_copy(instruction, widths, bulk_kind(instruction));
    case Handler::cp_bulk_group:
      if (instruction.modifiers.verb == Verb::commit_group) return {bulk_commit, bulk_commit};
      return {bulk_wait, bulk_wait};
    case Handler::st_async:
    case Handler::red_async: return select_copy(instruction, widths, BulkForm::store);
    default: return {};
  }
}

}  // namespace kernwright::sim::KW_SIM_NS
