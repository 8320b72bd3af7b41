// mma.sp: products of a sparse A with half of its elements kept (matrix_sparse.h).
#include "sim/ops/matrix/matrix_sparse.h"

namespace kernwright::sim::KW_SIM_NS {
namespace {

using ptx::Type;

// Op::flags beside those of matrix_multiply.h.
constexpr int kBlocksShift = 7;     ///< half of A's registers, 2 bits
constexpr int kSelectorShift = 16;  ///< 2 bits

template <typename Format, typename Sums>
const Op* multiply_sparse(const Op* op, Warp& warp) {
  using V = typename Format::Value;
  constexpr int kSteps = 4 * Format::kPerRegister, kTile = 8 * kSteps, kMostBlocks = 2;
  const int blocks = static_cast<int>(op->flags >> kBlocksShift & 3);
  const int selector = static_cast<int>(op->flags >> kSelectorShift & 3);
  const bool saturate = (op->flags & kSaturate) != 0;
  warp.charge(kProductCost);
  const bool kind_a = (op->flags & kKindA) != 0, kind_b = (op->flags & kKindB) != 0;
  const Fragment<std::uint32_t> a(op, warp, 1, op->a), b(op, warp, 2, op->b);
  const Fragment<typename Sums::Register> c(op, warp, 3, op->c), d(op, warp, 0, op->d);
  const std::uint32_t* const metadata = warp.reg<std::uint32_t>(op->e);
  alignas(64) V left[2 * kMostBlocks * kTile], right[2 * kMostBlocks * kTile];
  alignas(64) V sums[2 * 64];
  for (int i = 0; i < 2 * blocks; ++i) {
    Format::unpack(a[i], left + i * kTile, kind_a);
    unpack_rows<Format>(b[i], right + i * kTile, kind_b);
  }
  for (int half = 0; half < 2; ++half) {
    typename Sums::Register* const from[] = {c[half * Sums::kPerBlock],
                                             c[(half + 1) * Sums::kPerBlock - 1]};
    Sums::read(from, sums + half * 64);
  }
  SparseRows<V> rows;
  rows.template read<Format>(left, metadata, blocks, selector);
  multiply_sparse_rows(rows, right, sums, saturate);
  for (int half = 0; half < 2; ++half) {
    typename Sums::Register* const to[] = {d[half * Sums::kPerBlock],
                                           d[(half + 1) * Sums::kPerBlock - 1]};
    Sums::write(warp, to, sums + half * 64, saturate);
  }
  return op + 1;
}

template <typename Format, typename Sums>
OpPair sparse_pair() {
  return everybody_pair<multiply_sparse<Format, Sums>>();
}

OpPair by_types(const ptx::Modifiers& modifiers) {
  using Floats = WideSums<float>;
  switch (modifiers.type[1]) {
    case Type::f16:
      return modifiers.type[0] == Type::f16 ? sparse_pair<F16, HalfSums>()
                                            : sparse_pair<F16, Floats>();
    case Type::bf16: return sparse_pair<BF16, Floats>();
    case Type::tf32: return sparse_pair<TF32, Floats>();
    case Type::e4m3:
    case Type::e5m2: return sparse_pair<Float8, Floats>();
    case Type::s8:
    case Type::u8: return sparse_pair<Int8, WideSums<std::int32_t>>();
    case Type::s4:
    case Type::u4: return sparse_pair<Int4, WideSums<std::int32_t>>();
    default: return {};
  }
}

}  // namespace

OpPair select_matrix_sparse(const ptx::Instruction& instruction, const OperandWidths&) {
  if (instruction.row->handler != ptx::Handler::mma_sp) return {};
  const ptx::Modifiers& modifiers = instruction.modifiers;
  OpPair pair =
      finish_multiply(by_types(modifiers), instruction, modifiers.type[1], modifiers.type[2]);
  const auto blocks = static_cast<std::uint32_t>(instruction.operands[1].elements.size() / 2);
  pair.flags |= blocks << kBlocksShift;
  pair.flags |= static_cast<std::uint32_t>(instruction.operands[5].bits) << kSelectorShift;
  return pair;
}

}  // namespace kernwright::sim::KW_SIM_NS
