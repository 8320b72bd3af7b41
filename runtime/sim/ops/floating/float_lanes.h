// Shared by floating-point handlers: flushing, saturation, NaN form, and the pairing with lane
// loops.
#pragma once

#include "sim/ops/types.h"

#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>

namespace kernwright::sim::KW_SIM_NS {

inline constexpr std::uint32_t kCanonicalNan = 0x7fffffffu;

/// Single-precision NaN results have this one form on NVIDIA GPUs; double keeps payloads, as the
/// host does.
inline float canonical(float x) { return x != x ? std::bit_cast<float>(kCanonicalNan) : x; }
inline double canonical(double x) { return x; }

/// .ftz: subnormals become zero of the same sign.
inline float flush(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return (bits & 0x7f800000u) == 0 ? std::bit_cast<float>(bits & 0x80000000u) : x;
}
inline double flush(double x) { return x; }

inline constexpr float kRoom = 0x1p32f;  ///< see flush_result

/// .sat: to [0, 1], NaN to +0. Written so that -0 becomes +0.
template <typename T>
inline T clamp_unit(T x) {
  const T low = x > T{0} ? x : T{0};
  return low < T{1} ? low : T{1};
}

/// One addition of a product, correctly rounded to nearest. If the target has no fused instruction,
/// double is a library call, slow and just as exact. Single is computed in double and rounded to
/// odd there, so that the second rounding gives the result of a single one.
#if defined(__FMA__) || !defined(__x86_64__)
inline float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
#else
inline float fused(float a, float b, float c) {
  const double product = double{a} * b;  // exact
  const double sum = product + c;
  const double part = sum - product;
  const double error = (product - (sum - part)) + (c - part);  // exact; NaN where sum is not finite
  const auto bits = std::bit_cast<std::uint64_t>(sum);
  const std::uint64_t inexact = error < 0 || error > 0 ? 1 : 0;
  const std::uint64_t odd = ~bits & inexact;
  const std::uint64_t towards_zero = (bits ^ std::bit_cast<std::uint64_t>(error)) >> 63;
  return static_cast<float>(std::bit_cast<double>(bits + odd - ((odd & towards_zero) << 1)));
}
#endif
inline double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }

#if defined(__AVX512F__)
using FloatVector = __m512;
inline FloatVector fused(FloatVector a, FloatVector b, FloatVector c) {
  return _mm512_fmadd_ps(a, b, c);
}
#elif defined(__FMA__)
using FloatVector = __m256;
inline FloatVector fused(FloatVector a, FloatVector b, FloatVector c) {
  return _mm256_fmadd_ps(a, b, c);
}
#endif

#if defined(__FMA__)
/// A register's 32 lanes.
struct LaneFloats {
  static constexpr std::size_t kCount = kLanes * sizeof(float) / sizeof(FloatVector);
  FloatVector part[kCount];

  bool any_nan() const {
#if defined(__AVX512F__)
    static_assert(kCount == 2);
    return _mm512_cmp_ps_mask(part[0], part[1], _CMP_UNORD_Q) != 0;
#else
    static_assert(kCount == 4);
    const __m256 low = _mm256_cmp_ps(part[0], part[1], _CMP_UNORD_Q);
    const __m256 high = _mm256_cmp_ps(part[2], part[3], _CMP_UNORD_Q);
    return _mm256_movemask_ps(_mm256_or_ps(low, high)) != 0;
#endif
  }
};
#endif

/// Whether some lane is NaN.
inline bool any_nan(const float* d) {
#if defined(__FMA__)
  return reinterpret_cast<const LaneFloats*>(d)->any_nan();
#else
  std::uint32_t any = 0;
  for (int i = 0; i < kLanes; ++i) any |= d[i] != d[i] ? 1u : 0u;
  return any != 0;
#endif
}

/// Gives the NaNs among the just written lanes their one form. It is outside the result's path, so
/// that an instruction waiting for the result does not wait for the check.
[[gnu::noinline]] inline const Op* make_canonical(const Op* op, const Warp& warp) {
  float* const d = warp.reg<float>(op->d);
  for (int i = 0; i < kLanes; ++i) d[i] = canonical(d[i]);
  return op + 1;
}

