// wgmma.mma_async: each warp of a warpgroup multiplies its own 16 rows of A by all of B.
//
// The product is made when it is issued; exec/warp/warpgroup.h guards its registers until the wait.
// A matrix in shared memory is described by a 64-bit value: address, two strides and a swizzle, all
// in units of 16-byte chunks.
#include "sim/ops/matrix/wgmma_operands.h"

namespace kernwright::sim::KW_SIM_NS {
namespace {

using ptx::Handler;
using ptx::OperandKind;
using ptx::Type;
using ptx::Verb;

template <typename Format, typename Sums, typename Step>
const Op* multiply_shared(const Op* op, Warp& warp) {
  using V = typename Format::Value;
  constexpr int kSteps = 4 * Format::kPerRegister;
  if (!warp.block->warpgroups->may_issue(op, warp, pending(op, warp))) return nullptr;
  alignas(64) V left[4 * 8 * kSteps];
  if (!load_left<Format>(op, warp, left)) return nullptr;
  return multiply_columns<Format, Sums, 2>(op, warp, [&](const V* right, V* sum, bool saturate) {
    call_multiply_column<V, kSteps, Step>(left, right, sum, 2, 2, saturate);
  });
}

template <typename Format, typename Sums, typename Step = MultiplyAdd>
OpPair multiply_pair(bool registers) {
  return everybody_pair<multiply_shared<Format, Sums, Step>>(registers ? kRegisters : 0);
}

OpPair choose(const ptx::Modifiers& modifiers, bool registers) {
  const bool half = modifiers.type[0] == Type::f16;
  switch (modifiers.type[1]) {
    case Type::f16:
      return half ? multiply_pair<F16, HalfSums>(registers)
                  : multiply_pair<F16, WideSums<float>>(registers);
    case Type::bf16: return multiply_pair<BF16, WideSums<float>>(registers);
    case Type::tf32: return multiply_pair<TF32, WideSums<float>>(registers);
    case Type::e4m3:
    case Type::e5m2:
      return half ? multiply_pair<Float8, HalfSums>(registers)
                  : multiply_pair<Float8, WideSums<float>>(registers);
    case Type::u8:
    case Type::s8: return multiply_pair<Int8, WideSums<std::int32_t>>(registers);
    case Type::b1: return multiply_pair<Bits, WideSums<std::uint32_t>, AndPopc>(registers);
    default: return {};
  }
}

}  // namespace

OpPair select_wgmma(const ptx::Instruction& instruction, const OperandWidths&) {
  if (instruction.row->handler != Handler::wgmma) return {};
  const ptx::Modifiers& modifiers = instruction.modifiers;
  if (modifiers.verb == Verb::commit_group) return everybody_pair<commit_products>();
  if (modifiers.verb == Verb::wait_group) return everybody_pair<wait_for_products>();
  if (modifiers.verb != Verb::mma) return everybody_pair<no_operation>();
  if (modifiers.selector == kSparseA) return {};  // wgmma_sparse.cpp
  const bool registers = instruction.operands[1].kind == OperandKind::vector;
  OpPair pair = choose(modifiers, registers);
  if (pair.full == nullptr || !read_constants(instruction, 4, registers, pair.flags)) return {};
  finish_flags(modifiers, pair.flags);
  return pair;
}

}  // namespace kernwright::sim::KW_SIM_NS
