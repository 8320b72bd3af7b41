// wgmma.mma_async.sp: A, in registers or in shared memory, holds half of each row's elements.
//
// The packed A is as deep as a dense one, so B is twice as deep: four chunks of k. Every warp has
// the metadata of its own 16 rows, laid out as for mma.sp of the same depth (matrix_sparse.h).
#include "sim/exec/warp/traps.h"
#include "sim/ops/matrix/matrix_sparse.h"
#include "sim/ops/matrix/wgmma_operands.h"

namespace kernwright::sim::KW_SIM_NS {
namespace {

using ptx::OperandKind;
using ptx::Type;

/// Contiguous rows of 32 bytes along k end after half of B's elements, and the descriptor has no
/// place for the rest.
bool has_whole_rows(const Op* op, std::uint64_t descriptor) {
  const bool short_rows = descriptor >> 62 == 3;
  return !short_rows || (op->flags & kTransposeB) != 0;
}

template <typename Format, typename Sums>
const Op* multiply_sparse_shared(const Op* op, Warp& warp) {
  using V = typename Format::Value;
  constexpr int kSteps = 4 * Format::kPerRegister;
  const int first = std::countr_zero(warp.mask);
  const std::uint64_t descriptor = warp.reg<std::uint64_t>(op->b)[first];
  if (!has_whole_rows(op, descriptor)) {
    return report_operand(op, warp, first,
                          "B of a sparse wgmma has 64 bytes of k, more than a row of its "
                          "descriptor's swizzle: use that of 64 or 128 bytes, or none",
                          descriptor);
  }
  if (!warp.block->warpgroups->may_issue(op, warp, pending(op, warp))) return nullptr;
  alignas(64) V left[4 * 8 * kSteps];
  if (!load_left<Format>(op, warp, left)) return nullptr;
  const std::uint32_t* const lists = warp.program->lists.data();
  SparseRows<V> rows;  // the metadata stands behind the sums that are read
  rows.template read<Format>(left, warp.reg<std::uint32_t>(lists[op->e + op->count]), 2,
                             (op->flags & kSecondPair) != 0 ? 1 : 0);
  return multiply_columns<Format, Sums, 4>(op, warp, [&](const V* right, V* sum, bool saturate) {
    multiply_sparse_rows(rows, right, sum, saturate);
  });
}

template <typename Format, typename Sums>
OpPair op_pair() {
  return everybody_pair<multiply_sparse_shared<Format, Sums>>(kSparse);
}

OpPair choose(const ptx::Modifiers& modifiers) {
  using Floats = WideSums<float>;
  const bool half = modifiers.type[0] == Type::f16;
  switch (modifiers.type[1]) {
    case Type::f16: return half ? op_pair<F16, HalfSums>() : op_pair<F16, Floats>();
    case Type::bf16: return op_pair<BF16, Floats>();
    case Type::tf32: return op_pair<TF32, Floats>();
    case Type::e4m3:
    case Type::e5m2: return half ? op_pair<Float8, HalfSums>() : op_pair<Float8, Floats>();
    case Type::u8:
    case Type::s8: return op_pair<Int8, WideSums<std::int32_t>>();
    default: return {};
  }
}

}  // namespace

OpPair select_wgmma_sparse(const ptx::Instruction& instruction, const OperandWidths&) {
  const ptx::Modifiers& modifiers = instruction.modifiers;
  if (instruction.row->handler != ptx::Handler::wgmma || modifiers.selector != kSparseA) return {};
  OpPair pair = choose(modifiers);
  const bool registers = instruction.operands[1].kind == OperandKind::vector;
  if (pair.full == nullptr || !read_constants(instruction, 6, registers, pair.flags)) return {};
  finish_flags(modifiers, pair.flags);
  if (registers) pair.flags |= kRegisters;
  if (instruction.operands[4].bits != 0) pair.flags |= kSecondPair;
  return pair;
}

}  // namespace kernwright::sim::KW_SIM_NS