/// The last step of a handler: a tail call, so that the usual path needs no stack.
template <typename T>
[[gnu::always_inline]] inline const Op* finish_float(const Op* op, const Warp& warp) {
  if constexpr (sizeof(T) == sizeof(float)) {
    if (any_nan(warp.reg<float>(op->d))) [[unlikely]]
      return make_canonical(op, warp);
  }
  return op + 1;
}

// ---- the computations of instructions

using Add = decltype([](auto a, auto b) { return a + b; });
using Subtract = decltype([](auto a, auto b) { return a - b; });
struct Multiply {
  template <typename T>
  T operator()(T a, T b) const {
    return a * b;
  }
  static float scaled(float a, float b) { return a * kRoom * b; }
};
struct Fused {
  template <typename T>
  T operator()(T a, T b, T c) const {
    return fused(a, b, c);
  }
  static float scaled(float a, float b, float c) { return fused(a * kRoom, b, c * kRoom); }
};
using Divide = decltype([](auto a, auto b) { return a / b; });
using Reciprocal = decltype([]<typename T>(T a) { return T{1} / a; });
using SquareRoot = decltype([](auto a) { return std::sqrt(a); });

/// How many operands F takes.
template <typename F>
inline constexpr int kInputs = std::is_invocable_v<F, float>          ? 1
                               : std::is_invocable_v<F, float, float> ? 2
                                                                      : 3;

template <typename F, typename T, typename Run>
[[gnu::always_inline]] inline auto visit_inputs(const T& a, const T& b, const T& c, Run run) {
  if constexpr (kInputs<F> == 1) return run(a);
  if constexpr (kInputs<F> == 2) return run(a, b);
  if constexpr (kInputs<F> == 3) return run(a, b, c);
}

/// .ftz of F's result for x. A product counts as subnormal by its size before its last bits are
/// lost, as on an H200: an F with `scaled`, the same with 2^32 times more room, is asked for it.
template <typename F, typename... T>
inline float flush_result(float result, T... x) {
  if constexpr (requires { F::scaled(x...); }) {
    const bool tiny = std::fabs(F::scaled(x...)) < 0x1p-126f * kRoom;
    return tiny ? std::copysign(0.0f, result) : result;
  }
  return flush(result);
}
template <typename F, typename... T>
inline double flush_result(double result, T...) {
  return result;
}

/// F of one lane, with .ftz if `flushes`.
template <typename F, typename T>
[[gnu::always_inline]] inline T float_lane(bool flushes, T a, T b, T c) {
  const auto input = [=](T x) { return flushes ? flush(x) : x; };
  return visit_inputs<F>(input(a), input(b), input(c), [=](auto... x) {
    const T result = F{}(x...);
    return flushes ? flush_result<F>(result, x...) : result;
  });
}

/// d = F(a, b, c), as many of them as F takes.
template <typename F, typename T, bool kFlush>
const Op* float_op(const Op* op, Warp& warp) {
  const T* a = warp.reg<T>(op->a);
  const T* b = warp.reg<T>(op->b);
  const T* c = warp.reg<T>(op->c);
#if defined(__FMA__)
  // Whole vectors. The look for NaN does not wait until the result is back from the register.
  constexpr bool kOnVectors = std::is_same_v<F, Add> || std::is_same_v<F, Subtract> ||
                              std::is_same_v<F, Multiply> || std::is_same_v<F, Fused>;
  if constexpr (kOnVectors && std::is_same_v<T, float> && !kFlush) {
    const auto vectors = [](const float* x) {
      return reinterpret_cast<const LaneFloats*>(x)->part;
    };
    LaneFloats row;
    auto* const d = reinterpret_cast<LaneFloats*>(warp.reg<float>(op->d));
#pragma GCC unroll 4
    for (std::size_t i = 0; i < LaneFloats::kCount; ++i) {
      row.part[i] = visit_inputs<F>(vectors(a)[i], vectors(b)[i], vectors(c)[i], F{});
      d->part[i] = row.part[i];
    }
    if (row.any_nan()) [[unlikely]]
      return make_canonical(op, warp);
    return op + 1;
  }
#endif
  write_lanes<false, T>(warp, op->d,
                        [=](int i) { return float_lane<F>(kFlush, a[i], b[i], c[i]); });
  return finish_float<T>(op, warp);
}

