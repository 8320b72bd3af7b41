// wmma.mma on fragments of wmma.load: stacked mma fragments (matrix_fragments.cpp).
#include "sim/ops/matrix/matrix_multiply.h"

namespace kernwright::sim::KW_SIM_NS {
namespace {

using ptx::Type;
using Floats = WideSums<float>;
using Integers = WideSums<std::int32_t>;
using Doubles = WideSums<double>;

/// m16n16, m32n8, m8n32 with kK elements of k.
template <typename Format, typename C, typename D, int kK>
OpPair by_shape(int m, int n) {
  if (m == 16 && n == 16) return multiply_pair<Format, C, D, 16, 16, kK>();
  if (m == 32 && n == 8) return multiply_pair<Format, C, D, 32, 8, kK>();
  if (m == 8 && n == 32) return multiply_pair<Format, C, D, 8, 32, kK>();
  return {};
}

/// f16 factors: only the types of d and c are written.
OpPair half_pair(const ptx::Modifiers& modifiers) {
  const bool half_d = modifiers.type[0] == Type::f16, half_c = modifiers.type[1] == Type::f16;
  const int m = modifiers.m, n = modifiers.n;
  if (half_d)
    return half_c ? by_shape<F16, HalfSums, HalfSums, 16>(m, n)
                  : by_shape<F16, Floats, HalfSums, 16>(m, n);
  return half_c ? by_shape<F16, HalfSums, Floats, 16>(m, n)
                : by_shape<F16, Floats, Floats, 16>(m, n);
}

OpPair by_types(const ptx::Modifiers& modifiers) {
  const int m = modifiers.m, n = modifiers.n;
  if (modifiers.type_count == 2) return half_pair(modifiers);
  switch (modifiers.type[1]) {
    case Type::bf16: return by_shape<BF16, Floats, Floats, 16>(m, n);
    case Type::tf32:
      return m == 16 && n == 16 ? multiply_pair<TF32, Floats, Floats, 16, 16, 8>() : OpPair{};
    case Type::s8:
    case Type::u8: return by_shape<Int8, Integers, Integers, 16>(m, n);
    case Type::s4:
    case Type::u4: return multiply_pair<Int4, Integers, Integers, 8, 8, 32>();
    case Type::f64: return multiply_pair<F64, Doubles, Doubles, 8, 8, 4>();
    case Type::b1:
      return modifiers.bool_op == ptx::BoolOp::and_
                 ? multiply_pair<Bits, WideSums<std::uint32_t>, WideSums<std::uint32_t>, 8, 8, 4,
                                 AndPopc>()
                 : multiply_pair<Bits, WideSums<std::uint32_t>, WideSums<std::uint32_t>, 8, 8, 4,
                                 XorPopc>();
    default: return {};
  }
}

}  // namespace

OpPair select_matrix_wmma(const ptx::Instruction& instruction, const OperandWidths&) {
  const ptx::Modifiers& modifiers = instruction.modifiers;
  if (instruction.row->handler != ptx::Handler::wmma || modifiers.verb != ptx::Verb::mma) return {};
  const bool four_types = modifiers.type_count == 4;
  return finish_multiply(by_types(modifiers), instruction,
                         four_types ? modifiers.type[1] : Type::f16,
                         four_types ? modifiers.type[2] : Type::f16);
}

}  // namespace kernwright::sim::KW_SIM_NS
