// setp, set, selp, slct.
#include "sim/code/fast_handlers.h"
#include "sim/ops/branch.h"
#include "sim/ops/types.h"
#include "sim/ptx/isa.h"

#include <array>
#include <cmath>
#include <type_traits>

namespace kernwright::sim::KW_SIM_NS {

OpPair select_compare(const ptx::Instruction& inst, const OperandWidths& widths);
OpFn select_branching(OpFn compare);
OpFn select_stepping(OpFn compare);

namespace {

using ptx::BoolOp;
using ptx::Compare;

/// Subnormals count as zero of the same sign.
struct Flushed {
  float operator()(float x) const {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    return (bits & 0x7f800000u) == 0 ? std::bit_cast<float>(bits & 0x80000000u) : x;
  }
};
struct Kept {
  template <typename T>
  T operator()(T x) const {
    return x;
  }
};

/// The comparisons that have a loop of their own. The others are one of these with its operands
/// exchanged, its result inverted, or both; NaN compares as false before that.
enum class Loop : std::uint8_t { equal, less, less_equal, apart, ordered };
inline constexpr std::size_t kLoops = 5;

#if defined(__AVX512BW__)
/// Bit i = whether lane i of the vectors holds for kLoop.
template <Loop kLoop, typename T>
[[gnu::always_inline]] inline std::uint32_t test_vectors(__m512i x, __m512i y) {
  if constexpr (std::is_floating_point_v<T>) {
    constexpr int kTest = kLoop == Loop::equal        ? _CMP_EQ_OQ
                          : kLoop == Loop::less       ? _CMP_LT_OQ
                          : kLoop == Loop::less_equal ? _CMP_LE_OQ
                          : kLoop == Loop::apart      ? _CMP_NEQ_OQ
                                                      : _CMP_ORD_Q;
    if constexpr (sizeof(T) == 4)
      return _mm512_cmp_ps_mask(_mm512_castsi512_ps(x), _mm512_castsi512_ps(y), kTest);
    else
      return _mm512_cmp_pd_mask(_mm512_castsi512_pd(x), _mm512_castsi512_pd(y), kTest);
  } else {
    static_assert(kLoop == Loop::equal || kLoop == Loop::less);
    constexpr int kTest = kLoop == Loop::equal ? _MM_CMPINT_EQ : _MM_CMPINT_LT;
    if constexpr (sizeof(T) == 2)
      return std::is_signed_v<T> ? _mm512_cmp_epi16_mask(x, y, kTest)
                                 : _mm512_cmp_epu16_mask(x, y, kTest);
    else if constexpr (sizeof(T) == 4)
      return std::is_signed_v<T> ? _mm512_cmp_epi32_mask(x, y, kTest)
                                 : _mm512_cmp_epu32_mask(x, y, kTest);
    else
      return std::is_signed_v<T> ? _mm512_cmp_epi64_mask(x, y, kTest)
                                 : _mm512_cmp_epu64_mask(x, y, kTest);
  }
}
#endif

/// Bit i = whether a[i] and b[i] hold for kLoop.
template <Loop kLoop, typename T, typename Prepare>
[[gnu::always_inline]] inline std::uint32_t test_lanes(const T* a, const T* b) {
#if defined(__AVX512BW__)
  if constexpr (std::is_same_v<Prepare, Kept>) {
    constexpr int kStep = 64 / static_cast<int>(sizeof(T));
    std::uint32_t bits = 0;
#pragma GCC unroll 4
    for (int i = 0; i < kLanes; i += kStep)
      bits |= test_vectors<kLoop, T>(_mm512_load_si512(a + i), _mm512_load_si512(b + i)) << i;
    return bits;
  }
#endif
  return compare_lanes(a, b, [](T x, T y) {
    const T p = Prepare{}(x), q = Prepare{}(y);
    switch (kLoop) {
      case Loop::equal: return p == q;
      case Loop::less: return p < q;
      case Loop::less_equal: return p <= q;
      case Loop::apart: return p < q || q < p;
      default: return p == p && q == q;
    }
  });
}

/// Op::flags: what to do with the lanes for which a loop holds.
constexpr std::uint32_t kSwap = 1;       ///< the operands, before the loop
constexpr std::uint32_t kInvert = 2;     ///< the result
constexpr std::uint32_t kFloatOrQ = 4;   ///< set: writes 1.0f; setp: q is wanted
constexpr std::uint32_t kBoolShift = 3;  ///< the BoolOp, 3 bits
constexpr std::uint32_t kTestShift = 6;  ///< index of the loop in kTests

/// The lanes for which the comparison holds, without what it may be combined with.
template <Loop kLoop, typename T, typename Prepare>
[[gnu::always_inline]] inline std::uint32_t test(const Op* op, const Warp& warp) {
  const bool swap = (op->flags & kSwap) != 0;
  const T* a = warp.reg<T>(swap ? op->b : op->a);
  const T* b = warp.reg<T>(swap ? op->a : op->b);
  const std::uint32_t bits = test_lanes<kLoop, T, Prepare>(a, b);
  return bits ^ ((op->flags & kInvert) != 0 ? ~0u : 0u);
}

/// One copy of the loop for the rarer handlers.
template <Loop kLoop, typename T, typename Prepare>
[[gnu::noinline]] std::uint32_t call_test(const Op* op, const Warp& warp) {
  return test<kLoop, T, Prepare>(op, warp);
}

/// p = test, for what is neither combined with a predicate nor wanted inverted in q.
template <Loop kLoop, typename T, typename Prepare>
const Op* setp_plain(const Op* op, Warp& warp) {
  warp.pred(op->d) = test<kLoop, T, Prepare>(op, warp);
  return op + 1;
}

/// The same, and the branch on p behind it.
template <Loop kLoop, typename T, typename Prepare>
const Op* setp_branch(const Op* op, Warp& warp) {
  const std::uint32_t bits = test<kLoop, T, Prepare>(op, warp);
  warp.pred(op->d) = bits;
  return take_branch<false>(op + 1, warp, bits);
}

#ifndef KW_SIM_SMALL
/// d = a + b, and the lanes for which kLoop holds between d and `other`, or the other way round.
/// The comparison does not wait until the sum is back from its register.
template <Loop kLoop, bool kSumFirst, typename T>
[[gnu::always_inline]] inline std::uint32_t add_and_test(T* d, const T* a, const T* b,
                                                         const T* other) {
#if defined(__AVX512BW__)
  std::uint32_t bits = 0;
#pragma GCC unroll 2
  for (int i = 0; i < kLanes; i += 16) {
    const __m512i sum = _mm512_add_epi32(_mm512_load_si512(a + i), _mm512_load_si512(b + i));
    const __m512i with = _mm512_load_si512(other + i);
    _mm512_store_si512(d + i, sum);
    bits |= (kSumFirst ? test_vectors<kLoop, T>(sum, with) : test_vectors<kLoop, T>(with, sum))
            << i;
  }
  return bits;
#else
  KW_LANES for (int i = 0; i < kLanes; ++i) d[i] =
      static_cast<T>(static_cast<std::uint32_t>(a[i]) + static_cast<std::uint32_t>(b[i]));
  return kSumFirst ? test_lanes<kLoop, T, Kept>(d, other) : test_lanes<kLoop, T, Kept>(other, d);
#endif
}

/// The end of a counted loop: a sum of 32-bit integers, a comparison of it with another register,
/// and the branch on that.
template <Loop kLoop, typename T>
const Op* step_branch(const Op* op, Warp& warp) {
  const T* a = warp.reg<T>(op->a);
  const T* b = warp.reg<T>(op->b);
  T* d = warp.reg<T>(op->d);
  const Op* const compare = op + 1;
  const bool first = compare->a == op->d, swap = (compare->flags & kSwap) != 0;
  const T* other = warp.reg<T>(first ? compare->b : compare->a);
  std::uint32_t bits = first != swap ? add_and_test<kLoop, true>(d, a, b, other)
                                     : add_and_test<kLoop, false>(d, a, b, other);
  bits ^= (compare->flags & kInvert) != 0 ? ~0u : 0u;
  warp.pred(compare->d) = bits;
  return take_branch<false>(op + 2, warp, bits);
}
#endif

/// What one loop is used by; all null where the type has another one for it.
struct LoopHandlers {
  std::uint32_t (*test)(const Op* op, const Warp& warp) = nullptr;
  OpFn plain = nullptr, branch = nullptr, step = nullptr;
};
template <Loop kLoop, typename T, typename Prepare>
constexpr LoopHandlers handlers_of() {
  LoopHandlers handlers{call_test<kLoop, T, Prepare>, setp_plain<kLoop, T, Prepare>};
  // What loops and bounds are compared by.
  if constexpr (sizeof(T) >= 4 && std::is_same_v<Prepare, Kept> && kLoop != Loop::ordered)
    handlers.branch = setp_branch<kLoop, T, Prepare>;
#ifndef KW_SIM_SMALL
  if constexpr (sizeof(T) == 4 && std::is_integral_v<T>) handlers.step = step_branch<kLoop, T>;
#endif
  return handlers;
}

/// The loops of one type; integers need two of them, which tell no sign apart for equality.
using TypeTests = std::array<LoopHandlers, kLoops>;
template <typename T, typename Prepare>
constexpr TypeTests float_tests() {
  return {handlers_of<Loop::equal, T, Prepare>(), handlers_of<Loop::less, T, Prepare>(),
          handlers_of<Loop::less_equal, T, Prepare>(), handlers_of<Loop::apart, T, Prepare>(),
          handlers_of<Loop::ordered, T, Prepare>()};
}
template <typename T>
constexpr TypeTests integer_tests() {
  return {handlers_of<Loop::equal, std::make_unsigned_t<T>, Kept>(),
          handlers_of<Loop::less, T, Kept>()};
}
constexpr TypeTests kTests[] = {
    integer_tests<std::uint16_t>(), integer_tests<std::int16_t>(),  integer_tests<std::uint32_t>(),
    integer_tests<std::int32_t>(),  integer_tests<std::uint64_t>(), integer_tests<std::int64_t>(),
    float_tests<float, Kept>(),     float_tests<float, Flushed>(),  float_tests<double, Kept>()};

/// Position in kTests; -1 for types that are compared elsewhere.
int type_index(ptx::Type type, bool flushes) {
  using ptx::Type;
  switch (type) {
    case Type::b16:
    case Type::u16: return 0;
    case Type::s16: return 1;
    case Type::b32:
    case Type::u32: return 2;
    case Type::s32: return 3;
    case Type::b64:
    case Type::u64: return 4;
    case Type::s64: return 5;
    case Type::f32: return flushes ? 7 : 6;
    case Type::f64: return 8;
    default: return -1;
  }
}

/// The lanes for which the comparison holds, combined with predicate c; `q` gets the opposite.
std::uint32_t test_and_combine(const Op* op, const Warp& warp, std::uint32_t* q) {
  const std::uint32_t index = op->flags >> kTestShift;
  const std::uint32_t bits = kTests[index / kLoops][index % kLoops].test(op, warp);
  *q = ~bits;
  const auto how = static_cast<BoolOp>(op->flags >> kBoolShift & 7);
  if (how == BoolOp::none) return bits;
  const std::uint32_t with = warp.pred(op->c);
  *q = combine(how, *q, with);
  return combine(how, bits, with);
}

/// p = test BOOL c, q = !test BOOL c, for full warps too.
const Op* setp(const Op* op, Warp& warp) {
  std::uint32_t q = 0;
  const std::uint32_t p = test_and_combine(op, warp, &q);
  write_predicate<true>(warp, op->d, p);
  if ((op->flags & kFloatOrQ) != 0) write_predicate<true>(warp, op->d2, q);
  return op + 1;
}

/// d = all ones or 1.0f where the test holds, else 0; for full warps too.
const Op* set(const Op* op, Warp& warp) {
  std::uint32_t q = 0;
  const std::uint32_t bits = test_and_combine(op, warp, &q);
  const std::uint32_t on = (op->flags & kFloatOrQ) != 0 ? 0x3f800000u : ~0u;
  write_lanes<true, std::uint32_t>(warp, op->d,
                                   [=](int i) { return ((bits >> i) & 1) != 0 ? on : 0u; });
  return op + 1;
}

/// d = 1.0 of a half where the test holds, else 0; for full warps too.
const Op* set_half(const Op* op, Warp& warp) {
  std::uint32_t q = 0;
  const std::uint32_t bits = test_and_combine(op, warp, &q);
  const std::uint16_t on = (op->flags & kFloatOrQ) != 0 ? 0x3f80 : 0x3c00;
  write_lanes<true, std::uint16_t>(warp, op->d, [=](int i) {
    return static_cast<std::uint16_t>((bits >> i & 1) != 0 ? on : 0);
  });
  return op + 1;
}

/// Which loop a comparison needs and how; null pointer for what is no comparison of this type.
struct Choice {
  bool exists = true;
  Loop loop = Loop::equal;
  std::uint32_t flags = 0;
};
Choice choose(Compare compare, bool is_float) {
  const Choice none{false};
  switch (compare) {
    case Compare::eq: return {true, Loop::equal, 0};
    case Compare::ne:
      return is_float ? Choice{true, Loop::apart, 0} : Choice{true, Loop::equal, kInvert};
    case Compare::lt:
    case Compare::lo: return {true, Loop::less, 0};
    case Compare::gt:
    case Compare::hi: return {true, Loop::less, kSwap};
    case Compare::le:
    case Compare::ls:
      return is_float ? Choice{true, Loop::less_equal, 0}
                      : Choice{true, Loop::less, kSwap | kInvert};
    case Compare::ge:
    case Compare::hs:
      return is_float ? Choice{true, Loop::less_equal, kSwap} : Choice{true, Loop::less, kInvert};
    default: break;
  }
  if (!is_float) return none;
  switch (compare) {
    case Compare::equ: return {true, Loop::apart, kInvert};
    case Compare::neu: return {true, Loop::equal, kInvert};
    case Compare::ltu: return {true, Loop::less_equal, kSwap | kInvert};
    case Compare::leu: return {true, Loop::less, kSwap | kInvert};
    case Compare::gtu: return {true, Loop::less_equal, kInvert};
    case Compare::geu: return {true, Loop::less, kInvert};
    case Compare::num: return {true, Loop::ordered, 0};
    case Compare::nan: return {true, Loop::ordered, kInvert};
    default: return none;
  }
}

OpPair select_test(const ptx::Instruction& inst, ptx::Type type) {
  const ptx::Modifiers& mods = inst.modifiers;
  const int row = type_index(type, mods.ftz);
  if (row < 0) return {};
  const Choice choice = choose(mods.compare, type == ptx::Type::f32 || type == ptx::Type::f64);
  if (!choice.exists) return {};
  const auto loop = static_cast<std::size_t>(choice.loop);
  const bool is_set = inst.row->handler == ptx::Handler::set;
  const bool extra = is_set ? mods.type[0] == ptx::Type::f32 || mods.type[0] == ptx::Type::bf16
                            : inst.operands[0].kind == ptx::OperandKind::reg_pair;
  const std::uint32_t flags =
      choice.flags | (extra ? kFloatOrQ : 0u) |
      static_cast<std::uint32_t>(mods.bool_op) << kBoolShift |
      static_cast<std::uint32_t>(static_cast<std::size_t>(row) * kLoops + loop) << kTestShift;
  if (is_set && ptx::bits(mods.type[0]) == 16) return {set_half, set_half, flags};
  if (is_set) return {set, set, flags};
  const bool is_plain = !extra && mods.bool_op == BoolOp::none;
  const TypeTests& tests = kTests[static_cast<std::size_t>(row)];
  return {is_plain && !kFull ? tests[loop].plain : setp, setp, flags};
}

template <bool kMasked, typename T>
const Op* selp(const Op* op, Warp& warp) {
  const T* a = warp.reg<T>(op->a);
  const T* b = warp.reg<T>(op->b);
  T* d = warp.reg<T>(op->d);
  if constexpr (!kMasked) {
    blend_lanes(d, warp.pred(op->c), a, b);
  } else {
    alignas(64) T chosen[kLanes];
    blend_lanes(chosen, warp.pred(op->c), a, b);
    blend_lanes(d, warp.mask, chosen, d);
  }
  return op + 1;
}

/// d = c >= 0 ? a : b; -0 counts as >= 0, NaN does not.
template <typename Prepare>
struct SelectBySign {
  template <typename T, typename C>
  T operator()(T a, T b, C c) const {
    return Prepare{}(c) >= C{0} ? a : b;
  }
};

OpPair select_slct(const ptx::Modifiers& mods) {
  return by_width(mods.type[0], [&]<typename T>() {
    if (mods.type[1] == ptx::Type::s32) {
      return ternary_pair<SelectBySign<Kept>, T, T, T, std::int32_t>();
    }
    return mods.ftz ? ternary_pair<SelectBySign<Flushed>, T, T, T, float>()
                    : ternary_pair<SelectBySign<Kept>, T, T, T, float>();
  });
}

}  // namespace

namespace {

OpFn joined(OpFn compare, OpFn LoopHandlers::*how) {
#ifndef KW_SIM_SMALL
  for (const TypeTests& tests : kTests) {
    for (const LoopHandlers& loop : tests) {
      if (loop.plain == compare) return loop.*how;
    }
  }
#endif
  static_cast<void>(compare), static_cast<void>(how);
  return nullptr;
}

}  // namespace

OpFn select_branching(OpFn compare) { return joined(compare, &LoopHandlers::branch); }
OpFn select_stepping(OpFn compare) { return joined(compare, &LoopHandlers::step); }

OpPair select_compare(const ptx::Instruction& inst, const OperandWidths&) {
  using ptx::Handler;
  const ptx::Modifiers& mods = inst.modifiers;
  switch (inst.row->handler) {
    case Handler::setp: return select_test(inst, mods.type[0]);
    case Handler::set: {
      // Of halves, half_compare.cpp.
      const ptx::Type from = mods.type[1];
      const bool is_half = from == ptx::Type::f16 || from == ptx::Type::f16x2 ||
                           from == ptx::Type::bf16 || from == ptx::Type::bf16x2;
      return is_half ? OpPair{} : select_test(inst, from);
    }
    case Handler::selp:
      return by_width(mods.type[0], []<typename T>() {
        return OpPair{selp<kFull, T>, selp<true, T>};
      });
    case Handler::slct: return select_slct(mods);
    default: return {};
  }
}

}  // namespace kernwright::sim::KW_SIM_NS
