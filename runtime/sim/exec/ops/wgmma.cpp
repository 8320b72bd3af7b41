// wgmma.mma_async: each warp of a warpgroup multiplies its own 16 rows of A by all of B.
//
// The product is made when it is issued; what must not be touched before the wait that covers it is
// exec/warpgroup.h's. A matrix in shared memory is described by a 64-bit value: address, two
// strides and a swizzle, all in units of 16-byte chunks.
#include "sim/exec/ops/matrix_multiply.h"
#include "sim/exec/ops/memory_transfer.h"
#include "sim/exec/ops/wgmma_matrix.h"
#include "sim/exec/warpgroup.h"

namespace kernwright::sim::KW_SIM_NS {
namespace {

using ptx::Handler;
using ptx::OperandKind;
using ptx::Type;
using ptx::Verb;

/// The block as a register of 32 lanes: lane 4 * g + t holds bytes 4 * t and up of row g. False
/// after a finding.
[[gnu::always_inline]] inline bool load_block(const Op* op, Warp& warp, const SharedMatrix& matrix,
                                              unsigned row_block, unsigned k_block,
                                              std::uint32_t* reg) {
  alignas(64) std::byte image[8 * kMatrixChunk];
  for (unsigned i = 0; i < 8; ++i) {
    const std::uint64_t at = matrix.chunk(row_block, k_block, i);
    if (at + kMatrixChunk > warp.shared_bytes) [[unlikely]] {
      report_access(op, warp, std::countr_zero(warp.mask),
                    {ptx::Space::shared, AccessKind::read, at, kMatrixChunk, kMatrixChunk});
      return false;
    }
    std::memcpy(image + i * kMatrixChunk, warp.shared + at, kMatrixChunk);
  }
  if (!matrix.transposed()) {
    std::memcpy(reg, image, sizeof image);
    return true;
  }
  std::uint16_t from[64], to[64];
  std::memcpy(from, image, sizeof from);
  for (int i = 0; i < 64; ++i) to[i] = from[i % 8 * 8 + i / 8];
  std::memcpy(reg, to, sizeof to);
  return true;
}

/// Of B, 8 columns each; a register of D holds one or two of a lane's values.
unsigned column_blocks(const Op* op) { return op->count / ((op->flags & kHalves) != 0 ? 2u : 4u); }

/// What the op leaves in flight.
PendingProduct pending(const Op* op, const Warp& warp) {
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

/// Sums may be of another type than the registers of D hold. kPerBlock registers per 8 x 8 block.
template <typename Format, typename Sums, typename Step>
const Op* multiply_shared(const Op* op, Warp& warp) {
  using V = typename Format::Value;
  using Accumulator = V;
  constexpr int kSteps = 4 * Format::kPerRegister;
  const PendingProduct product = pending(op, warp);
  if (!warp.block->warpgroups->may_issue(op, warp, product)) return nullptr;
  alignas(64) V left[4 * 8 * kSteps], right[2 * kSteps * 8];
  if (!load_left<Format>(op, warp, left)) return nullptr;
  const int first = std::countr_zero(warp.mask);
  const SharedMatrix matrix(warp.reg<std::uint64_t>(op->b)[first], (op->flags & kTransposeB) != 0);
  const bool adds = (warp.pred(op->c) >> first & 1) != 0;
  const bool saturate = (op->flags & kSaturate) != 0;
  const std::uint32_t* lists = warp.program->lists.data() + op->d;
  const unsigned columns = column_blocks(op);
  for (unsigned n = 0; n < columns; ++n) {
    for (unsigned k = 0; k < 2; ++k) {
      alignas(64) std::uint32_t block[kLanes];
      if (!load_block(op, warp, matrix, n, k, block)) return nullptr;
      unpack_rows<Format>(block, right + k * 8 * kSteps, (op->flags & kKindB) != 0);
    }
    alignas(64) Accumulator sum[2 * 64] = {};
    typename Sums::Register* reg[2][Sums::kPerBlock];
    for (unsigned r = 0; r < 2; ++r) {
      for (unsigned i = 0; i < Sums::kPerBlock; ++i)
        reg[r][i] = warp.reg<typename Sums::Register>(lists[(2 * n + r) * Sums::kPerBlock + i]);
      if (adds) Sums::read(reg[r], sum + r * 64);
    }
    call_multiply_column<V, kSteps, Step>(left, right, sum, 2, 2, saturate);
    for (unsigned r = 0; r < 2; ++r) Sums::write(warp, reg[r], sum + r * 64, saturate);
  }
  warp.block->warpgroups->issue(warp, product);
  return op + 1;
}

const Op* nothing(const Op* op, Warp&) { return op + 1; }

template <typename Format, typename Sums, typename Step = MultiplyAdd>
OpPair multiply_pair_of(bool registers) {
  return everybody_pair<multiply_shared<Format, Sums, Step>>(registers ? kRegisters : 0);
}

OpPair choose(const ptx::Modifiers& modifiers, bool registers) {
  const bool half = modifiers.type[0] == Type::f16;
  switch (modifiers.type[1]) {
    case Type::f16:
      return half ? multiply_pair_of<F16, HalfSums>(registers)
                  : multiply_pair_of<F16, WideSums<float>>(registers);
    case Type::bf16:
      return multiply_pair_of<BF16, WideSums<float>>(registers);
    case Type::tf32:
      return multiply_pair_of<TF32, WideSums<float>>(registers);
    case Type::e4m3:
    case Type::e5m2:
      return half ? multiply_pair_of<Float8, HalfSums>(registers)
                  : multiply_pair_of<Float8, WideSums<float>>(registers);
    case Type::u8:
    case Type::s8:
      return multiply_pair_of<Int8, WideSums<std::int32_t>>(registers);
    case Type::b1:
      return multiply_pair_of<Bits, WideSums<std::uint32_t>, AndPopc>(registers);
    default:
      return {};
  }
}

/// Constants behind scale-d: the signs of A and B, then whether they are transposed.
bool read_constants(const ptx::Instruction& instruction, bool registers, std::uint32_t& flags) {
  const auto constant = [&](std::size_t i) {
    return static_cast<std::int32_t>(instruction.operands[i].bits);
  };
  const std::size_t count = instruction.operands.size();
  for (std::size_t i = 4; i < 6 && i < count; ++i) {
    if (constant(i) != 1 && constant(i) != -1) return false;
    if (constant(i) == -1) flags ^= kNegate;
  }
  for (std::size_t i = 6; i < count; ++i) {
    if (constant(i) != 0 && constant(i) != 1) return false;
    const bool is_a = i == 6 && !registers;
    if (constant(i) == 1) flags |= is_a ? kTransposeA : kTransposeB;
  }
  return true;
}

}  // namespace

OpPair select_wgmma(const ptx::Instruction& instruction, const OperandWidths&) {
  if (instruction.row->handler != Handler::wgmma) return {};
  const ptx::Modifiers& modifiers = instruction.modifiers;
  if (modifiers.verb == Verb::commit_group) return everybody_pair<commit_products>(0);
  if (modifiers.verb == Verb::wait_group) return everybody_pair<wait_for_products>(0);
  if (modifiers.verb != Verb::mma) return everybody_pair<nothing>(0);
  const bool registers = instruction.operands[1].kind == OperandKind::vector;
  OpPair pair = choose(modifiers, registers);
  if (pair.full == nullptr || !read_constants(instruction, registers, pair.flags)) return {};
  if (modifiers.satfinite) pair.flags |= kSaturate;
  if (modifiers.type[0] == Type::f16) pair.flags |= kHalves;
  if (is_kind_one(modifiers.type[1])) pair.flags |= kKindA;
  if (is_kind_one(modifiers.type[2])) pair.flags |= kKindB;
  return pair;
}

}  // namespace kernwright::sim::KW_SIM_NS
