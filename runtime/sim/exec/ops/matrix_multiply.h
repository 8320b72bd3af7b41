// D = A * B + C for the fragments of mma and wmma: one template for all shapes and formats.
#pragma once

#include "sim/exec/ops/matrix_tiles.h"
#include "sim/ir/program.h"
#include "sim/ptx/isa.h"

#include <algorithm>
#include <cfenv>
#include <limits>

namespace kernwright::sim::KW_SIM_NS {

/// Op::flags: bits 0-3 say that operand i (d, a, b, c) is one register without braces.
inline constexpr std::uint32_t kSaturate = 1 << 4;  ///< .satfinite
inline constexpr std::uint32_t kKindA = 1 << 5;     ///< the `kind` of A's and B's format
inline constexpr std::uint32_t kKindB = 1 << 6;
inline constexpr int kRoundingShift = 16;  ///< f64: the host's rounding mode, 16 bits

/// All lanes of a warp take part in a matrix instruction: Warp::converge's masks.
alignas(64) inline constexpr std::uint32_t kEverybody[kLanes] = {
    kAllLanes, kAllLanes, kAllLanes, kAllLanes, kAllLanes, kAllLanes, kAllLanes, kAllLanes,
    kAllLanes, kAllLanes, kAllLanes, kAllLanes, kAllLanes, kAllLanes, kAllLanes, kAllLanes,
    kAllLanes, kAllLanes, kAllLanes, kAllLanes, kAllLanes, kAllLanes, kAllLanes, kAllLanes,
    kAllLanes, kAllLanes, kAllLanes, kAllLanes, kAllLanes, kAllLanes, kAllLanes, kAllLanes};

/// Registers of operand `i` (0 = d, then a, b, c).
template <typename Register, int kCount>
struct Fragment {
  Register* reg[kCount];
  Fragment(const Op* op, const Warp& warp, int i, std::uint32_t operand) {
    const bool scalar = ((op->flags >> i) & 1) != 0;
    const std::uint32_t* lists = warp.program->lists.data();
    for (int r = 0; r < kCount; ++r)
      reg[r] = warp.reg<Register>(scalar ? operand : lists[operand + static_cast<unsigned>(r)]);
  }
};

/// Place of an 8-row block within a fragment that is `columns` blocks wide. The layout is that of
/// m16 (or m8) instructions, stacked: the two row blocks of 16 rows alternate.
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
  static void write(const Warp& warp, V* const* reg, const V* sum, bool) {
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
template <typename V, int kRowBlocks, int kBlocks, int kSteps, typename Step>
[[gnu::always_inline]] inline void multiply_column(const V* left, const V* right, V* sum,
                                                   [[maybe_unused]] bool saturate) {
  constexpr std::size_t kTile = 8 * kSteps, kStride = kRowBlocks * kTile;
  for (std::size_t row = 0; row < kRowBlocks; ++row) {
    const V* a = left + row * kTile;
    if constexpr (std::is_same_v<V, std::int32_t>) {
      alignas(64) std::uint32_t products[64] = {};
      multiply_block<std::uint32_t, kBlocks, kSteps>(
          reinterpret_cast<const std::uint32_t*>(a), kStride,
          reinterpret_cast<const std::uint32_t*>(right), products);
      add_integers(sum + row * 64, products, saturate);
    } else if constexpr (std::is_same_v<V, float>) {
      multiply_block<float, kBlocks, kSteps>(a, kStride, right, sum + row * 64);
    } else {
      multiply_block_with<V, kBlocks, kSteps>(a, kStride, right, sum + row * 64, Step{});
    }
  }
}

/// The host's rounding mode for the time of a multiplication of f64. `values` keeps the compiler
/// from computing with them outside of that time.
class RoundingScope {
 public:
  RoundingScope(const Op* op, const void* values)
      : mode_(static_cast<int>(op->flags >> kRoundingShift)), values_(values) {
    if (mode_ == FE_TONEAREST) return;
    std::fesetround(mode_);
    asm volatile("" : : "r"(values_) : "memory");
  }
  ~RoundingScope() {
    if (mode_ == FE_TONEAREST) return;
    asm volatile("" : : "r"(values_) : "memory");
    std::fesetround(FE_TONEAREST);
  }
  RoundingScope(const RoundingScope&) = delete;
  RoundingScope& operator=(const RoundingScope&) = delete;

 private:
  int mode_;
  const void* values_;
};
static_assert(FE_TONEAREST == 0);

/// kK counts elements of the format (32 bits at a time for Bits). C and D are WideSums or HalfSums.
template <typename Format, typename C, typename D, int kM, int kN, int kK, typename Step,
          bool kMasked>
const Op* multiply(const Op* op, Warp& warp) {
  if (kMasked && !warp.converge(op, kEverybody)) return nullptr;
  using V = typename Format::Value;
  using Register = typename Format::Register;
  constexpr int kRows = kM / 8, kColumns = kN / 8, kSteps = 4 * Format::kPerRegister;
  constexpr int kBlocks = kK / kSteps;
  const Fragment<Register, kRows * kBlocks> a(op, warp, 1, op->a);
  const Fragment<Register, kColumns * kBlocks> b(op, warp, 2, op->b);
  const Fragment<typename C::Register, kRows * kColumns * C::kPerBlock> c(op, warp, 3, op->c);
  const Fragment<typename D::Register, kRows * kColumns * D::kPerBlock> d(op, warp, 0, op->d);
  const bool saturate = (op->flags & kSaturate) != 0;
  alignas(64) V left[kM * kK], right[kK * 8], sum[kColumns][kM * 8];
  for (int k = 0; k < kBlocks; ++k)
    for (int r = 0; r < kRows; ++r)
      Format::unpack(a.reg[block_index(kRows, kBlocks, r, k)], left + (k * kRows + r) * 8 * kSteps,
                     (op->flags & kKindA) != 0);
  for (int n = 0; n < kColumns; ++n) {
    for (int k = 0; k < kBlocks; ++k)
      unpack_rows<Format>(b.reg[n * kBlocks + k], right + k * 8 * kSteps,
                          (op->flags & kKindB) != 0);
    for (int r = 0; r < kRows; ++r)
      C::read(c.reg + block_index(kRows, kColumns, r, n) * C::kPerBlock, sum[n] + r * 64);
    if constexpr (std::is_same_v<V, double>) {
      const void* const values[] = {left, right, sum};
      const RoundingScope scope(op, values);
      multiply_column<V, kRows, kBlocks, kSteps, Step>(left, right, sum[n], saturate);
    } else {
      multiply_column<V, kRows, kBlocks, kSteps, Step>(left, right, sum[n], saturate);
    }
  }
  // Written last: d may name the registers of a, b or c.
  for (int n = 0; n < kColumns; ++n)
    for (int r = 0; r < kRows; ++r)
      D::write(warp, d.reg + block_index(kRows, kColumns, r, n) * D::kPerBlock, sum[n] + r * 64,
               saturate);
  return op + 1;
}

template <typename Format, typename C, typename D, int kM, int kN, int kK,
          typename Step = MultiplyAdd>
OpPair multiply_pair() {
  return {multiply<Format, C, D, kM, kN, kK, Step, false>,
          &multiply<Format, C, D, kM, kN, kK, Step, true>};
}

inline bool is_kind_one(ptx::Type type) {
  return type == ptx::Type::s8 || type == ptx::Type::s4 || type == ptx::Type::e5m2;
}

inline std::uint32_t host_rounding(ptx::Rounding rounding) {
  int mode = FE_TONEAREST;
  if (rounding == ptx::Rounding::rz) mode = FE_TOWARDZERO;
  if (rounding == ptx::Rounding::rm) mode = FE_DOWNWARD;
  if (rounding == ptx::Rounding::rp) mode = FE_UPWARD;
  return static_cast<std::uint32_t>(mode);
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
    pair.flags |= host_rounding(instruction.modifiers.rounding) << kRoundingShift;
  }
  if (is_kind_one(a)) pair.flags |= kKindA;
  if (is_kind_one(b)) pair.flags |= kKindB;
  return pair;
}

}  // namespace kernwright::sim::KW_SIM_NS
