// Counting, finding, extracting and inserting bits; dot products of bytes.
#include "sim/ops/types.h"
#include "sim/ptx/isa.h"

#include <algorithm>

namespace kernwright::sim::KW_SIM_NS {
namespace {

using Word = std::uint32_t;

using PopulationCount = decltype([](auto a) { return std::popcount(a); });
using LeadingZeros = decltype([](auto a) { return std::countl_zero(a); });

/// Position of the highest bit different from the sign (unsigned: of the highest set bit); all ones
/// if there is none. With .shiftamt the left shift that brings it to the top.
template <bool kShift>
struct FindBit {
  template <typename T>
  Word operator()(T a) const {
    using U = std::make_unsigned_t<T>;
    const auto bits = static_cast<U>(a < 0 ? ~a : a);
    const int zeros = std::countl_zero(bits);
    constexpr int kTop = 8 * sizeof(T) - 1;
    if (zeros > kTop) return ~Word{0};
    return static_cast<Word>(kShift ? zeros : kTop - zeros);
  }
};

using ReverseBits = decltype([]<typename T>(T a) {
  // Neighbouring halves, quarters, ... of the word change places, down to single bits.
  T low = static_cast<T>(~T{0});
  for (std::size_t bits = 4 * sizeof(T); bits != 0; bits /= 2) {
    low = static_cast<T>(low ^ (low << bits));
    a = static_cast<T>((a >> bits & low) | (a & low) << bits);
  }
  return a;
});

/// The n-th set bit from `base` on (n > 0 upward, n < 0 downward, n = 0: base itself if set). The
/// smallest n has no magnitude and gives 0, as on GPUs.
struct FindNth {
  Word operator()(Word mask, Word base, std::int32_t n) const {
    if (n == INT32_MIN) return 0;
    if (base > 31) return ~Word{0};
    if (n == 0) return ((mask >> base) & 1) != 0 ? base : ~Word{0};
    const int step = n > 0 ? 1 : -1;
    std::int64_t left = n > 0 ? n : -std::int64_t{n};
    for (int at = static_cast<int>(base); at >= 0 && at < 32; at += step) {
      if (((mask >> at) & 1) != 0 && --left == 0) return static_cast<Word>(at);
    }
    return ~Word{0};
  }
};

/// The effective bits of a position or length in a word of T: the low 8 bits; for 64 bits all,
/// because GPUs have no such instruction and shift instead.
template <typename T>
Word field_count(Word count) {
  return sizeof(T) == 8 ? count : count & 0xff;
}

/// bfe: `count` bits from `start` on; bits above the top are the sign.
struct ExtractField {
  template <typename T>
  T operator()(T a, Word start, Word count) const {
    constexpr Word kBits = 8 * sizeof(T);
    using U = std::make_unsigned_t<T>;
    start = field_count<T>(start);
    count = field_count<T>(count);
    if (count == 0) return 0;
    const std::uint64_t top = std::uint64_t{start} + count - 1;
    const U sign_bit = U{1} << std::min<std::uint64_t>(top, kBits - 1);
    const bool negative = std::is_signed_v<T> && (static_cast<U>(a) & sign_bit) != 0;
    const U shifted = start < kBits ? static_cast<U>(a) >> start : U{0};
    const Word present = start < kBits ? std::min(count, kBits - start) : 0;
    const U mask = present >= kBits ? ~U{0} : (U{1} << present) - 1;
    return static_cast<T>((shifted & mask) | (negative ? ~mask : U{0}));
  }
};

/// bfi: the low `count` bits of a, put into b at `start`.
template <typename T>
T insert_field(T a, T b, Word start, Word count) {
  constexpr Word kBits = 8 * sizeof(T);
  start = field_count<T>(start);
  count = field_count<T>(count);
  if (start >= kBits || count == 0) return b;
  const T low = count >= kBits ? static_cast<T>(~T{0}) : (T{1} << count) - 1;
  const T mask = low << start;
  return (b & ~mask) | ((a << start) & mask);
}

template <bool kMasked, typename T>
const Op* bfi(const Op* op, Warp& warp) {
  const T* a = warp.reg<T>(op->a);
  const T* b = warp.reg<T>(op->b);
  const Word* start = warp.reg<Word>(op->c);
  const Word* count = warp.reg<Word>(op->e);
  write_lanes<kMasked, T>(warp, op->d,
                          [=](int i) { return insert_field(a[i], b[i], start[i], count[i]); });
  return op + 1;
}

/// bmsk: `width` ones from `position` on; both modulo 32 (wrap) or limited to 32 (clamp).
template <bool kWrap>
struct BitMask {
  Word operator()(Word position, Word width) const {
    const std::uint64_t from = kWrap ? position & 31 : std::min(position, 32u);
    const std::uint64_t count = kWrap ? width & 31 : std::min(width, 32u);
    return static_cast<Word>(((std::uint64_t{1} << count) - 1) << from);
  }
};

/// szext: keeps the low `width` bits and extends them.
template <bool kWrap>
struct ExtendField {
  template <typename T>
  T operator()(T a, Word width) const {
    const Word bits = kWrap ? width & 31 : std::min(width, 32u);
    if (bits == 0) return 0;
    if (bits == 32) return a;
    return static_cast<T>(static_cast<T>(static_cast<Word>(a) << (32 - bits)) >> (32 - bits));
  }
};

template <typename T>
std::int64_t part(Word value, int index) {
  return static_cast<T>(value >> (8 * static_cast<int>(sizeof(T)) * index));
}

/// As many values of a, of A's size, with bytes of b from kFirst on.
template <typename A, typename B, int kFirst>
struct DotProduct {
  Word operator()(Word a, Word b, Word c) const {
    constexpr int kCount = 4 / sizeof(A);
    std::int64_t sum = c;
    for (int i = 0; i < kCount; ++i) sum += part<A>(a, i) * part<B>(b, i + kFirst);
    return static_cast<Word>(sum);
  }
};

/// kBytes: of each value of a.
template <std::size_t kBytes, int kFirst>
OpPair dot_product(const ptx::Modifiers& mods) {
  const auto select_sign_b = [&]<typename A>() {
    return is_signed(mods.type[1]) ? ternary_pair<DotProduct<A, std::int8_t, kFirst>, Word>()
                                   : ternary_pair<DotProduct<A, std::uint8_t, kFirst>, Word>();
  };
  return is_signed(mods.type[0]) ? select_sign_b.template operator()<SizedInteger<kBytes, true>>()
                                 : select_sign_b.template operator()<SizedInteger<kBytes>>();
}

template <typename F>
OpPair count_pair(ptx::Type type) {
  return ptx::bits(type) == 64 ? unary_pair<F, Word, std::uint64_t>() : unary_pair<F, Word>();
}

template <bool kShift>
OpPair select_find(ptx::Type type) {
  return by_integer(type,
                    []<typename T>() { return lanes_pair<true, FindBit<kShift>, Word, T>(); });
}

template <bool kWrap>
OpPair select_szext(ptx::Type type) {
  if (type == ptx::Type::s32) {
    return binary_pair<ExtendField<kWrap>, std::int32_t, std::int32_t, Word>();
  }
  return binary_pair<ExtendField<kWrap>, Word>();
}

}  // namespace

OpPair select_integer_bits(const ptx::Instruction& inst, const OperandWidths&) {
  using ptx::Handler;
  const ptx::Modifiers& mods = inst.modifiers;
  const ptx::Type type = mods.type[0];
  switch (inst.row->handler) {
    case Handler::popc: return count_pair<PopulationCount>(type);
    case Handler::clz: return count_pair<LeadingZeros>(type);
    case Handler::brev:
      return ptx::bits(type) == 64 ? unary_pair<ReverseBits, std::uint64_t>()
                                   : unary_pair<ReverseBits, Word>();
    case Handler::bfind: return mods.shiftamt ? select_find<true>(type) : select_find<false>(type);
    case Handler::fns: return lanes_pair<true, FindNth, Word, Word, Word, std::int32_t>();
    case Handler::bfe:
      return by_integer(
          type, []<typename T>() { return ternary_pair<ExtractField, T, T, Word, Word>(); });
    case Handler::bfi:
      if (ptx::bits(type) == 64) return {bfi<false, std::uint64_t>, bfi<true, std::uint64_t>};
      return {bfi<false, Word>, bfi<true, Word>};
    case Handler::bmsk:
      return mods.wrap ? binary_pair<BitMask<true>, Word>() : binary_pair<BitMask<false>, Word>();
    case Handler::szext: return mods.wrap ? select_szext<true>(type) : select_szext<false>(type);
    case Handler::dp4a: return dot_product<1, 0>(mods);
    case Handler::dp2a:
      return mods.part == ptx::MulPart::hi ? dot_product<2, 2>(mods) : dot_product<2, 0>(mods);
    default: return {};
  }
}

}  // namespace kernwright::sim::KW_SIM_NS
