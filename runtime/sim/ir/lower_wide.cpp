// Instructions with more operands than an op has fields: bulk copies and wgmma.
#include "sim/ir/lower.h"

#include "sim/ptx/isa.h"

#include <algorithm>
#include <limits>

namespace kernwright::sim {
namespace {

using ptx::Handler;
using ptx::OperandKind;

}  // namespace

/// Bulk copies: sources in written order, the coordinates of a tensor behind its map with the
/// offsets of im2col in the same list, without the cache policy; displacements of the addresses in
/// imm, imm2 and table. wgmma: D, then A, B's descriptor and scale-d; what follows are constants
/// that the handler knows already.
bool FunctionLowering::bind_wide_operands(const Inst& inst, LoweredOp& op) {
  const Handler handler = inst.row->handler;
  const bool multiplies = handler == Handler::wgmma && inst.modifiers.verb == ptx::Verb::mma;
  if (handler != Handler::cp_bulk && !multiplies) return false;
  std::size_t count = inst.operands.size();
  if (handler == Handler::cp_bulk && inst.modifiers.cache_hint) --count;
  if (multiplies) count = std::min<std::size_t>(count, 4);
  int addresses = 0;
  std::size_t coordinates = 0;  // number of their list
  for (std::size_t i = 0; i < count; ++i) {
    const ptx::Operand& operand = inst.operands[i];
    if (multiplies && i == 0) {
      op.d = vector(inst, operand, true);
      op.d2 = {Ref::Kind::fixed, kSinkOffset};
      op.count = static_cast<std::uint8_t>(operand.elements.size());
      continue;
    }
    if (handler == Handler::cp_bulk && operand.kind == OperandKind::vector) {
      for (const ptx::Operand& element : operand.elements) {
        const Ref offset = source(inst, element);
        lowered_.lists[coordinates].elements.push_back(offset);
      }
      continue;
    }
    if (operand.kind != OperandKind::address) {
      op.sources[op.source_count++] = source(inst, operand);
      continue;
    }
    std::int64_t displacement = 0;
    op.sources[op.source_count++] = address(inst, operand, displacement);
    const bool fits = displacement >= std::numeric_limits<std::int32_t>::min() &&
                      displacement <= std::numeric_limits<std::int32_t>::max();
    if (!fits) fail(inst, "the displacement of an address is too large");
    if (addresses == 0) op.imm = displacement;
    if (addresses == 1) op.imm2 = static_cast<std::int32_t>(displacement);
    if (addresses == 2) op.table = static_cast<std::int32_t>(displacement);
    ++addresses;
    if (!operand.elements.empty()) {
      Lowered::List list;
      for (const ptx::Operand& element : operand.elements) {
        list.elements.push_back(source(inst, element));
      }
      lowered_.lists.push_back(std::move(list));
      coordinates = lowered_.lists.size() - 1;
      op.sources[op.source_count++] = {Ref::Kind::list, static_cast<std::uint32_t>(coordinates)};
    }
  }
  if (multiplies) {  // D is read as well
    Lowered::List sums = lowered_.lists[op.d.index];
    sums.is_destination = false;
    lowered_.lists.push_back(std::move(sums));
    op.sources[op.source_count++] = {Ref::Kind::list,
                                     static_cast<std::uint32_t>(lowered_.lists.size() - 1)};
  }
  return true;
}

}  // namespace kernwright::sim
