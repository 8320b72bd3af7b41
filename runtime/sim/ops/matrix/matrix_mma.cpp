// mma.sync: the dense shapes of sm_75 to sm_90 but for m8n8k4 of f16 (matrix_quarters.cpp).
#include "sim/ops/matrix/matrix_multiply.h"

namespace kernwright::sim::KW_SIM_NS {
namespace {

using ptx::Type;
using Floats = WideSums<float>;
using Integers = WideSums<std::int32_t>;
using Counts = WideSums<std::uint32_t>;

/// m16n8k(kShort) and m16n8k(2 * kShort) with float sums.
template <typename Format, int kShort>
OpPair float_pair(int k) {
  if (k == kShort) return multiply_pair<Format, Floats, Floats, 16, 8, kShort>();
  if (k == 2 * kShort) return multiply_pair<Format, Floats, Floats, 16, 8, 2 * kShort>();
  return {};
}

OpPair half_pair(Type d, Type c, int k) {
  if (d != c) return {};
  if (d == Type::f32) return float_pair<F16, 8>(k);
  if (k == 8) return multiply_pair<F16, HalfSums, HalfSums, 16, 8, 8>();
  return k == 16 ? multiply_pair<F16, HalfSums, HalfSums, 16, 8, 16>() : OpPair{};
}

OpPair float8_pair(Type d, int k) {
  if (d == Type::f32) return float_pair<Float8, 16>(k);
  if (k == 16) return multiply_pair<Float8, HalfSums, HalfSums, 16, 8, 16>();
  return k == 32 ? multiply_pair<Float8, HalfSums, HalfSums, 16, 8, 32>() : OpPair{};
}

OpPair double_pair(int m, int k) {
  using Doubles = WideSums<double>;
  if (m == 8) return k == 4 ? multiply_pair<F64, Doubles, Doubles, 8, 8, 4>() : OpPair{};
  if (k == 4) return multiply_pair<F64, Doubles, Doubles, 16, 8, 4>();
  if (k == 8) return multiply_pair<F64, Doubles, Doubles, 16, 8, 8>();
  return k == 16 ? multiply_pair<F64, Doubles, Doubles, 16, 8, 16>() : OpPair{};
}

/// m8n8, m16n8 with one block of k, m16n8 with two.
template <typename Format, typename Sums, typename Step = MultiplyAdd>
OpPair int_pair(int m, int blocks) {
  constexpr int kSteps = 4 * Format::kPerRegister;
  if (m == 8 && blocks == 1) return multiply_pair<Format, Sums, Sums, 8, 8, kSteps, Step>();
  if (m == 16 && blocks == 1) return multiply_pair<Format, Sums, Sums, 16, 8, kSteps, Step>();
  if (m == 16 && blocks == 2) return multiply_pair<Format, Sums, Sums, 16, 8, 2 * kSteps, Step>();
  return {};
}

OpPair by_types(const ptx::Modifiers& modifiers) {
  const Type d = modifiers.type[0], a = modifiers.type[1], c = modifiers.type[3];
  const int m = modifiers.m;
  const int k = modifiers.k;
  const bool is_and = modifiers.bool_op == ptx::BoolOp::and_;
  if (modifiers.n != 8) return {};
  switch (a) {
    case Type::f16: return m == 16 ? half_pair(d, c, k) : OpPair{};
    case Type::bf16: return m == 16 ? float_pair<BF16, 8>(k) : OpPair{};
    case Type::tf32: return m == 16 ? float_pair<TF32, 4>(k) : OpPair{};
    case Type::e4m3:
    case Type::e5m2: return m == 16 ? float8_pair(d, k) : OpPair{};
    case Type::f64: return double_pair(m, k);
    case Type::s8:
    case Type::u8: return int_pair<Int8, Integers>(m, k / 16);
    case Type::s4:
    case Type::u4: return int_pair<Int4, Integers>(m, k / 32);
    case Type::b1:
      return is_and ? int_pair<Bits, Counts, AndPopc>(m, k / 128)
                    : int_pair<Bits, Counts, XorPopc>(m, k / 128);
    default: return {};
  }
}

}  // namespace

OpPair select_matrix_mma(const ptx::Instruction& instruction, const OperandWidths&) {
  if (instruction.row->handler != ptx::Handler::mma) return {};
  const ptx::Modifiers& modifiers = instruction.modifiers;
  return finish_multiply(by_types(modifiers), instruction, modifiers.type[1], modifiers.type[2]);
}

}  // namespace kernwright::sim::KW_SIM_NS
