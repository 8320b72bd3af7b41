// D = A * B + C for the fragments of mma and wmma: one template for all shapes and formats.
#pragma once

#include "sim/code/program.h"
#include "sim/ops/floating/float_lanes.h"
#include "sim/ops/matrix/matrix_tiles.h"
#include "sim/ptx/isa.h"

#include <algorithm>
#include <limits>

namespace kernwright::sim::KW_SIM_NS {

/// Op::flags: bits 0-3 say that operand i (d, a, b, c) is one register without braces.
inline constexpr std::uint32_t kSaturate = 1 << 4;  ///< .satfinite
inline constexpr std::uint32_t kKindA = 1 << 5;     ///< the `kind` of A's and B's format
inline constexpr std::uint32_t kKindB = 1 << 6;
inline constexpr int kRoundingShift = 16;  ///< f64: rounding_flags(), 16 bits

/// The numbers of blocks of a product: of 8 rows, of 8 columns, and of k (each as deep as one
/// register). All mma and wmma forms share one function for each combination of formats.
struct AnyShape {
  static constexpr int kMostTiles = 8;   ///< of A or B, or registers of C or D
  static constexpr int kMostBlocks = 4;  ///< of k
  static constexpr int kMostSums = 4;    ///< row blocks times column blocks
  static constexpr int kShift = 7;       ///< in Op::flags, three bits each
  int rows, columns, blocks;
  explicit AnyShape(const Op* op)
      : rows(static_cast<int>(op->flags >> kShift & 7)),
        columns(static_cast<int>(op->flags >> (kShift + 3) & 7)),
        blocks(static_cast<int>(op->flags >> (kShift + 6) & 7)) {}
  static constexpr std::uint32_t flags(int rows, int columns, int blocks) {
    return static_cast<std::uint32_t>(rows | columns << 3 | blocks << 6) << kShift;
  }
};

/// A shape of its own function: its loops are unrolled.
template <int kRows, int kColumns, int kBlocks>
struct FixedShape {
  static constexpr int kMostTiles = kRows * kBlocks, kMostBlocks = kBlocks;
  static constexpr int kMostSums = kRows * kColumns;
  static constexpr int rows = kRows, columns = kColumns, blocks = kBlocks;
  explicit FixedShape(const Op*) {}
};

/// See Warp::charge().
inline constexpr unsigned kProductCost = 16;

/// Registers of operand `i` (0 = d, then a, b, c).
template <typename Register>
class Fragment {
 public:
  Fragment(const Op* op, const Warp& warp, int i, std::uint32_t operand)
      : frame_(warp.frame),
        one_(operand),
        list_(((op->flags >> i) & 1) != 0 ? &one_ : warp.program->lists.data() + operand) {}
  Fragment(const Fragment&) = delete;
  Fragment& operator=(const Fragment&) = delete;
  Register* operator[](int i) const { return reinterpret_cast<Register*>(frame_ + list_[i]); }

 private:
  std::byte* frame_;
  std::uint32_t one_;
  const std::uint32_t* list_;
};

/// Place of an 8-row block within a fragment of `columns` blocks a row. The layout is a stack of
/// m16 (or m8) instructions: the two row blocks of 16 rows alternate.
constexpr int block_index(int row_blocks, int columns, int row, int column) {
  return row_blocks == 1 ? column : (row / 2 * columns + column) * 2 + row % 2;
}

/// Accumulators of 32 bits or more: register 2 * block + j holds column 2 * t + j of row g.
template <typename V>
struct WideSums {
  using Register = V;
  static constexpr int kPerBlock = 2;
  static void read(V* const* reg, V* sum) {
    for (int i = 0; i < kLanes; ++i) {
      sum[2 * i] = reg[0][i];
      sum[2 * i + 1] = reg[1][i];
    }
  }
  static void write(const Warp& warp, V* const* reg, const V* sums, bool) {
    const V* sum = sums;
    [[maybe_unused]] alignas(64) V numbers[64];
    if constexpr (std::is_same_v<V, float>) {  // every NaN of a sum in f32 is the canonical one
      KW_LANES for (int i = 0; i < 64; ++i) numbers[i] = canonical(sums[i]);
      sum = numbers;
    }
    if (warp.mask == kAllLanes) {
      for (int i = 0; i < kLanes; ++i) {
        reg[0][i] = sum[2 * i];
        reg[1][i] = sum[2 * i + 1];
      }
    } else {
      for_active<true>(warp, [&](int i) {
        reg[0][i] = sum[2 * i];
        reg[1][i] = sum[2 * i + 1];
      });
    }
  }
};

/// f16 accumulators: added in float, rounded to f16 once at the end; .satfinite limits to +-65504.
struct HalfSums {
  using Register = std::uint32_t;
  static constexpr int kPerBlock = 1;
  static void read(Register* const* reg, float* sum) { F16::unpack(reg[0], sum); }
  static void write(const Warp& warp, Register* const* reg, const float* sum, bool saturate) {
    alignas(64) std::uint16_t bits[64];
    KW_LANES for (int i = 0; i < 64; ++i) {
      const std::uint16_t half = numeric::f32_to_f16(sum[i]);
      const bool infinite = (half & 0x7fff) == 0x7c00;
      bits[i] = saturate && infinite ? static_cast<std::uint16_t>(half - 1) : half;
    }
    alignas(64) std::uint32_t words[kLanes];
    std::memcpy(words, bits, sizeof words);
    if (warp.mask == kAllLanes) {
      std::memcpy(reg[0], words, sizeof words);
    } else {
      for_active<true>(warp, [&](int i) { reg[0][i] = words[i]; });
    }
  }
};

struct MultiplyAdd {
  double operator()(double a, double b, double sum) const { return std::fma(a, b, sum); }
};
struct AndPopc {
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b, std::uint32_t sum) const {
    return sum + static_cast<std::uint32_t>(std::popcount(a & b));
  }
};
struct XorPopc {
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b, std::uint32_t sum) const {
    return sum + static_cast<std::uint32_t>(std::popcount(a ^ b));
  }
};

