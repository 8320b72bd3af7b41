// setp, set, selp, slct.
#include "sim/code/fast_handlers.h"
#include "sim/ops/branch.h"
#include "sim/ops/floating/float_lanes.h"
#include "sim/ptx/isa.h"

#include <array>
#include <type_traits>

namespace kernwright::sim::KW_SIM_NS {

OpFn select_branching(OpFn compare);
OpFn select_stepping(OpFn compare);

namespace {

using ptx::BoolOp;
using ptx::Compare;

/// The comparisons with their own loops. The others exchange the operands of one of these, invert
/// its result, or both; before that, NaN compares as false.
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
template <Loop kLoop, typename T, bool kFlush>
[[gnu::always_inline]] inline std::uint32_t test_lanes(const T* a, const T* b) {
#if defined(__AVX512BW__)
  if constexpr (!kFlush) {
    constexpr int kStep = 64 / static_cast<int>(sizeof(T));
    std::uint32_t bits = 0;
#pragma GCC unroll 4
    for (int i = 0; i < kLanes; i += kStep)
      bits |= test_vectors<kLoop, T>(_mm512_load_si512(a + i), _mm512_load_si512(b + i)) << i;
    return bits;
  }
#endif
  return compare_lanes(a, b, [](T x, T y) {
    if constexpr (kFlush) x = flush(x), y = flush(y);
    switch (kLoop) {
      case Loop::equal: return x == y;
      case Loop::less: return x < y;
      case Loop::less_equal: return x <= y;
      case Loop::apart: return x < y || y < x;
      default: return x == x && y == y;
    }
  });
}

/// Op::flags: what to do with the lanes for which a loop holds.
constexpr std::uint32_t kSwap = 1;       ///< the operands, before the loop
constexpr std::uint32_t kInvert = 2;     ///< the result
constexpr std::uint32_t kFloatOrQ = 4;   ///< set: writes 1.0f; setp: q is wanted
constexpr std::uint32_t kBoolShift = 3;  ///< the BoolOp, 3 bits
constexpr std::uint32_t kTestShift = 6;  ///< index of the loop in kTests

/// The lanes with a true comparison, before it is combined with a predicate.
template <Loop kLoop, typename T, bool kFlush>
[[gnu::always_inline]] inline std::uint32_t test(const Op* op, const Warp& warp) {
  const bool swap = (op->flags & kSwap) != 0;
  const T* a = warp.reg<T>(swap ? op->b : op->a);
  const T* b = warp.reg<T>(swap ? op->a : op->b);
  const std::uint32_t bits = test_lanes<kLoop, T, kFlush>(a, b);
  return bits ^ ((op->flags & kInvert) != 0 ? ~0u : 0u);
}

/// One copy of the loop for the rarer handlers.
template <Loop kLoop, typename T, bool kFlush>
[[gnu::noinline]] std::uint32_t call_test(const Op* op, const Warp& warp) {
  return test<kLoop, T, kFlush>(op, warp);
}

/// p = test, without a combined predicate and without an inverted q.
template <Loop kLoop, typename T, bool kFlush>
const Op* setp_plain(const Op* op, Warp& warp) {
  warp.pred(op->d) = test<kLoop, T, kFlush>(op, warp);
  return op + 1;
}

/// The same, and the branch on p behind it.
template <Loop kLoop, typename T, bool kFlush>
const Op* setp_branch(const Op* op, Warp& warp) {
  const std::uint32_t bits = test<kLoop, T, kFlush>(op, warp);
  warp.pred(op->d) = bits;
  return take_branch<false>(op + 1, warp, bits);
}

#ifndef KW_SIM_SMALL
/// d = a + b, and the lanes with kLoop true between d and `other`, or the other way round. The
/// comparison does not wait until the sum is back from its register.
template <Loop kLoop, bool kSumFirst, typename T>
[[gnu::always_inline]] inline std::uint32_t add_and_test(T* d, const T* a, const T* b,
                                                         const T* other) {
#if defined(__AVX512BW__)
  std::uint32_t bits = 0;
#pragma GCC unroll 2
  for (int i = 0; i < kLanes; i += 16) {
    const __m512i sum = _mm512_add_epi32(_mm512_load_si512(a + i), _mm512_load_si512(b + i));
    const __m512i rhs = _mm512_load_si512(other + i);
    _mm512_store_si512(d + i, sum);
    bits |= (kSumFirst ? test_vectors<kLoop, T>(sum, rhs) : test_vectors<kLoop, T>(rhs, sum)) << i;
  }
  return bits;
#else
  KW_LANES for (int i = 0; i < kLanes; ++i) d[i] =
      static_cast<T>(static_cast<std::uint32_t>(a[i]) + static_cast<std::uint32_t>(b[i]));
  return kSumFirst ? test_lanes<kLoop, T, false>(d, other) : test_lanes<kLoop, T, false>(other, d);
#endif
}

/// The end of a counted loop: a sum of 32-bit integers, its comparison with another register, and
/// the branch on this.
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

/// The handlers with one loop; all null if another loop serves the type.
struct LoopHandlers {
  std::uint32_t (*test)(const Op* op, const Warp& warp) = nullptr;
  OpFn plain = nullptr, branch = nullptr, step = nullptr;
};
template <Loop kLoop, typename T, bool kFlush>
constexpr LoopHandlers make_handlers() {
  LoopHandlers handlers{call_test<kLoop, T, kFlush>, setp_plain<kLoop, T, kFlush>};
  // The usual types of loop counters and bounds.
  if constexpr (sizeof(T) >= 4 && !kFlush && kLoop != Loop::ordered)
    handlers.branch = setp_branch<kLoop, T, kFlush>;
#ifndef KW_SIM_SMALL
  if constexpr (sizeof(T) == 4 && std::is_integral_v<T>) handlers.step = step_branch<kLoop, T>;
#endif
  return handlers;
}

/// The loops of one type; integers need two of them, because equality does not depend on the sign.
using TypeTests = std::array<LoopHandlers, kLoops>;
template <typename T, bool kFlush>
constexpr TypeTests float_tests() {
  return {make_handlers<Loop::equal, T, kFlush>(), make_handlers<Loop::less, T, kFlush>(),
          make_handlers<Loop::less_equal, T, kFlush>(), make_handlers<Loop::apart, T, kFlush>(),
          make_handlers<Loop::ordered, T, kFlush>()};
}
template <typename T>
constexpr TypeTests integer_tests() {
  return {make_handlers<Loop::equal, std::make_unsigned_t<T>, false>(),
          make_handlers<Loop::less, T, false>()};
}
constexpr TypeTests kTests[] = {
    integer_tests<std::uint16_t>(), integer_tests<std::int16_t>(),  integer_tests<std::uint32_t>(),
    integer_tests<std::int32_t>(),  integer_tests<std::uint64_t>(), integer_tests<std::int64_t>(),
    float_tests<float, false>(),    float_tests<float, true>(),     float_tests<double, false>()};

/// Position in kTests; -1 for types compared elsewhere.
int type_index(ptx::Type type, bool flushes) {
  if (type == ptx::Type::f32) return flushes ? 7 : 6;
  if (type == ptx::Type::f64) return 8;
  if (!is_integer(type)) return -1;
  return 2 * std::countr_zero(static_cast<unsigned>(ptx::bits(type)) / 16) + is_signed(type);
}

/// The lanes with a true comparison, combined with predicate c; `q` gets the opposite.
std::uint32_t test_and_combine(const Op* op, const Warp& warp, std::uint32_t* q) {
  const std::uint32_t index = op->flags >> kTestShift;
  const std::uint32_t bits = kTests[index / kLoops][index % kLoops].test(op, warp);
  *q = ~bits;
  const auto how = static_cast<BoolOp>(op->flags >> kBoolShift & 7);
  if (how == BoolOp::none) return bits;
  const std::uint32_t rhs = warp.pred(op->c);
  *q = combine(how, *q, rhs);
  return combine(how, bits, rhs);
}

/// p = test BOOL c, q = !test BOOL c, for full warps too.
const Op* setp(const Op* op, Warp& warp) {
  std::uint32_t q = 0;
  const std::uint32_t p = test_and_combine(op, warp, &q);
  write_predicate<true>(warp, op->d, p);
  if ((op->flags & kFloatOrQ) != 0) write_predicate<true>(warp, op->d2, q);
  return op + 1;
}

/// d = kFloat or else kOther where the test holds, else 0; for full warps too.
template <typename D, D kFloat, D kOther>
const Op* set(const Op* op, Warp& warp) {
  std::uint32_t q = 0;
  const std::uint32_t bits = test_and_combine(op, warp, &q);
  const D on = (op->flags & kFloatOrQ) != 0 ? kFloat : kOther;
  write_lanes<true, D>(warp, op->d, [=](int i) { return ((bits >> i) & 1) != 0 ? on : D{0}; });
  return op + 1;
}
constexpr OpFn kSet = set<std::uint32_t, 0x3f800000u, ~0u>;
constexpr OpFn kSetHalf = set<std::uint16_t, 0x3f80, 0x3c00>;  ///< bf16 and f16

/// The loop for a comparison, and the way to use it.
struct Choice {
  std::size_t loop = kLoops;  ///< kLoops: no comparison of this type
  std::uint32_t flags = 0;
};
Choice choose(Compare compare, bool is_float) {
  constexpr unsigned kLoopHoldsFor[kLoops] = {2, 1, 3, 5, 7};
  const unsigned possible = is_float ? 15 : 7, wanted = holds_for(compare) & possible;
  for (std::size_t loop = 0; loop < (is_float ? kLoops : 2); ++loop) {
    for (std::uint32_t flags = 0; flags <= (kSwap | kInvert); ++flags) {
      unsigned holds = kLoopHoldsFor[loop];
      if ((flags & kSwap) != 0) holds = (holds & 2) | (holds & 1) << 2 | holds >> 2;
      if ((flags & kInvert) != 0) holds ^= possible;
      if (holds == wanted) return {loop, flags};
    }
  }
  return {};
}

OpPair select_test(const ptx::Instruction& inst, ptx::Type type) {
  const ptx::Modifiers& mods = inst.modifiers;
  const int row = type_index(type, mods.ftz);
  if (row < 0) return {};
  const Choice choice = choose(mods.compare, type == ptx::Type::f32 || type == ptx::Type::f64);
  if (choice.loop == kLoops) return {};
  const bool is_set = inst.row->handler == ptx::Handler::set;
  const bool extra = is_set ? mods.type[0] == ptx::Type::f32 || mods.type[0] == ptx::Type::bf16
                            : inst.operands[0].kind == ptx::OperandKind::reg_pair;
  const std::uint32_t flags =
      choice.flags | (extra ? kFloatOrQ : 0u) |
      static_cast<std::uint32_t>(mods.bool_op) << kBoolShift |
      static_cast<std::uint32_t>(static_cast<std::size_t>(row) * kLoops + choice.loop)
          << kTestShift;
  if (is_set && ptx::bits(mods.type[0]) == 16) return {kSetHalf, kSetHalf, flags};
  if (is_set) return {kSet, kSet, flags};
  const bool is_plain = !extra && mods.bool_op == BoolOp::none;
  const TypeTests& tests = kTests[static_cast<std::size_t>(row)];
  return {is_plain && !kFull ? tests[choice.loop].plain : setp, setp, flags};
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
using SelectBySign = decltype([](auto a, auto b, auto c) { return c >= 0 ? a : b; });
using SelectByFlushed = decltype([](auto a, auto b, float c) { return flush(c) >= 0 ? a : b; });

OpPair select_slct(const ptx::Modifiers& mods) {
  return by_width(mods.type[0], [&]<typename T>() {
    if (mods.type[1] == ptx::Type::s32) return ternary_pair<SelectBySign, T, T, T, std::int32_t>();
    return mods.ftz ? ternary_pair<SelectByFlushed, T, T, T, float>()
                    : ternary_pair<SelectBySign, T, T, T, float>();
  });
}

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
    case Handler::set: return select_test(inst, mods.type[1]);  // of halves: half_compare.cpp
    case Handler::selp:
      return by_width(mods.type[0], []<typename T>() {
        return OpPair{selp<kFull, T>, selp<true, T>};
      });
    case Handler::slct: return select_slct(mods);
    default: return {};
  }
}

}  // namespace kernwright::sim::KW_SIM_NS
