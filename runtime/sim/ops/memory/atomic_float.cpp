// atom and red on floating point: add of f64, f32, f16, bf16 and their packed and vector forms.
#include "sim/ops/floating/half_lanes.h"
#include "sim/ops/memory/atomic_lanes.h"

namespace kernwright::sim::KW_SIM_NS {
namespace {

using ptx::AtomOp;
using ptx::Type;

using AddFloat = decltype([](auto old, auto b, auto) { return old + b; });

/// f32 atomics flush subnormals in global memory and keep them in shared memory (PTX manual, atom).
using AddFlushed = decltype([](float old, float b, float) { return flush(flush(old) + flush(b)); });

/// A sum of two halves is rounded once to float and once to half; float has more than twice the
/// bits and two, so the result is the correctly rounded one.
template <typename Format>
struct AddHalf {
  Half operator()(Half old, Half b, Half) const {
    return Format::write(Format::read(old) + Format::read(b));
  }
};
/// The smaller (or larger) value; of a number and a NaN the number; -0 is less than +0.
template <typename Format, bool kMax>
struct ExtremeHalf {
  Half operator()(Half old, Half b, Half) const {
    const float x = Format::read(old), y = Format::read(b);
    if (x != x) return y != y ? kHalfNan : b;
    if (y != y) return old;
    if (x == y) return kMax ? old & b : old | b;  // differ at most in the sign of zero
    return (x < y) == kMax ? b : old;
  }
};

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

using Word = std::uint32_t;

/// kF<Format> of halves, alone or packed.
template <int kVec, template <typename> typename F>
OpPair half_by_type(Type type) {
  switch (type) {
    case Type::f16: return atomic_pair<F<Binary16>, Half, Half, kVec>();
    case Type::bf16: return atomic_pair<F<Brain16>, Half, Half, kVec>();
    case Type::f16x2: return atomic_pair<Packed<F<Binary16>>, Word, Word, kVec>();
    case Type::bf16x2: return atomic_pair<Packed<F<Brain16>>, Word, Word, kVec>();
    default: return {};
  }
}

template <typename Format>
using MinHalf = ExtremeHalf<Format, false>;
template <typename Format>
using MaxHalf = ExtremeHalf<Format, true>;

template <int kVec>
OpPair by_operation(AtomOp which, Type type) {
  if (which == AtomOp::add) {
    if (type == Type::f32) return atomic_pair<AddFloat, float, Word, kVec, AddFlushed>();
    if constexpr (kVec == 1) {
      if (type == Type::f64) return atomic_pair<AddFloat, double, std::uint64_t>();
    }
    return half_by_type<kVec, AddHalf>(type);
  }
  // min and max exist for vectors of halves alone.
  if constexpr (kVec > 1) {
    if (which == AtomOp::min) return half_by_type<kVec, MinHalf>(type);
    if (which == AtomOp::max) return half_by_type<kVec, MaxHalf>(type);
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