/// sum[64] += products[64]: wrapping, or saturated once at the end (.satfinite).
inline void add_integers(std::int32_t* sum, const std::uint32_t* products, bool saturate) {
  constexpr std::int64_t kLow = std::numeric_limits<std::int32_t>::min();
  constexpr std::int64_t kHigh = std::numeric_limits<std::int32_t>::max();
  for (int i = 0; i < 64; ++i) {
    const std::int64_t exact = std::int64_t{sum[i]} + static_cast<std::int32_t>(products[i]);
    sum[i] = static_cast<std::int32_t>(saturate ? std::clamp(exact, kLow, kHigh) : exact);
  }
}

/// One column block: 8 columns of all rows. `left` in tiles [k block][row block][8][kSteps].
template <typename V, int kSteps, typename Step>
[[gnu::always_inline]] inline void multiply_column(const V* left, const V* right, V* sum, int rows,
                                                   int blocks, [[maybe_unused]] bool saturate) {
  constexpr std::size_t kTile = 8 * kSteps;
  const std::size_t stride = static_cast<std::size_t>(rows) * kTile;
  for (int row = 0; row < rows; ++row) {
    const V* a = left + static_cast<std::size_t>(row) * kTile;
    V* const to = sum + row * 64;
    if constexpr (std::is_same_v<V, std::int32_t>) {
      alignas(64) std::uint32_t products[64] = {};
      multiply_block<std::uint32_t, kSteps>(reinterpret_cast<const std::uint32_t*>(a), stride,
                                            reinterpret_cast<const std::uint32_t*>(right), products,
                                            blocks);
      add_integers(to, products, saturate);
    } else if constexpr (std::is_same_v<V, float>) {
      multiply_block<float, kSteps>(a, stride, right, to, blocks);
    } else {
      multiply_block_steps<V, kSteps>(a, stride, right, to, blocks, Step{});
    }
  }
}

/// One copy for all formats with the same multiplication.
template <typename V, int kSteps, typename Step>
[[gnu::noinline]] void call_multiply_column(const V* left, const V* right, V* sum, int rows,
                                            int blocks, bool saturate) {
  multiply_column<V, kSteps, Step>(left, right, sum, rows, blocks, saturate);
}

