// Directed rounding (.rz, .rm, .rp): exact, under the host's rounding mode.
#include "sim/ops/floating/float_lanes.h"
#include "sim/ptx/isa.h"

namespace kernwright::sim::KW_SIM_NS {
namespace {

/// fused() rounds to nearest.
struct FusedByMode {
  float operator()(float a, float b, float c) const { return __builtin_fmaf(a, b, c); }
  double operator()(double a, double b, double c) const { return __builtin_fma(a, b, c); }
  static float scaled(float a, float b, float c) { return __builtin_fmaf(a * kRoom, b, c * kRoom); }
};

/// Op::flags: rounding_flags(), kFlushes, kSaturates.
template <typename F, typename T>
const Op* rounded(const Op* op, Warp& warp) {
  const T* a = warp.reg<T>(op->a);
  const T* b = warp.reg<T>(op->b);
  const T* c = warp.reg<T>(op->c);
  const T* d = warp.reg<T>(op->d);
  const bool flushes = (op->flags & kFlushes) != 0, saturates = (op->flags & kSaturates) != 0;
  {
    const RoundingScope scope(rounding_mode(op->flags & 0xffff));
    write_lanes<false, T>(warp, op->d,
                          [=](int i) { return float_lane<F>(flushes, a[i], b[i], c[i]); });
  }
  write_lanes<false, T>(warp, op->d,
                        [=](int i) { return saturates ? clamp_unit(d[i]) : canonical(d[i]); });
  return op + 1;
}

#if defined(__AVX512F__)
/// fma.f32 with neither .ftz nor .sat, part of every expf(): the instruction itself has the
/// rounding mode, because setting the host's mode takes longer than all lanes.
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
  const std::uint32_t flags = rounding_flags(mods.rounding) | modifier_flags(mods);
  return mods.type[0] == ptx::Type::f64 ? restored_pair<rounded<F, double>, double>(flags)
                                        : restored_pair<rounded<F, float>, float>(flags);
}

}  // namespace

OpPair select_float_rounded(const ptx::Instruction& inst, const OperandWidths&) {
  using ptx::Handler;
  const ptx::Modifiers& mods = inst.modifiers;
  if (mods.type[0] != ptx::Type::f32 && mods.type[0] != ptx::Type::f64) return {};
  if (host_rounding(mods.rounding) == FE_TONEAREST) return {};
  switch (inst.row->handler) {
    case Handler::add: return rounded_pair<Add>(mods);
    case Handler::sub: return rounded_pair<Subtract>(mods);
    case Handler::mul: return rounded_pair<Multiply>(mods);
    case Handler::fma:
    case Handler::mad:
#if defined(__AVX512F__)
      if (mods.type[0] == ptx::Type::f32 && !mods.ftz && !mods.sat) return fused_pair(mods);
#endif
      return rounded_pair<FusedByMode>(mods);
    case Handler::div: return rounded_pair<Divide>(mods);
    case Handler::rcp: return rounded_pair<Reciprocal>(mods);
    case Handler::sqrt: return rounded_pair<SquareRoot>(mods);
    default: return {};
  }
}

}  // namespace kernwright::sim::KW_SIM_NS
