// Loads and stores beside each other, through one register and constants that are added to it.
#include "sim/check/object_loads.h"

#include "sim/ptx/isa.h"

#include <algorithm>

namespace kernwright::sim {

using ptx::Handler;
using ptx::Instruction;
using ptx::OperandKind;

namespace {

constexpr int kMostSteps = 4;
constexpr std::uint32_t kUsualAlignment = 8;

/// Of a load or store through a register the address, else null.
const ptx::Operand* place_of(const Instruction& one) {
  const Handler handler = one.row->handler;
  const bool loads = handler == Handler::ld || handler == Handler::ldu;
  if (!loads && handler != Handler::st) return nullptr;
  const ptx::Operand& place = one.operands[loads ? 1 : 0];
  return place.base == OperandKind::reg ? &place : nullptr;
}

}  // namespace

ObjectLoads::ObjectLoads(const ptx::Function& function, const std::vector<std::uint32_t>& blocks,
                         const std::vector<std::uint32_t>& writes,
                         const std::vector<std::uint32_t>& writers)
    : function_(function), blocks_(blocks), writes_(writes), writers_(writers) {
  for (std::uint32_t i = 0; i < function.body.size(); ++i) {
    if (place_of(function.body[i]) == nullptr) continue;
    const Piece piece = piece_of(i);
    pieces_[{piece.block, piece.root}].push_back(piece);
  }
}

ObjectLoads::Piece ObjectLoads::piece_of(std::uint32_t at) const {
  const Instruction& one = function_.body[at];
  std::uint32_t root = place_of(one)->reg;
  std::int64_t begin = place_of(one)->offset;
  for (int steps = 0; steps < kMostSteps && writes_[root] == 1; ++steps) {
    const Instruction& sum = function_.body[writers_[root]];
    if (sum.row->handler != Handler::add || sum.guarded ||
        sum.operands[1].kind != OperandKind::reg || sum.operands[2].kind != OperandKind::integer)
      break;
    root = sum.operands[1].reg;
    begin += static_cast<std::int64_t>(sum.operands[2].bits);
  }
  const std::int64_t bytes = ptx::bits(one.modifiers.type[0]) / 8 * one.modifiers.vector;
  const auto shape = static_cast<std::uint32_t>(one.modifiers.type[0]) << 8 | one.modifiers.vector;
  const bool stores = one.row->handler == Handler::st;
  return {blocks_[at], root, begin, begin + bytes, shape, stores};
}

std::uint32_t ObjectLoads::alignment_at(std::uint32_t load) const {
  if (place_of(function_.body[load]) == nullptr) return 0;
  const Piece piece = piece_of(load);
  // Code without optimisation takes words throughout, bytes for calls, and knows no space.
  const bool is_generic = function_.body[load].modifiers.space == ptx::Space::generic;
  const bool is_byte = piece.end - piece.begin == 1;
  std::int64_t begin = piece.begin, end = piece.end;
  for (bool grows = true; grows;) {
    grows = false;
    for (const Piece& other : pieces_.at({piece.block, piece.root})) {
      // A store from which the compiler knew all other bytes of what was loaded.
      if (other.stores && other.begin <= piece.begin && other.end >= piece.end &&
          other.shape != piece.shape)
        return kMostAlignment;
      if (other.stores || other.begin > end || other.end < begin) continue;
      if (other.shape != piece.shape) return kMostAlignment;
      if (other.begin >= begin && other.end <= end) continue;
      begin = std::min(begin, other.begin);
      end = std::max(end, other.end);
      grows = true;
    }
  }
  const bool is_alone = begin == piece.begin && end == piece.end;
  return is_alone || !is_generic ? 0 : is_byte ? kMostAlignment : kUsualAlignment;
}

}  // namespace kernwright::sim
