// mma.sync.m8n8k4 of f16: four products at once, each by eight lanes.
//
// Product q belongs to lanes 4 * q to 4 * q + 3 and those 16 above. The manual's tables, one
// element at a time: the form is Volta's, and slow on everything newer too.
#include "sim/ops/matrix/matrix_multiply.h"

namespace kernwright::sim::KW_SIM_NS {
namespace {

using ptx::Layout;
using ptx::Type;

// Op::flags
constexpr std::uint32_t kColumnsA = 1 << 0;  ///< A is .col
constexpr std::uint32_t kColumnsB = 1 << 1;  ///< B is .col
constexpr std::uint32_t kWideC = 1 << 2;     ///< C is f32
constexpr std::uint32_t kWideD = 1 << 3;

constexpr int kSide = 8, kSteps = 4;

/// Lane `i` of the eight lanes of product `quarter`.
int quarter_lane(int quarter, int i) { return quarter * 4 + i % 4 + i / 4 * 16; }

/// Element `e` of the f16 pairs in a list of registers.
float half_element(const Warp& warp, std::uint32_t list, int lane, int e) {
  const std::uint32_t reg = warp.program->lists.data()[list + static_cast<unsigned>(e / 2)];
  const std::uint32_t pair = warp.reg<std::uint32_t>(reg)[lane];
  return numeric::f16_to_f32(static_cast<std::uint16_t>(pair >> (16 * (e % 2))));
}

/// Row and column of element `e` of a sum in lane `i` of eight.
struct Place {
  int row, column;
  Place(bool wide, int i, int e) : row(i), column(e) {
    if (!wide) return;
    row = (i & 1) + (e & 2) + i / 4 * 4;
    column = (e & 4) + (i & 2) + (e & 1);
  }
};

void read_factors(const Op* op, const Warp& warp, int quarter, float (*a)[kSteps],
                  float (*b)[kSide]) {
  const bool columns_a = (op->flags & kColumnsA) != 0, columns_b = (op->flags & kColumnsB) != 0;
  for (int i = 0; i < kSide; ++i) {
    for (int e = 0; e < kSteps; ++e) {
      const float left = half_element(warp, op->a, quarter_lane(quarter, i), e);
      const float right = half_element(warp, op->b, quarter_lane(quarter, i), e);
      // Four lanes hold a 4x4 tile each: a row of A and a column of B per lane, or turned.
      const int outer = i / 4 * 4;
      if (columns_a) {
        a[outer + e][i % 4] = left;
      } else {
        a[i][e] = left;
      }
      if (columns_b) {
        b[e][i] = right;
      } else {
        b[i % 4][outer + e] = right;
      }
    }
  }
}

void read_sums(const Op* op, const Warp& warp, int quarter, float (*sum)[kSide]) {
  const bool wide = (op->flags & kWideC) != 0;
  for (int i = 0; i < kSide; ++i) {
    const int lane = quarter_lane(quarter, i);
    for (int e = 0; e < kSide; ++e) {
      const Place at(wide, i, e);
      if (wide) {
        const std::uint32_t reg = warp.program->lists.data()[op->c + static_cast<unsigned>(e)];
        sum[at.row][at.column] = warp.reg<float>(reg)[lane];
      } else {
        sum[at.row][at.column] = half_element(warp, op->c, lane, e);
      }
    }
  }
}

void write_sums(const Op* op, const Warp& warp, int quarter, const float (*sum)[kSide]) {
  const bool wide = (op->flags & kWideD) != 0;
  for (int i = 0; i < kSide; ++i) {
    const int lane = quarter_lane(quarter, i);
    if (((warp.mask >> lane) & 1) == 0) continue;
    for (int e = 0; e < kSide; ++e) {
      const Place at(wide, i, e);
      const float value = canonical(sum[at.row][at.column]);
      const auto element = static_cast<unsigned>(wide ? e : e / 2);
      std::byte* reg = warp.frame + warp.program->lists.data()[op->d + element] + lane * 4;
      if (wide) {
        std::memcpy(reg, &value, sizeof value);
      } else {
        const std::uint16_t half = numeric::f32_to_f16(value);
        std::memcpy(reg + 2 * (e % 2), &half, sizeof half);
      }
    }
  }
}

const Op* multiply_quarters(const Op* op, Warp& warp) {
  warp.charge(kProductCost);
  float sum[4][kSide][kSide];
  for (int quarter = 0; quarter < 4; ++quarter) {
    float a[kSide][kSteps], b[kSteps][kSide];
    read_factors(op, warp, quarter, a, b);
    read_sums(op, warp, quarter, sum[quarter]);
    for (int row = 0; row < kSide; ++row)
      for (int column = 0; column < kSide; ++column)
        for (int k = 0; k < kSteps; ++k) sum[quarter][row][column] += a[row][k] * b[k][column];
  }
  // Written last: d may name the registers of a, b or c.
  for (int quarter = 0; quarter < 4; ++quarter) write_sums(op, warp, quarter, sum[quarter]);
  return op + 1;
}

}  // namespace

OpPair select_matrix_quarters(const ptx::Instruction& instruction, const OperandWidths&) {
  const ptx::Modifiers& modifiers = instruction.modifiers;
  if (instruction.row->handler != ptx::Handler::mma || modifiers.m != 8 || modifiers.k != 4 ||
      modifiers.type[1] != Type::f16) {
    return {};
  }
  std::uint32_t flags = 0;
  if (modifiers.layout_a == Layout::col) flags |= kColumnsA;
  if (modifiers.layout_b == Layout::col) flags |= kColumnsB;
  if (modifiers.type[3] == Type::f32) flags |= kWideC;
  if (modifiers.type[0] == Type::f32) flags |= kWideD;
  return everybody_pair<multiply_quarters>(flags);
}

}  // namespace kernwright::sim::KW_SIM_NS
