// What floating-point handlers share: flushing, saturation, NaN form, and the pairing with lane
// loops.
#pragma once

#include "sim/ops/types.h"

#include <bit>
#include <cmath>
#include <cstdint>

namespace kernwright::sim::KW_SIM_NS {

inline constexpr std::uint32_t kCanonicalNan = 0x7fffffffu;

/// Single-precision results that are NaN have this one form on NVIDIA GPUs; double keeps payloads,
/// as the host does.
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

/// One addition of a product, correctly rounded to nearest. Where the target has no fused
/// instruction, double is a library call, slow and just as exact; single is computed in double,
/// rounded to odd there, so that the second rounding gives what a single one would have.
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

/// .ftz of what F made of x. A product counts as subnormal by its size before its last bits are
/// lost to that, as on an H200: an F that has `scaled`, itself with 2^32 times more room, is asked
/// for it.
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

/// A functor with .ftz.
template <typename F>
struct Flushing {
  template <typename... T>
  auto operator()(T... x) const {
    return flush_result<F>(F{}(flush(x)...), flush(x)...);
  }
};

#if defined(__AVX512F__)
using FloatVector = __m512;
#elif defined(__AVX__)
using FloatVector = __m256;
#endif

#if defined(__AVX__)
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
#if defined(__AVX__)
  return reinterpret_cast<const LaneFloats*>(d)->any_nan();
#else
  std::uint32_t any = 0;
  for (int i = 0; i < kLanes; ++i) any |= d[i] != d[i] ? 1u : 0u;
  return any != 0;
#endif
}

/// Gives the NaNs among the lanes that were just written their one form. Beside the result's way,
/// so that an instruction which waits for it does not wait for the check.
[[gnu::noinline]] inline const Op* make_canonical(const Op* op, const Warp& warp) {
  float* const d = warp.reg<float>(op->d);
  for (int i = 0; i < kLanes; ++i) d[i] = canonical(d[i]);
  return op + 1;
}

/// The last step of a handler: a call in its place, so that the usual way needs no stack.
template <typename T>
[[gnu::always_inline]] inline const Op* finish_float(const Op* op, const Warp& warp) {
  if constexpr (sizeof(T) == sizeof(float)) {
    if (any_nan(warp.reg<float>(op->d))) [[unlikely]]
      return make_canonical(op, warp);
  }
  return op + 1;
}

#if defined(__AVX__)
/// An F that has `wide`, itself on whole vectors.
template <typename F>
concept HasWide = requires {
  &F::wide;
};

/// d = f(x...). The look for NaN does not wait until the result is back from the register.
template <typename F, typename... From>
[[gnu::always_inline]] inline const Op* wide_op(const Op* op, const Warp& warp, const From*... x) {
  LaneFloats row;
  auto* const d = reinterpret_cast<LaneFloats*>(warp.reg<float>(op->d));
#pragma GCC unroll 4
  for (std::size_t i = 0; i < LaneFloats::kCount; ++i) {
    row.part[i] = F::wide(reinterpret_cast<const LaneFloats*>(x)->part[i]...);
    d->part[i] = row.part[i];
  }
  if (row.any_nan()) [[unlikely]]
    return make_canonical(op, warp);
  return op + 1;
}
#endif

/// d = f(a, b, c), as many of them as f takes.
template <typename F, int kInputs, typename T>
const Op* float_op(const Op* op, Warp& warp) {
  const T* a = warp.reg<T>(op->a);
  const T* b = warp.reg<T>(op->b);
  const T* c = warp.reg<T>(op->c);
#if defined(__AVX__)
  if constexpr (sizeof(T) == sizeof(float) && HasWide<F>) {
    if constexpr (kInputs == 2) return wide_op<F>(op, warp, a, b);
    if constexpr (kInputs == 3) return wide_op<F>(op, warp, a, b, c);
  }
#endif
  write_lanes<false, T>(warp, op->d, [=](int i) {
    if constexpr (kInputs == 1) return F{}(a[i]);
    if constexpr (kInputs == 2) return F{}(a[i], b[i]);
    if constexpr (kInputs == 3) return F{}(a[i], b[i], c[i]);
  });
  return finish_float<T>(op, warp);
}

template <typename F, int kInputs, typename T>
OpPair float_pair() {
  return restored_pair<float_op<F, kInputs, T>, T>();
}

/// Op::flags of single-precision handlers that read their modifiers at run time.
inline constexpr std::uint32_t kFlushes = 1, kSaturates = 2;

template <typename F, int kInputs>
const Op* modified_op(const Op* op, Warp& warp) {
  const float* a = warp.reg<float>(op->a);
  const float* b = warp.reg<float>(op->b);
  const float* c = warp.reg<float>(op->c);
  const bool flushes = (op->flags & kFlushes) != 0, saturates = (op->flags & kSaturates) != 0;
  const auto input = [=](float x) { return flushes ? flush(x) : x; };
  write_lanes<false, float>(warp, op->d, [=](int i) {
    const auto run = [=](auto... x) {
      const float result = F{}(x...);
      return flushes ? flush_result<F>(result, x...) : result;
    };
    float r;
    if constexpr (kInputs == 1) r = run(input(a[i]));
    if constexpr (kInputs == 2) r = run(input(a[i]), input(b[i]));
    if constexpr (kInputs == 3) r = run(input(a[i]), input(b[i]), input(c[i]));
    return saturates ? clamp_unit(r) : r;
  });
  return finish_float<float>(op, warp);
}

template <typename F, int kInputs>
OpPair modified_pair(const ptx::Modifiers& mods) {
  return restored_pair<modified_op<F, kInputs>, float>((mods.ftz ? kFlushes : 0) |
                                                       (mods.sat ? kSaturates : 0));
}

/// Functions that cost much more than their modifiers: one loop for all of them.
template <typename F, int kInputs>
OpPair by_float_type(const ptx::Modifiers& mods) {
  if (mods.type[0] == ptx::Type::f64) return float_pair<F, kInputs, double>();
  return mods.type[0] == ptx::Type::f32 ? modified_pair<F, kInputs>(mods) : OpPair{};
}

/// Functions of which the common forms have loops of their own.
template <typename F, int kInputs>
OpPair by_float(const ptx::Modifiers& mods) {
  if (mods.type[0] == ptx::Type::f64) return float_pair<F, kInputs, double>();
  if (mods.type[0] != ptx::Type::f32) return {};
#ifndef KW_SIM_SMALL
  if (!mods.sat)
    return mods.ftz ? float_pair<Flushing<F>, kInputs, float>() : float_pair<F, kInputs, float>();
#endif
  return modified_pair<F, kInputs>(mods);
}

}  // namespace kernwright::sim::KW_SIM_NS
