// Extended-precision arithmetic: add.cc, addc, sub.cc, subc, mad.cc, madc. The carry flag of each
// lane is a bit of the word at kCarryOffset of the frame. Subtraction adds the complement, as on
// GPUs: its flag is set if nothing was borrowed. The manual calls the flag a borrow, without a
// difference to subc; but compilers let addc read it (division of 128-bit integers).
#include "sim/ops/types.h"
#include "sim/ptx/isa.h"

namespace kernwright::sim::KW_SIM_NS {
namespace {

/// One lane's result and the carry out of it.
template <typename T>
struct Sum {
  T value;
  bool carry;
};

template <typename T>
Sum<T> add(T a, T b, T carry) {
  const T first = a + b, second = first + carry;
  return {second, first < a || second < first};
}

template <typename T, bool kHigh>
T product(T a, T b, bool is_signed) {
  if constexpr (!kHigh) return a * b;
  using S = std::make_signed_t<T>;
  constexpr int kBits = 8 * sizeof(T);
  if (!is_signed) return static_cast<T>((static_cast<Uint128>(a) * b) >> kBits);
  return static_cast<T>((static_cast<Int128>(static_cast<S>(a)) * static_cast<S>(b)) >> kBits);
}

enum class Kind : std::uint8_t { add, subtract, low, high };

/// Op::flags: 1 = takes the carry in, 2 = writes it, 4 = the operands are signed.
template <bool kMasked, Kind kKind, typename T>
const Op* carry_op(const Op* op, Warp& warp) {
  const T* a = warp.reg<T>(op->a);
  const T* b = warp.reg<T>(op->b);
  const T* c = warp.reg<T>(op->c);
  T* d = warp.reg<T>(op->d);
  const std::uint32_t none = kKind == Kind::subtract ? kAllLanes : 0;
  const std::uint32_t in = (op->flags & 1) != 0 ? warp.pred(kCarryOffset) : none;
  const bool is_signed = (op->flags & 4) != 0;
  std::uint32_t out = 0;
  for_active<kMasked>(warp, [&](int i) {
    const T carry = (in >> i) & 1;
    Sum<T> sum{};
    if constexpr (kKind == Kind::add) sum = add(a[i], b[i], carry);
    if constexpr (kKind == Kind::subtract) sum = add(a[i], static_cast<T>(~b[i]), carry);
    if constexpr (kKind == Kind::low)
      sum = add(product<T, false>(a[i], b[i], is_signed), c[i], carry);
    if constexpr (kKind == Kind::high)
      sum = add(product<T, true>(a[i], b[i], is_signed), c[i], carry);
    d[i] = sum.value;
    out |= (sum.carry ? 1u : 0u) << i;
  });
  if ((op->flags & 2) != 0) write_predicate<kMasked>(warp, kCarryOffset, out);
  return op + 1;
}

template <Kind kKind>
OpPair carry_pair(const ptx::Modifiers& mods, bool takes) {
  using ptx::Type;
  const bool is_signed = mods.type[0] == Type::s32 || mods.type[0] == Type::s64;
  OpPair pair;
  if (ptx::bits(mods.type[0]) == 64) {
    pair = {carry_op<false, kKind, std::uint64_t>, carry_op<true, kKind, std::uint64_t>};
  } else {
    pair = {carry_op<false, kKind, std::uint32_t>, carry_op<true, kKind, std::uint32_t>};
  }
  pair.flags = (takes ? 1u : 0u) | (mods.cc ? 2u : 0u) | (is_signed ? 4u : 0u);
  return pair;
}

OpPair carry_product(const ptx::Modifiers& mods, bool takes) {
  return mods.part == ptx::MulPart::hi ? carry_pair<Kind::high>(mods, takes)
                                       : carry_pair<Kind::low>(mods, takes);
}

}  // namespace

OpPair select_integer_carry(const ptx::Instruction& inst, const OperandWidths&) {
  using ptx::Handler;
  const ptx::Modifiers& mods = inst.modifiers;
  switch (inst.row->handler) {
    case Handler::add: return mods.cc ? carry_pair<Kind::add>(mods, false) : OpPair{};
    case Handler::sub: return mods.cc ? carry_pair<Kind::subtract>(mods, false) : OpPair{};
    case Handler::mad: return mods.cc ? carry_product(mods, false) : OpPair{};
    case Handler::addc: return carry_pair<Kind::add>(mods, true);
    case Handler::subc: return carry_pair<Kind::subtract>(mods, true);
    case Handler::madc: return carry_product(mods, true);
    default: return {};
  }
}

}  // namespace kernwright::sim::KW_SIM_NS
