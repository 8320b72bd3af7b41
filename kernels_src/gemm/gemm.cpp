// The kernel of a matrix product, its operands, and the way without tensor cores.
#include "kernels_src/gemm/gemm.h"

#include "base/errors.h"
#include "base/format.h"
#include "kernels_src/cast/cast.h"
#include "kernels_src/epilogue/custom_epilogue.h"
#include "kernels_src/epilogue/finish_product.h"
#include "kernels_src/formats/formats.h"
#include "kernels_src/gemm/fma/fma_gemm.h"
#include "kernels_src/gemm/gemm_checks.h"
#include "kernels_src/gemm/gemm_kernels.h"
#include "kernels_src/gemm/gemm_layout.h"
#include "kernels_src/gemm/mma/mma_gemm.h"
#include "kernels_src/gemm/wgmma_gemm.h"
#include "kernels_src/matmul/matmul_batch.h"
#include "kernels_src/matmul/plain_matmul.h"
#include "kernels_src/operands.h"
#include "kernels_src/result_target.h"

#include <utility>

namespace kernwright::kernels {
namespace {

/// Float8 as bfloat16, a superset of its numbers; those in blocks times their scales, rounded.
Gemm in_bfloat16(const Gemm& gemm, const Stream& on) {
  Gemm wide = gemm;
  wide.block_scales.reset();
  constexpr ScalarType type = ScalarType::bfloat16;
  if (gemm.block_scales) {
    const GemmBlockScales& scales = *gemm.block_scales;
    wide.a = dequantize_tiles(gemm.a, scales.a, {1, kGemmBlock}, type, on);
    wide.b = dequantize_tiles(gemm.b.transpose(), scales.b.transpose(), {kGemmBlock, kGemmBlock},
                              type, on)
                 .transpose();
  } else {
    wide.a = cast(gemm.a, type, on);
    wide.b = cast(gemm.b, type, on);
  }
  return wide;
}

/// Splits of a plan for another kernel count, its tile does not.
int split_count(const GemmPlan& plan) {
  if (const auto* wgmma = std::get_if<WgmmaPlan>(&plan)) return wgmma->splits;
  if (const auto* mma = std::get_if<MmaPlan>(&plan)) return mma->splits;
  if (const auto* fma = std::get_if<FmaPlan>(&plan)) return fma->splits;
  return 0;
}

/// By the kernel of the plan, or the next one that can; false if none but the plain one can.
bool run_fast(const Gemm& gemm, const ProductEpilogue& ready, const Array& result,
              const Stream& on) {
  if (std::holds_alternative<PlainPlan>(gemm.plan) || gemm.a.shape().back() == 0) return false;
  if (is_exact_gemm(gemm)) {
    const auto* const fma = std::get_if<FmaPlan>(&gemm.plan);
    return run_fma(gemm, fma != nullptr ? *fma : FmaPlan{{}, split_count(gemm.plan)}, ready, result,
                   on);
  }
  const auto* const wgmma = std::get_if<WgmmaPlan>(&gemm.plan);
  if (wgmma != nullptr && run_wgmma(gemm, *wgmma, ready, result, on)) return true;
  const auto* const mma = std::get_if<MmaPlan>(&gemm.plan);
  const MmaPlan plan = mma != nullptr ? *mma : MmaPlan{{}, split_count(gemm.plan)};
  const bool as_they_are =
      gemm.a.type() == gemm.b.type() && has_mma(gemm.a.device(), gemm.a.type());
  if (is_float8(gemm.a.type()) && !as_they_are)
    return run_mma(in_bfloat16(gemm, on), plan, ready, result, on);
  return run_mma(gemm, plan, ready, result, on);
}

/// By the plain kernel: in float32, or in the type of a result without an epilogue.
Array run_plain(const Gemm& gemm, const ProductEpilogue& ready, const Array& result,
                const Stream& on) {
  const bool whole = gemm.a.type() == ScalarType::int8;
  if (gemm.a.type() == ScalarType::float64 || (whole && !ready.row_scales)) {
    return plain_matmul(cast(gemm.a, result.type(), on), cast(gemm.b, result.type(), on), on);
  }
  if (gemm.block_scales) return run_plain(in_bfloat16(gemm, on), ready, result, on);
  KernelsAhead kernels;
  const LazyKernel* const finish = begin_finish(kernels, result, ready);
  const ScalarType wide = whole ? ScalarType::int32 : ScalarType::float32;
  const Array product = plain_matmul(cast(gemm.a, wide, on), cast(gemm.b, wide, on), on);
  finish_partials(whole ? cast(product, ScalarType::float32, on) : product, result, ready, 1,
                  finish, kernels, on);
  return result;
}

/// The product in float32, and the gate by a kernel behind it.
Array run_gate_apart(const Gemm& gemm, ScalarType type, const Stream& on) {
  Gemm both = gemm;
  const ProductEpilogue rest = take_gate(both.epilogue);
  both.out.reset();
  both.type = ScalarType::float32;
  const Array gated = run_rest(run_checked(both, on), rest, {}, on);
  return deliver(gemm.out, type == ScalarType::float32 ? gated : cast(gated, type, on), on);
}

}  // namespace

bool is_exact_gemm(const Gemm& gemm) {
  return gemm.a.type() == ScalarType::float64 ||
         (gemm.a.type() == ScalarType::float32 && !gemm.tf32);
}

bool is_promoted(const Gemm& gemm) {
  return is_float8(gemm.a.type()) && !gemm.tf32 && (gemm.block_scales || !gemm.fast_accum);
}

ScalarType gemm_result_type(const Gemm& gemm) {
  if (gemm.type) return *gemm.type;
  if (gemm.a.type() == ScalarType::int8) return ScalarType::int32;
  return is_float8(gemm.a.type()) ? ScalarType::float32 : gemm.a.type();
}

bool fuses_gate(const Gemm& gemm) {
  if (is_exact_gemm(gemm) || !gemm.a.device().capabilities().wgmma) return false;
  if (!has_short_epilogue(gemm.epilogue)) return false;
  // TMA loads begin on 16 bytes of a row, also in the second half of the row.
  return gemm.b.shape().back() % 16 == 0 || !is_half(gemm.a.type()) || !has_dense_rows(gemm.b);
}

Array Gemm::run(const Stream& stream) const {
  require_gemm(*this, gemm_result_type(*this));
  require_custom_epilogue(epilogue);
  if (epilogue.residual) throw ArgumentError("a product of tiles has no residual: give it as c");
  const Shape shape = product_shape(a, b);
  if (epilogue.gate) require_gated(*this, shape);
  require_epilogue(epilogue, {.product = "a product", .x = a, .result = shape});
  return run_checked(*this, stream);
}

Array run_checked(const Gemm& gemm, const Stream& stream) {
  Device& device = gemm.a.device();
  const ScalarType type = gemm_result_type(gemm);
  const Stream on = stream ? stream : Stream::legacy(device);
  const bool gated = gemm.epilogue.gate.has_value();
  Shape shape = product_shape(gemm.a, gemm.b);
  if (gated) shape.back() /= 2;
  Array result = gemm.out ? *gemm.out : Array::empty(device, std::move(shape), type, on);
  const ProductEpilogue ready = ready_epilogue(gemm.epilogue, type, on);
  if (result.size() == 0) return result;
  const bool is_done = (!gated || fuses_gate(gemm)) && run_fast(gemm, ready, result, on);
  if (!is_done && gated) return run_gate_apart(gemm, type, on);
  if (!is_done) result = run_plain(gemm, ready, result, on);
  result.use_on(on);
  use_epilogue(ready, on);
  return deliver(gemm.out, result, on);
}

}  // namespace kernwright::kernels
