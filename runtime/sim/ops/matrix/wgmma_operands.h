// Shared by dense and sparse wgmma: their matrices in shared memory and their products in flight.
#pragma once

#include "sim/code/wgmma_matrix.h"
#include "sim/exec/warp/warpgroup.h"
#include "sim/ops/matrix/matrix_multiply.h"
#include "sim/ops/memory/memory_transfer.h"

namespace kernwright::sim::KW_SIM_NS {

/// The block as a register of 32 lanes: lane 4 * g + t holds bytes 4 * t and up of row g. False
/// after a finding.
[[gnu::always_inline]] inline bool load_block(const Op* op, Warp& warp, const SharedMatrix& matrix,
                                              unsigned row_block, unsigned k_block,
                                              std::uint32_t* reg) {
  alignas(64) std::byte image[8 * kMatrixChunk];
  for (unsigned i = 0; i < 8; ++i) {
    const std::uint64_t at = matrix.chunk(row_block, k_block, i);
    if (at + kMatrixChunk > warp.shared_bytes) [[unlikely]] {
      report_chunk(op, warp, at, matrix.leading());
      return false;
    }
    std::memcpy(image + i * kMatrixChunk, warp.shared + at, kMatrixChunk);
  }
  copy_tile(image, reg, matrix.transposed());
  return true;
}

/// Blocks of B, 8 columns each; a register of D holds one or two of a lane's values.
inline unsigned column_blocks(const Op* op) {
  return op->count / ((op->flags & kHalves) != 0 ? 2u : 4u);
}

/// The product of the op, in flight.
inline PendingProduct pending(const Op* op, const Warp& warp) {
  PendingProduct product;
  product.op = warp.op_index(op);
  product.registers = op->f;
  product.sums = op->count;
  product.inputs = (op->flags & kRegisters) == 0 ? 0 : 4;
  return product;
}

/// A's 16 rows as tiles [k block][row block][8][kSteps].
template <typename Format>
bool load_left(const Op* op, Warp& warp, typename Format::Value* left) {
  constexpr int kSteps = 4 * Format::kPerRegister;
  const bool kind = (op->flags & kKindA) != 0, registers = (op->flags & kRegisters) != 0;
  const std::uint32_t* lists = warp.program->lists.data();
  const int first = std::countr_zero(warp.mask);
  const SharedMatrix matrix(registers ? 0 : warp.reg<std::uint64_t>(op->a)[first],
                            (op->flags & kTransposeA) != 0);
  for (unsigned k = 0; k < 2; ++k) {
    for (unsigned r = 0; r < 2; ++r) {
      alignas(64) std::uint32_t block[kLanes];
      const std::uint32_t* reg = block;
      if (registers) {
        reg = warp.reg<std::uint32_t>(lists[op->a + 2 * k + r]);
      } else if (!load_block(op, warp, matrix, 2 * (warp.index % kWarpgroupWarps) + r, k, block)) {
        return false;
      }
      Format::unpack(reg, left + (k * 2 + r) * 8 * kSteps, kind);
    }
  }
  if ((op->flags & kNegate) != 0)
    for (int i = 0; i < 4 * 8 * kSteps; ++i) left[i] = -left[i];
  return true;
}

/// D = A * B + D, eight columns at a time, each with kDepth chunks of B's k: multiply(right, sums)
/// adds a product to two blocks of sums. Sums may be of another type than the registers of D hold.
/// Null after a finding.
template <typename Format, typename Sums, unsigned kDepth, typename F>
[[gnu::always_inline]] inline const Op* multiply_columns(const Op* op, Warp& warp, F multiply) {
  using V = typename Format::Value;
  constexpr unsigned kSteps = 4 * Format::kPerRegister;
  const int first = std::countr_zero(warp.mask);
  const SharedMatrix matrix(warp.reg<std::uint64_t>(op->b)[first], (op->flags & kTransposeB) != 0);
  const bool adds = (warp.pred(op->c) >> first & 1) != 0;
  const bool saturate = (op->flags & kSaturate) != 0;
  const std::uint32_t* lists = warp.program->lists.data() + op->d;
  const unsigned columns = column_blocks(op);
  alignas(64) V right[kDepth * kSteps * 8];
  for (unsigned n = 0; n < columns; ++n) {
    for (unsigned k = 0; k < kDepth; ++k) {
      alignas(64) std::uint32_t block[kLanes];
      if (!load_block(op, warp, matrix, n, k, block)) return nullptr;
      unpack_rows<Format>(block, right + k * 8 * kSteps, (op->flags & kKindB) != 0);
    }
    alignas(64) V sum[2 * 64] = {};
    typename Sums::Register* reg[2][Sums::kPerBlock];
    for (unsigned r = 0; r < 2; ++r) {
      for (unsigned i = 0; i < Sums::kPerBlock; ++i)
        reg[r][i] = warp.reg<typename Sums::Register>(lists[(2 * n + r) * Sums::kPerBlock + i]);
      if (adds) Sums::read(reg[r], sum + r * 64);
    }
    multiply(right, sum, saturate);
    for (unsigned r = 0; r < 2; ++r) Sums::write(warp, reg[r], sum + r * 64, saturate);
  }
  warp.block->warpgroups->issue(warp, pending(op, warp));
  return op + 1;
}

/// Constants after scale-d, from operand `first` on: the signs of A and B, then whether they are
/// transposed. False for constants invalid for the instruction.
inline bool read_constants(const ptx::Instruction& instruction, std::size_t first, bool registers,
                           std::uint32_t& flags) {
  const auto constant = [&](std::size_t i) {
    return static_cast<std::int32_t>(instruction.operands[i].bits);
  };
  const std::size_t count = instruction.operands.size();
  for (std::size_t i = first; i < first + 2 && i < count; ++i) {
    if (constant(i) != 1 && constant(i) != -1) return false;
    if (constant(i) == -1) flags ^= kNegate;
  }
  for (std::size_t i = first + 2; i < count; ++i) {
    if (constant(i) != 0 && constant(i) != 1) return false;
    const bool is_a = i == first + 2 && !registers;
    if (constant(i) == 1) flags |= is_a ? kTransposeA : kTransposeB;
  }
  return true;
}

/// The rest of Op::flags, by the types and modifiers.
inline void finish_flags(const ptx::Modifiers& modifiers, std::uint32_t& flags) {
  if (modifiers.satfinite) flags |= kSaturate;
  if (modifiers.type[0] == ptx::Type::f16) flags |= kHalves;
  if (is_kind_one(modifiers.type[1])) flags |= kKindA;
  if (is_kind_one(modifiers.type[2])) flags |= kKindB;
}

}  // namespace kernwright::sim::KW_SIM_NS