template <typename F, typename T, bool kFlush = false>
OpPair float_pair() {
  return restored_pair<float_op<F, T, kFlush>, T>();
}

/// Op::flags of single-precision handlers with modifiers read at run time.
inline constexpr std::uint32_t kFlushes = 1 << 16, kSaturates = 1 << 17;

inline std::uint32_t modifier_flags(const ptx::Modifiers& mods) {
  return (mods.ftz ? kFlushes : 0) | (mods.sat ? kSaturates : 0);
}

template <typename F>
const Op* modified_op(const Op* op, Warp& warp) {
  const float* a = warp.reg<float>(op->a);
  const float* b = warp.reg<float>(op->b);
  const float* c = warp.reg<float>(op->c);
  const bool flushes = (op->flags & kFlushes) != 0, saturates = (op->flags & kSaturates) != 0;
  write_lanes<false, float>(warp, op->d, [=](int i) {
    const float r = float_lane<F>(flushes, a[i], b[i], c[i]);
    return saturates ? clamp_unit(r) : r;
  });
  return finish_float<float>(op, warp);
}

/// Functions much more expensive than their modifiers: one loop for all of them.
template <typename F>
OpPair by_float_type(const ptx::Modifiers& mods) {
  if (mods.type[0] == ptx::Type::f64) return float_pair<F, double>();
  if (mods.type[0] != ptx::Type::f32) return {};
  return restored_pair<modified_op<F>, float>(modifier_flags(mods));
}

/// Functions with own loops for their common forms.
template <typename F>
OpPair by_float(const ptx::Modifiers& mods) {
#ifndef KW_SIM_SMALL
  if (mods.type[0] == ptx::Type::f32 && !mods.sat)
    return mods.ftz ? float_pair<F, float, true>() : float_pair<F, float>();
#endif
  return by_float_type<F>(mods);
}

// ---- directed rounding

inline int host_rounding(ptx::Rounding rounding) {
  switch (rounding) {
    case ptx::Rounding::rz: return FE_TOWARDZERO;
    case ptx::Rounding::rm: return FE_DOWNWARD;
    case ptx::Rounding::rp: return FE_UPWARD;
    default: return FE_TONEAREST;
  }
}

/// How far the bits of <cfenv>'s modes are shifted to fit into 16 bits of Op::flags.
constexpr int mode_shift(unsigned modes) { return modes <= 0xffff ? 0 : std::countr_zero(modes); }
static_assert(mode_shift(0xc00) == 0 && 0xc0'0000 >> mode_shift(0xc0'0000) == 3);  // x86-64, Arm
inline constexpr int kModeShift = mode_shift(FE_TOWARDZERO | FE_DOWNWARD | FE_UPWARD);
static_assert((FE_TOWARDZERO | FE_DOWNWARD | FE_UPWARD) >> kModeShift <= 0xffff);

/// The 16 bits for a way to round.
inline std::uint32_t rounding_flags(ptx::Rounding rounding) {
  return static_cast<std::uint32_t>(host_rounding(rounding)) >> kModeShift;
}

/// The host's mode of these 16 bits.
inline int rounding_mode(std::uint32_t flags) { return static_cast<int>(flags << kModeShift); }

/// The host's rounding mode during the object's lifetime. Computations from memory to memory stay
/// between its begin and end: on memory given out before, or named by `values`.
class RoundingScope {
 public:
  explicit RoundingScope(int mode, const void* values = nullptr) : mode_(mode), values_(values) {
    if (mode_ == FE_TONEAREST) return;
    set(mode_);
    asm volatile("" : : "r"(values_) : "memory");
  }
  ~RoundingScope() {
    if (mode_ == FE_TONEAREST) return;
    asm volatile("" : : "r"(values_) : "memory");
    set(FE_TONEAREST);
  }
  RoundingScope(const RoundingScope&) = delete;
  RoundingScope& operator=(const RoundingScope&) = delete;

 private:
  static void set(int mode) {
#if defined(__FMA__)  // no library function looks at the mode of the x87 unit, which takes long
    _mm_setcsr((_mm_getcsr() & ~0x6000u) | static_cast<unsigned>(mode) << 3);
#else
    std::fesetround(mode);
#endif
  }

  int mode_;
  const void* values_;
};
static_assert(FE_TONEAREST == 0);

}  // namespace kernwright::sim::KW_SIM_NS
