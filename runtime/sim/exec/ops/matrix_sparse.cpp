// mma.sp: A holds half of each row's elements, and metadata tells which columns they stand for.
//
// Elements are kept by chunks of a row: two of four; of tf32 one of two; of 4-bit integers two
// pairs of four. A chunk's indices have two bits each (tf32: two for its one element, those of its
// 16-bit halves). The indices of rows g and g + 8 lie in the lanes 4 * g to 4 * g + 3, beginning at
// a lane that the selector gives. Of 16- and 32-bit elements each lane has 16 bits of both rows,
// else even lanes have 32 bits of the lower row and odd ones 32 of the upper. The elements of B
// that no index names take no part, so that an infinity among them does no harm.
//
// Undefined by the manual and taken literally: an index twice in a chunk, and indices in descending
// order with .sp::ordered_metadata.
#include "sim/exec/ops/matrix_multiply.h"

namespace kernwright::sim::KW_SIM_NS {
namespace {

using ptx::Type;

// Op::flags beside those of matrix_multiply.h.
constexpr int kBlocksShift = 7;     ///< half of A's registers, 2 bits
constexpr int kSelectorShift = 16;  ///< 2 bits

template <typename Format>
constexpr bool kWholeLanes = Format::kPerRegister >= 4;  ///< a lane's metadata is of one row

/// The indices of row `row` of A, the first chunk's in the lowest bits.
template <typename Format>
std::uint64_t indices_of(const std::uint32_t* metadata, int row, int blocks, int selector) {
  const int lanes = kWholeLanes<Format> ? 2 * blocks : blocks;
  const std::uint32_t* from = metadata + row % 8 * 4 + selector * lanes;
  std::uint64_t bits = 0;
  for (int i = 0; i < blocks; ++i) {
    if constexpr (kWholeLanes<Format>) {
      bits |= std::uint64_t{from[2 * i + row / 8]} << (32 * i);
    } else {
      bits |= std::uint64_t{from[i] >> (row / 8 * 16) & 0xffff} << (16 * i);
    }
  }
  return bits;
}

/// The column of A (and row of B) that a row's element `e` stands for.
template <typename Format>
int column_of(std::uint64_t indices, int e) {
  const auto index = [indices](int i) { return static_cast<int>(indices >> (2 * i) & 3); };
  if constexpr (Format::kPerRegister == 1) return 2 * e + index(2 * e) / 2;
  if constexpr (Format::kPerRegister == 8) return e / 4 * 8 + index(e / 2) * 2 + e % 2;
  return e / 2 * 4 + index(e);
}

template <typename Format, typename Sums>
const Op* multiply_sparse(const Op* op, Warp& warp) {
  using V = typename Format::Value;
  constexpr int kSteps = 4 * Format::kPerRegister, kTile = 8 * kSteps, kMostBlocks = 2;
  const int blocks = static_cast<int>(op->flags >> kBlocksShift & 3);
  const int selector = static_cast<int>(op->flags >> kSelectorShift & 3);
  const bool saturate = (op->flags & kSaturate) != 0;
  const bool kind_a = (op->flags & kKindA) != 0, kind_b = (op->flags & kKindB) != 0;
  const Fragment<std::uint32_t> a(op, warp, 1, op->a), b(op, warp, 2, op->b);
  const Fragment<typename Sums::Register> c(op, warp, 3, op->c), d(op, warp, 0, op->d);
  const std::uint32_t* const metadata = warp.reg<std::uint32_t>(op->e);
  alignas(64) V left[2 * kMostBlocks * kTile], right[2 * kMostBlocks * kTile];
  alignas(64) V sums[2 * 64];
  alignas(64) std::uint32_t products[2 * 64] = {};
  for (int i = 0; i < 2 * blocks; ++i) {
    Format::unpack(a[i], left + i * kTile, kind_a);
    unpack_rows<Format>(b[i], right + i * kTile, kind_b);
  }
  for (int half = 0; half < 2; ++half) {
    typename Sums::Register* const from[] = {c[half * Sums::kPerBlock],
                                             c[(half + 1) * Sums::kPerBlock - 1]};
    Sums::read(from, sums + half * 64);
  }
  for (int row = 0; row < 16; ++row) {
    const std::uint64_t indices = indices_of<Format>(metadata, row, blocks, selector);
    for (int e = 0; e < blocks * kSteps; ++e) {
      const V factor = left[(e / kSteps * 2 + row / 8) * kTile + row % 8 * kSteps + e % kSteps];
      const V* line = right + column_of<Format>(indices, e) * 8;
      for (int n = 0; n < 8; ++n) {
        if constexpr (std::is_same_v<V, float>) {
          sums[row * 8 + n] += factor * line[n];
        } else {
          products[row * 8 + n] += static_cast<std::uint32_t>(factor * line[n]);
        }
      }
    }
  }
  for (int half = 0; half < 2; ++half) {
    if constexpr (!std::is_same_v<V, float>)
      add_integers(sums + half * 64, products + half * 64, saturate);
    typename Sums::Register* const to[] = {d[half * Sums::kPerBlock],
                                           d[(half + 1) * Sums::kPerBlock - 1]};
    Sums::write(warp, to, sums + half * 64, saturate);
  }
  return op + 1;
}

template <typename Format, typename Sums>
OpPair sparse_pair() {
  return everybody_pair<multiply_sparse<Format, Sums>>(0);
}

OpPair by_types(const ptx::Modifiers& modifiers) {
  using Floats = WideSums<float>;
  switch (modifiers.type[1]) {
    case Type::f16:
      return modifiers.type[0] == Type::f16 ? sparse_pair<F16, HalfSums>()
                                            : sparse_pair<F16, Floats>();
    case Type::bf16:
      return sparse_pair<BF16, Floats>();
    case Type::tf32:
      return sparse_pair<TF32, Floats>();
    case Type::e4m3:
    case Type::e5m2:
      return sparse_pair<Float8, Floats>();
    case Type::s8:
    case Type::u8:
      return sparse_pair<Int8, WideSums<std::int32_t>>();
    case Type::s4:
    case Type::u4:
      return sparse_pair<Int4, WideSums<std::int32_t>>();
    default:
      return {};
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
