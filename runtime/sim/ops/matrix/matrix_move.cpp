// ldmatrix, stmatrix, movmatrix: 8x8 tiles of 16-bit elements between shared memory and registers.
#include "sim/ops/matrix/matrix_multiply.h"
#include "sim/ops/memory/memory_transfer.h"

namespace kernwright::sim::KW_SIM_NS {
namespace {

using ptx::Handler;

// Op::flags beside those of memory_plan.h.
constexpr std::uint32_t kTranspose = 1 << 8;
constexpr std::uint32_t kOneRegister = 1 << 9;  ///< the register operand has no braces
constexpr std::uint32_t kCountShift = 10;       ///< number of tiles

constexpr int kRowBytes = 16;

std::byte* tile_register(const Op* op, const Warp& warp, std::uint32_t operand, int tile) {
  if ((op->flags & kOneRegister) != 0) return warp.frame + operand;
  return warp.frame + warp.program->lists.data()[operand + static_cast<unsigned>(tile)];
}

/// Host addresses of the rows given by lanes 0 to 8 * tiles - 1; null for exited lanes. False after
/// a fault.
bool locate_rows(const Op* op, Warp& warp, AccessKind kind, int rows, std::byte** out) {
  alignas(64) std::uint64_t address[kLanes];
  lane_addresses(op, warp, address);
  const bool generic = op_space(op) == ptx::Space::generic;
  const std::uint64_t window = generic ? kSharedWindow : 0;
  for (int i = 0; i < rows; ++i) {
    out[i] = nullptr;
    if (((warp.mask >> i) & 1) == 0) continue;
    const std::uint64_t offset = address[i] - window;
    if (offset <= warp.shared_bytes && warp.shared_bytes - offset >= kRowBytes &&
        offset % kRowBytes == 0) {
      out[i] = warp.shared + offset;
      continue;
    }
    out[i] = locate(op, warp, i, {op_space(op), kind, address[i], kRowBytes, kRowBytes});
    if (out[i] == nullptr) return false;
  }
  return true;
}

const Op* load_tiles(const Op* op, Warp& warp) {
  const int tiles = static_cast<int>(op->flags >> kCountShift);
  std::byte* rows[kLanes];
  if (!locate_rows(op, warp, AccessKind::read, tiles * 8, rows)) return nullptr;
  for (int tile = 0; tile < tiles; ++tile) {
    alignas(64) std::byte image[8 * kRowBytes] = {};
    for (int r = 0; r < 8; ++r) {
      const std::byte* row = rows[tile * 8 + r];
      if (row != nullptr) std::memcpy(image + r * kRowBytes, row, kRowBytes);
    }
    copy_tile(image, tile_register(op, warp, op->d, tile), (op->flags & kTranspose) != 0);
  }
  return op + 1;
}

const Op* store_tiles(const Op* op, Warp& warp) {
  const int tiles = static_cast<int>(op->flags >> kCountShift);
  std::byte* rows[kLanes];
  if (!locate_rows(op, warp, AccessKind::write, tiles * 8, rows)) return nullptr;
  for (int tile = 0; tile < tiles; ++tile) {
    alignas(64) std::byte image[8 * kRowBytes];
    copy_tile(tile_register(op, warp, op->b, tile), image, (op->flags & kTranspose) != 0);
    for (int r = 0; r < 8; ++r) {
      std::byte* row = rows[tile * 8 + r];
      if (row != nullptr) std::memcpy(row, image + r * kRowBytes, kRowBytes);
    }
  }
  return op + 1;
}

const Op* move_tile(const Op* op, Warp& warp) {
  copy_tile(warp.frame + op->a, warp.frame + op->d, true);
  return op + 1;
}

std::uint32_t tile_flags(const ptx::Instruction& instruction, const OperandWidths& widths,
                         unsigned registers) {
  const ptx::Modifiers& modifiers = instruction.modifiers;
  std::uint32_t flags = memory_flags(modifiers, widths[1 - registers]);
  if (modifiers.trans) flags |= kTranspose;
  if (instruction.operands[registers].kind != ptx::OperandKind::vector) flags |= kOneRegister;
  return flags | std::uint32_t{modifiers.vector} << kCountShift;
}

}  // namespace

OpPair select_matrix_move(const ptx::Instruction& instruction, const OperandWidths& widths) {
  switch (instruction.row->handler) {
    case Handler::ldmatrix: return everybody_pair<load_tiles>(tile_flags(instruction, widths, 0));
    case Handler::stmatrix: return everybody_pair<store_tiles>(tile_flags(instruction, widths, 1));
    case Handler::movmatrix: return everybody_pair<move_tile>();
    default: return {};
  }
}

}  // namespace kernwright::sim::KW_SIM_NS
