// The kernel of a matrix product, its operands, and the way without tensor cores.
#include "kernels_src/gemm/gemm.h"

#include "base/errors.h"
#include "base/format.h"
#include "kernels_src/cast/cast.h"
#include "kernels_src/formats/formats.h"
#include "kernels_src/gemm/custom_epilogue.h"
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

void require_addend(const Array& array, const char* name, const Array& result,
                    const Shape& wanted) {
  require_one_device(array, name, result, "the result");
  if (!is_half(array.type()) && array.type() != ScalarType::float32) {
    throw ArgumentError(
        format("{} is float16, bfloat16 or float32, not {}", name, array.identify()));
  }
  if (array.shape() != wanted) {
    throw InvalidArgument(format("Incompatible dimensions: {} is {}, for a result that is {}", name,
                                 array.identify(), result.identify()));
  }
}

/// An epilogue with operands as the kernels want them; the bias has so many columns.
GemmEpilogue ready_epilogue(const GemmEpilogue& epilogue, const Array& result, std::int64_t columns,
                            const Stream& on) {
  GemmEpilogue ready = epilogue;
  if (epilogue.bias) {
    require_addend(*epilogue.bias, "bias", result, {columns});
    ready.bias = contiguous(*epilogue.bias, on);
  }
  if (epilogue.row_scales) {
    ready.row_scales = contiguous(*epilogue.row_scales, on);
    ready.column_scales = contiguous(*epilogue.column_scales, on);
  }
  if (epilogue.c) {
    require_addend(*epilogue.c, "c", result, result.shape());
    ready.c = epilogue.c->type() == result.type() ? contiguous(*epilogue.c, on)
                                                  : cast(*epilogue.c, result.type(), on);
  }
  return ready;
}

void use_all(const Array& result, const GemmEpilogue& ready, const Stream& on) {
  result.use_on(on);
  if (ready.bias) ready.bias->use_on(on);
  if (ready.c) ready.c->use_on(on);
  if (ready.row_scales) {
    ready.row_scales->use_on(on);
    ready.column_scales->use_on(on);
  }
}

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
bool run_fast(const Gemm& gemm, const GemmEpilogue& ready, const Array& result, const Stream& on) {
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

/// By the plain kernel: in float32, or in the type of a result that has just the sums.
Array run_plain(const Gemm& gemm, const GemmEpilogue& ready, const Array& result,
                const Stream& on) {
  const bool whole = gemm.a.type() == ScalarType::int8;
  if (gemm.a.type() == ScalarType::float64 || (whole && !ready.row_scales)) {
    return plain_matmul(cast(gemm.a, result.type(), on), cast(gemm.b, result.type(), on), on);
  }
  if (gemm.block_scales) return run_plain(in_bfloat16(gemm, on), ready, result, on);
  KernelsAhead kernels;
  const LazyKernel* const finish = begin_finish(kernels, result, ready);
  const ScalarType wide = whole ? ScalarType::int32 : ScalarType::float32;
  const Array sums = plain_matmul(cast(gemm.a, wide, on), cast(gemm.b, wide, on), on);
  finish_sums(whole ? cast(sums, ScalarType::float32, on) : sums, result, ready, 1, finish, kernels,
              on);
  return result;
}

Array run_gated(const Gemm& gemm, ScalarType out, const Stream& on) {
  Shape shape = product_shape(gemm.a, gemm.b);
  require_gated(gemm, shape);
  const std::int64_t columns = shape.back();
  shape.back() /= 2;
  const Array result =
      gemm.out ? *gemm.out : Array::empty(gemm.a.device(), std::move(shape), out, on);
  const GemmEpilogue ready = ready_epilogue(gemm.epilogue, result, columns, on);
  if (result.size() == 0) return result;
  if (fuses_gate(gemm) && run_fast(gemm, ready, result, on)) {
    use_all(result, ready, on);
    return result;
  }
  Gemm both = gemm;
  both.epilogue.gate.reset();
  both.out.reset();
  both.type = ScalarType::float32;
  const Array gated = gate(*gemm.epilogue.gate, run_checked(both, on), std::nullopt, on);
  return deliver(gemm.out, out == ScalarType::float32 ? gated : cast(gated, out, on), on);
}

}  // namespace

bool is_exact_gemm(const Gemm& gemm) {
  return gemm.a.type() == ScalarType::float64 ||
         (gemm.a.type() == ScalarType::float32 && !gemm.tf32);
}

bool is_promoted(const Gemm& gemm) {
  return is_float8(gemm.a.type()) && !gemm.tf32 && (gemm.block_scales || !gemm.fast_sums);
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
  return run_checked(*this, stream);
}

Array run_checked(const Gemm& gemm, const Stream& stream) {
  Device& device = gemm.a.device();
  const ScalarType type = gemm_result_type(gemm);
  const Stream on = stream ? stream : Stream::legacy(device);
  if (gemm.epilogue.gate) return run_gated(gemm, type, on);
  Array result =
      gemm.out ? *gemm.out : Array::empty(device, product_shape(gemm.a, gemm.b), type, on);
  const GemmEpilogue ready = ready_epilogue(gemm.epilogue, result, result.shape().back(), on);
  if (result.size() == 0) return result;
  if (!run_fast(gemm, ready, result, on)) result = run_plain(gemm, ready, result, on);
  use_all(result, ready, on);
  return deliver(gemm.out, result, on);
}

}  // namespace kernwright::kernels
