// atom and red on floating point: add of f64, f32, f16, bf16 and their packed and vector forms.
#include "sim/numeric/half.h"
#include "sim/ops/memory/atomic_lanes.h"

namespace kernwright::sim::KW_SIM_NS {
namespace {

using ptx::AtomOp;
using ptx::Type;

struct Add {
  template <typename T>
  T operator()(T old, T b, T) const {
    return old + b;
  }
};

float flush(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return (bits & 0x7f800000u) == 0 ? std::bit_cast<float>(bits & 0x80000000u) : value;
}

/// f32 atomics flush subnormals in global memory and keep them in shared memory (PTX manual, atom).
struct AddFlushed {
  float operator()(float old, float b, float) const { return flush(flush(old) + flush(b)); }
};

/// A sum of two halves is rounded once to float and once to half; float has more than twice the
/// bits and two, so the result is the correctly rounded one.
struct AddHalf {
  std::uint16_t operator()(std::uint16_t old, std::uint16_t b, std::uint16_t) const {
    return numeric::f32_to_f16(numeric::f16_to_f32(old) + numeric::f16_to_f32(b));
  }
};
struct AddBfloat {
  std::uint16_t operator()(std::uint16_t old, std::uint16_t b, std::uint16_t) const {
    return numeric::f32_to_bf16(numeric::bf16_to_f32(old) + numeric::bf16_to_f32(b));
  }
};
/// The smaller (or larger) value; of a number and a NaN the number; -0 is less than +0.
template <float (*kToFloat)(std::uint16_t), bool kMax>
struct ExtremeHalf {
  std::uint16_t operator()(std::uint16_t old, std::uint16_t b, std::uint16_t) const {
    const float x = kToFloat(old), y = kToFloat(b);
    if (x != x) return y != y ? std::uint16_t{0x7fff} : b;
    if (y != y) return old;
    if (x == y) return kMax ? old & b : old | b;  // differ at most in the sign of zero
    return (x < y) == kMax ? b : old;
  }
};
float wide_half(std::uint16_t bits) { return numeric::f16_to_f32(bits); }
float wide_bfloat(std::uint16_t bits) { return numeric::bf16_to_f32(bits); }

/// Both halves of a packed pair.
template <typename F>
struct Packed {
  std::uint32_t operator()(std::uint32_t old, std::uint32_t b, std::uint32_t) const {
    const auto low = F{}(static_cast<std::uint16_t>(old), static_cast<std::uint16_t>(b), 0);
    const auto high =
        F{}(static_cast<std::uint16_t>(old >> 16), static_cast<std::uint16_t>(b >> 16), 0);
    return std::uint32_t{low} | std::uint32_t{high} << 16;
  }
};

template <int kVec>
OpPair by_type(Type type) {
  using U16 = std::uint16_t;
  using U32 = std::uint32_t;
  switch (type) {
    case Type::f32: return atomic_pair<Add, float, U32, kVec, AddFlushed>();
    case Type::f16: return atomic_pair<AddHalf, U16, U16, kVec>();
    case Type::bf16: return atomic_pair<AddBfloat, U16, U16, kVec>();
    case Type::f16x2: return atomic_pair<Packed<AddHalf>, U32, U32, kVec>();
    case Type::bf16x2: return atomic_pair<Packed<AddBfloat>, U32, U32, kVec>();
    case Type::f64:
      if constexpr (kVec == 1) return atomic_pair<Add, double, std::uint64_t>();
      return {};
    default: return {};
  }
}

/// min and max exist for vectors of halves alone.
template <int kVec, bool kMax>
OpPair extreme_by_type(Type type) {
  using U16 = std::uint16_t;
  using U32 = std::uint32_t;
  using Half = ExtremeHalf<wide_half, kMax>;
  using Bfloat = ExtremeHalf<wide_bfloat, kMax>;
  switch (type) {
    case Type::f16: return atomic_pair<Half, U16, U16, kVec>();
    case Type::bf16: return atomic_pair<Bfloat, U16, U16, kVec>();
    case Type::f16x2: return kVec < 8 ? atomic_pair<Packed<Half>, U32, U32, kVec>() : OpPair{};
    case Type::bf16x2: return kVec < 8 ? atomic_pair<Packed<Bfloat>, U32, U32, kVec>() : OpPair{};
    default: return {};
  }
}

template <int kVec>
OpPair by_operation(AtomOp which, Type type) {
  if (which == AtomOp::add) return by_type<kVec>(type);
  if constexpr (kVec > 1) {
    if (which == AtomOp::min) return extreme_by_type<kVec, false>(type);
    if (which == AtomOp::max) return extreme_by_type<kVec, true>(type);
  }
  return {};
}

}  // namespace

OpPair select_atomic_float(const ptx::Instruction& instruction, const OperandWidths& widths) {
  const ptx::Modifiers& modifiers = instruction.modifiers;
  if (!is_atomic(instruction) || !atomic_widths_fit(instruction, widths)) return {};
  OpPair pair;
  switch (modifiers.vector) {
    case 1: pair = by_operation<1>(modifiers.atom, modifiers.type[0]); break;
    case 2: pair = by_operation<2>(modifiers.atom, modifiers.type[0]); break;
    case 4: pair = by_operation<4>(modifiers.atom, modifiers.type[0]); break;
    case 8: pair = by_operation<8>(modifiers.atom, modifiers.type[0]); break;
    default: break;
  }
  return finish_atomic(pair, instruction, widths);
}

}  // namespace kernwright::sim::KW_SIM_NS