/// C and D are WideSums or HalfSums.
template <typename Format, typename C, typename D, typename Step, typename Shape>
const Op* multiply(const Op* op, Warp& warp) {
  using V = typename Format::Value;
  constexpr int kSteps = 4 * Format::kPerRegister, kTile = 8 * kSteps;
  const Shape shape(op);
  warp.charge(kProductCost);
  const Fragment<typename Format::Register> a(op, warp, 1, op->a), b(op, warp, 2, op->b);
  const Fragment<typename C::Register> c(op, warp, 3, op->c);
  const Fragment<typename D::Register> d(op, warp, 0, op->d);
  const bool saturate = (op->flags & kSaturate) != 0;
  const bool kind_a = (op->flags & kKindA) != 0, kind_b = (op->flags & kKindB) != 0;
  alignas(64) V left[Shape::kMostTiles * kTile], right[Shape::kMostBlocks * kTile];
  alignas(64) V sums[Shape::kMostSums * 64];
  for (int k = 0; k < shape.blocks; ++k)
    for (int r = 0; r < shape.rows; ++r)
      Format::unpack(a[block_index(shape.rows, shape.blocks, r, k)],
                     left + (k * shape.rows + r) * kTile, kind_a);
  for (int n = 0; n < shape.columns; ++n) {
    V* const sum = sums + n * shape.rows * 64;
    for (int k = 0; k < shape.blocks; ++k)
      unpack_rows<Format>(b[n * shape.blocks + k], right + k * kTile, kind_b);
    for (int r = 0; r < shape.rows; ++r) {
      const int at = block_index(shape.rows, shape.columns, r, n) * C::kPerBlock;
      typename C::Register* const from[] = {c[at], c[at + C::kPerBlock - 1]};
      C::read(from, sum + r * 64);
    }
    if constexpr (std::is_same_v<V, double>) {
      const void* const values[] = {left, right, sum};
      const RoundingScope scope(rounding_mode(op->flags >> kRoundingShift), values);
      call_multiply_column<V, kSteps, Step>(left, right, sum, shape.rows, shape.blocks, saturate);
    } else if constexpr (std::is_same_v<Shape, AnyShape>) {
      call_multiply_column<V, kSteps, Step>(left, right, sum, shape.rows, shape.blocks, saturate);
    } else {
      multiply_column<V, kSteps, Step>(left, right, sum, shape.rows, shape.blocks, saturate);
    }
  }
  // Written last: d may name the registers of a, b or c.
  for (int n = 0; n < shape.columns; ++n) {
    for (int r = 0; r < shape.rows; ++r) {
      const int at = block_index(shape.rows, shape.columns, r, n) * D::kPerBlock;
      typename D::Register* const to[] = {d[at], d[at + D::kPerBlock - 1]};
      D::write(warp, to, sums + (n * shape.rows + r) * 64, saturate);
    }
  }
  return op + 1;
}

/// A matrix instruction in masked code: all lanes first.
template <OpFn kRun>
const Op* multiply_converged(const Op* op, Warp& warp) {
  alignas(64) std::uint32_t everybody[kLanes];
  std::fill_n(everybody, kLanes, kAllLanes);
  return warp.converge(op, everybody) ? kRun(op, warp) : nullptr;
}

template <OpFn kRun>
OpPair everybody_pair(std::uint32_t flags = 0) {
  return {kRun, multiply_converged<kRun>, flags};
}

/// kK counts elements of the format (32 bits at a time for Bits).
template <typename Format, typename C, typename D, int kM, int kN, int kK,
          typename Step = MultiplyAdd>
OpPair multiply_pair() {
  constexpr int kRows = kM / 8, kColumns = kN / 8, kBlocks = kK / (4 * Format::kPerRegister);
  static_assert(kRows * kBlocks <= AnyShape::kMostTiles && kBlocks <= AnyShape::kMostBlocks);
  static_assert(kColumns * kBlocks <= AnyShape::kMostTiles);
  static_assert(kRows * kColumns <= AnyShape::kMostSums);
  constexpr std::uint32_t kFlags = AnyShape::flags(kRows, kColumns, kBlocks);
#ifndef KW_SIM_SMALL
  // The usual products of libraries.
  constexpr bool kHalf = std::is_same_v<Format, F16> || std::is_same_v<Format, BF16>;
  if constexpr (kHalf && kM == 16 && kN == 8 && kK == 16 && std::is_same_v<C, WideSums<float>>)
    return everybody_pair<multiply<Format, C, D, Step, FixedShape<kRows, kColumns, kBlocks>>>();
#endif
  return everybody_pair<multiply<Format, C, D, Step, AnyShape>>(kFlags);
}

inline bool is_kind_one(ptx::Type type) {
  return type == ptx::Type::s8 || type == ptx::Type::s4 || type == ptx::Type::e5m2;
}

/// Op::flags for the operands as written and the formats of A and B.
inline OpPair finish_multiply(OpPair pair, const ptx::Instruction& instruction, ptx::Type a,
                              ptx::Type b) {
  if (pair.full == nullptr || instruction.operands.size() < 4) return {};
  for (unsigned i = 0; i < 4; ++i) {
    if (instruction.operands[i].kind != ptx::OperandKind::vector) pair.flags |= 1u << i;
  }
  if (instruction.modifiers.satfinite) pair.flags |= kSaturate;
  if (a == ptx::Type::f64) {
    pair.flags |= rounding_flags(instruction.modifiers.rounding) << kRoundingShift;
  }
  if (is_kind_one(a)) pair.flags |= kKindA;
  if (is_kind_one(b)) pair.flags |= kKindB;
  return pair;
}

}  // namespace kernwright::sim::KW_SIM_NS
