// Instructions with more operands than an op has fields: bulk copies, wgmma, textures, surfaces.
#include "sim/code/lower/lower.h"

#include "sim/code/wgmma_matrix.h"
#include "sim/ptx/isa_table.h"

#include <limits>
#include <utility>

namespace kernwright::sim {
namespace {

using ptx::Handler;
using ptx::OperandKind;

}  // namespace

/// wgmma: A, B's descriptor and scale-d, then a list of the other registers read: those of D and,
/// of a sparse A, the metadata. The rest are constants, already known to the handler.
void FunctionLowering::bind_product(const Inst& inst, LoweredOp& op) {
  const bool sparse = inst.modifiers.selector == kSparseA;
  const ptx::Operand& sums = inst.operands[0];
  op.d = vector(inst, sums, true);
  op.d2 = {Ref::Kind::fixed, kSinkOffset};
  op.count = static_cast<std::uint8_t>(sums.elements.size());
  op.sources[0] = source(inst, inst.operands[1]);
  op.sources[1] = source(inst, inst.operands[2]);
  op.sources[2] = source(inst, inst.operands[sparse ? 5 : 3]);
  Lowered::List reads{lowered_.lists[op.d.index].elements, false};
  if (sparse) {
    const ptx::Operand& metadata = inst.operands[3];
    const bool braces = metadata.kind == OperandKind::vector;
    reads.elements.push_back(source(inst, braces ? metadata.elements[0] : metadata));
  }
  lowered_.lists.push_back(std::move(reads));
  op.sources[3] = {Ref::Kind::list, static_cast<std::uint32_t>(lowered_.lists.size() - 1)};
  op.source_count = 4;
}

/// Bulk copies: sources in written order, the coordinates of a tensor behind its map with the
/// offsets of im2col in the same list, without the cache policy; displacements of the addresses in
/// imm, imm2 and table. wgmma: see bind_product().
bool FunctionLowering::bind_wide_operands(const Inst& inst, LoweredOp& op) {
  const Handler handler = inst.row->handler;
  if (inst.modifiers.geometry != ptx::Geometry::none) return bind_texture_operands(inst, op);
  if (handler == Handler::wgmma && inst.modifiers.verb == ptx::Verb::mma) {
    bind_product(inst, op);
    return true;
  }
  if (handler != Handler::cp_bulk) return false;
  const std::size_t count = inst.operands.size() - (inst.modifiers.cache_hint ? 1 : 0);
  int addresses = 0;
  std::size_t coordinates = 0;  // number of their list
  for (std::size_t i = 0; i < count; ++i) {
    const ptx::Operand& operand = inst.operands[i];
    if (operand.kind == OperandKind::vector) {
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
  return true;
}

/// Everything but the handle in lists: results or values read, the coordinates, stored values or
/// the offsets. Levels and gradients choose nothing and are left out.
bool FunctionLowering::bind_texture_operands(const Inst& inst, LoweredOp& op) {
  const bool reads = inst.operands[0].kind != OperandKind::address;
  const auto list = [&](const ptx::Operand& operand, bool is_destination) {
    if (operand.kind == OperandKind::vector) return vector(inst, operand, is_destination);
    ptx::Operand one;
    one.elements.push_back(operand);
    return vector(inst, one, is_destination);
  };
  op.d = op.d2 = {Ref::Kind::fixed, kSinkOffset};
  if (reads) op.d = list(inst.operands[0], true);
  const ptx::Operand& place = inst.operands[reads ? 1 : 0];
  std::int64_t displacement = 0;
  op.sources[0] = address(inst, place, displacement);
  ptx::Operand coordinates;
  coordinates.elements = place.elements;
  op.sources[1] = vector(inst, coordinates, false);
  op.source_count = 2;
  const bool has_offsets = inst.operands.size() > ptx::row_operands(*inst.row).required;
  if (!reads || has_offsets) op.sources[op.source_count++] = list(inst.operands.back(), false);
  return true;
}

}  // namespace kernwright::sim
