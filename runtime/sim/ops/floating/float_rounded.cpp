// Directed rounding (.rz, .rm, .rp): exact, under the host's rounding mode.
#include "sim/ops/floating/float_lanes.h"
#include "sim/ptx/isa.h"

#include <cfenv>

namespace kernwright::sim::KW_SIM_NS {

OpPair select_float_rounded(const ptx::Instruction& inst, const OperandWidths& widths);

namespace {

/// The host's rounding mode for the life of the object. What is computed from memory and stored in
/// memory meanwhile stays between its begin and end.
class RoundingScope {
 public:
  explicit RoundingScope(int mode) {
#if defined(__FMA__)  // no library function looks at the mode of the x87 unit, which takes long
    _mm_setcsr((_mm_getcsr() & ~0x6000u) | static_cast<unsigned>(mode) << 3);
#else
    std::fesetround(mode);
#endif
    asm volatile("" : : : "memory");
  }
  ~RoundingScope() {
    asm volatile("" : : : "memory");
#if defined(__FMA__)
    _mm_setcsr(_mm_getcsr() & ~0x6000u);
#else
    std::fesetround(FE_TONEAREST);
#endif
  }
  RoundingScope(const RoundingScope&) = delete;
  RoundingScope& operator=(const RoundingScope&) = delete;
};

struct Add {
  template <typename T>
  T operator()(T a, T b, T) const {
    return a + b;
  }
};
struct Subtract {
  template <typename T>
  T operator()(T a, T b, T) const {
    return a - b;
  }
};
struct Multiply {
  template <typename T>
  T operator()(T a, T b, T) const {
    return a * b;
  }
  static float scaled(float a, float b, float) { return a * kRoom * b; }
};
struct Fused {
  float operator()(float a, float b, float c) const { return __builtin_fmaf(a, b, c); }
  double operator()(double a, double b, double c) const { return __builtin_fma(a, b, c); }
  static float scaled(float a, float b, float c) { return __builtin_fmaf(a * kRoom, b, c * kRoom); }
};
struct Divide {
  template <typename T>
  T operator()(T a, T b, T) const {
    return a / b;
  }
};
struct Reciprocal {
  template <typename T>
  T operator()(T a, T, T) const {
    return T{1} / a;
  }
};
struct SquareRoot {
  template <typename T>
  T operator()(T a, T, T) const {
    return std::sqrt(a);
  }
};

constexpr std::uint32_t kFlushFlag = 1u << 16, kSaturateFlag = 1u << 17;

/// Op::flags: the host's rounding mode, kFlushFlag, kSaturateFlag.
template <typename F, typename T>
const Op* rounded(const Op* op, Warp& warp) {
  const T* a = warp.reg<T>(op->a);
  const T* b = warp.reg<T>(op->b);
  const T* c = warp.reg<T>(op->c);
  const T* d = warp.reg<T>(op->d);
  const bool flushes = (op->flags & kFlushFlag) != 0, saturates = (op->flags & kSaturateFlag) != 0;
  {
    const RoundingScope scope(static_cast<int>(op->flags & 0xffff));
    write_lanes<false, T>(warp, op->d, [=](int i) {
      if (!flushes) return F{}(a[i], b[i], c[i]);
      const T x = flush(a[i]), y = flush(b[i]), z = flush(c[i]);
      return flush_result<F>(F{}(x, y, z), x, y, z);
    });
  }
  write_lanes<false, T>(warp, op->d,
                        [=](int i) { return saturates ? clamp_unit(d[i]) : canonical(d[i]); });
  return op + 1;
}

#if defined(__AVX512F__)
/// fma.f32 with neither .ftz nor .sat, which every expf() has: the instruction itself says how to
/// round, where setting the host's mode takes longer than all lanes.
template <int kMode>
const Op* fused_float(const Op* op, Warp& warp) {
  static_assert(kLanes == 32);
  const float* a = warp.reg<float>(op->a);
  const float* b = warp.reg<float>(op->b);
  const float* c = warp.reg<float>(op->c);
  const auto half = [=](int i) {
    return _mm512_fmadd_round_ps(_mm512_load_ps(a + i), _mm512_load_ps(b + i),
                                 _mm512_load_ps(c + i), kMode | _MM_FROUND_NO_EXC);
  };
  const __m512 low = half(0), high = half(16);  // d may be one of the operands
  float* d = warp.reg<float>(op->d);
  _mm512_store_ps(d, low);
  _mm512_store_ps(d + 16, high);
  return finish_float<float>(op, warp);
}

OpPair fused_pair(const ptx::Modifiers& mods) {
  if (mods.rounding == ptx::Rounding::rm)
    return restored_pair<fused_float<_MM_FROUND_TO_NEG_INF>, float>();
  if (mods.rounding == ptx::Rounding::rp)
    return restored_pair<fused_float<_MM_FROUND_TO_POS_INF>, float>();
  return restored_pair<fused_float<_MM_FROUND_TO_ZERO>, float>();
}
#endif

template <typename F>
OpPair rounded_pair(const ptx::Modifiers& mods) {
  OpPair pair;
  if (mods.type[0] == ptx::Type::f64) {
    pair = restored_pair<rounded<F, double>, double>();
  } else {
    pair = restored_pair<rounded<F, float>, float>();
  }
  int mode = FE_TOWARDZERO;
  if (mods.rounding == ptx::Rounding::rm) mode = FE_DOWNWARD;
  if (mods.rounding == ptx::Rounding::rp) mode = FE_UPWARD;
  pair.flags = static_cast<std::uint32_t>(mode) | (mods.ftz ? kFlushFlag : 0) |
               (mods.sat ? kSaturateFlag : 0);
  return pair;
}

}  // namespace

OpPair select_float_rounded(const ptx::Instruction& inst, const OperandWidths&) {
  using ptx::Handler;
  using ptx::Rounding;
  const ptx::Modifiers& mods = inst.modifiers;
  if (mods.type[0] != ptx::Type::f32 && mods.type[0] != ptx::Type::f64) return {};
  if (mods.rounding != Rounding::rz && mods.rounding != Rounding::rm &&
      mods.rounding != Rounding::rp) {
    return {};
  }
  switch (inst.row->handler) {
    case Handler::add: return rounded_pair<Add>(mods);
    case Handler::sub: return rounded_pair<Subtract>(mods);
    case Handler::mul: return rounded_pair<Multiply>(mods);
    case Handler::fma:
    case Handler::mad:
#if defined(__AVX512F__)
      if (mods.type[0] == ptx::Type::f32 && !mods.ftz && !mods.sat) return fused_pair(mods);
#endif
      return rounded_pair<Fused>(mods);
    case Handler::div: return rounded_pair<Divide>(mods);
    case Handler::rcp: return rounded_pair<Reciprocal>(mods);
    case Handler::sqrt: return rounded_pair<SquareRoot>(mods);
    default: return {};
  }
}

}  // namespace kernwright::sim::KW_SIM_NS
