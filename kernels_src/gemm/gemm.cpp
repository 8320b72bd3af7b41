// Launches of gemm.cu, the second kernel of products in parts, and the way without tensor maps.
#include "kernels_src/gemm/gemm.h"

#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "kernels_src/cast/cast.h"
#include "kernels_src/family.h"
#include "kernels_src/gemm/fma_gemm.h"
#include "kernels_src/gemm/gemm_kernels.h"
#include "kernels_src/gemm/gemm_layout.h"
#include "kernels_src/gemm/gemm_maps.h"
#include "kernels_src/gemm/mma_gemm.h"
#include "kernels_src/gemm/own_epilogue.h"
#include "kernels_src/gemm/product_choices.h"
#include "kernels_src/matmul/matmul.h"
#include "kernels_src/operands.h"

#include <algorithm>
#include <utility>

namespace kernwright::kernels {
namespace {

/// `rows` of `dense` elements each, in the batch's two dimensions.
CUtensorMap operand_map(const Array& array, std::int64_t rows, std::int64_t dense,
                        std::int64_t stride, const GemmBatchDim& outer, const GemmBatchDim& within,
                        std::int64_t GemmBatchDim::*side, int box_rows) {
  const auto extent = [&](const GemmBatchDim& dim) { return dim.*side == 0 ? 1 : dim.extent; };
  return gemm_map(array.device(), {.address = array.address(),
                                   .shape = {extent(outer), extent(within), rows, dense},
                                   .strides = {outer.*side, within.*side, stride, 2},
                                   .type = array.type(),
                                   .box_rows = static_cast<std::uint32_t>(box_rows)});
}

GemmProblem problem_of(const GemmLayout& layout, const GemmChoice& choice, bool gated) {
  const auto parts = [](std::int64_t a, std::int64_t b) {
    return static_cast<std::int32_t>((a + b - 1) / b);
  };
  GemmProblem of{};
  of.rows = static_cast<std::int32_t>(layout.rows);
  of.columns = static_cast<std::int32_t>(gated ? layout.columns / 2 : layout.columns);
  of.steps = parts(layout.inner, 64);
  of.steps_of_split = parts(of.steps, choice.splits);
  of.splits = parts(of.steps, of.steps_of_split);  // none of them is empty
  of.row_tiles = parts(layout.rows, std::int64_t{choice.tile.rows} * choice.tile.cluster);
  of.column_tiles = parts(of.columns, gated ? choice.tile.columns / 2 : choice.tile.columns);
  of.group = choice.group;
  of.batches = static_cast<std::int32_t>(layout.batches());
  of.inner_batches = static_cast<std::int32_t>(layout.within.extent);
  of.a_inner = layout.within.a != 0;
  of.a_outer = layout.outer.a != 0;
  of.b_inner = layout.within.b != 0;
  of.b_outer = layout.outer.b != 0;
  return of;
}

/// A product that gemm.cu takes.
struct FastGemm {
  const Gemm& of;
  const GemmEpilogue& epilogue;
  const GemmOperand &a, &b;
  const GemmLayout& layout;
  const Stream& on;

  GemmChoice choice(const Array& result) const {
    const GemmSize size{
        .rows = layout.rows,
        .columns = layout.columns,
        .inner = layout.inner,
        .batches = layout.batches(),
        .multiprocessors = result.device().attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
        .out_bytes = scalar_size(result.type()),
        .gated = epilogue.gate.has_value()};
    if (of.tile) return choose_gemm(size, *of.tile, size.gated ? 1 : of.splits);
    GemmChoice chosen = choose_gemm(size);
    if (of.splits > 0 && !size.gated) chosen.splits = of.splits;
    return chosen;
  }

  /// All of the result, or the parts of its sums.
  void launch_on(const Array& result, const GemmChoice& choice, const GemmProblem& problem,
                 const GemmEpilogue& ending) const {
    const GemmTile& tile = choice.tile;
    GemmInstance instance{of.a.type(),   result.type(), tile,
                          !a.dense_rows, b.dense_rows,  GemmStore::direct};
    if (is_half_float(result.type())) {
      instance.store = problem.columns % 8 == 0 ? GemmStore::by_copies : GemmStore::by_elements;
    }
    const auto [a_rows, a_dense] =
        a.dense_rows ? std::pair(layout.rows, layout.inner) : std::pair(layout.inner, layout.rows);
    const auto [b_rows, b_dense] = b.dense_rows ? std::pair(layout.inner, layout.columns)
                                                : std::pair(layout.columns, layout.inner);
    const CUtensorMap map_a =
        operand_map(a.array, a_rows, a_dense, layout.a_stride, layout.outer, layout.within,
                    &GemmBatchDim::a, a.dense_rows ? tile.rows : 64);
    // The columns of a gated tile come in two boxes at least.
    const int shared = ending.gate ? std::max(2, tile.cluster) : tile.cluster;
    const int b_box = b.dense_rows ? 64 / tile.cluster : tile.columns / shared;
    const CUtensorMap map_b = operand_map(b.array, b_rows, b_dense, layout.b_stride, layout.outer,
                                          layout.within, &GemmBatchDim::b, b_box);
    CUtensorMap map_out{};
    if (instance.store == GemmStore::by_copies) {
      const std::int64_t stride = std::int64_t{problem.columns} * 2;
      map_out =
          gemm_map(result.device(), {.address = result.address(),
                                     .shape = {1, problem.batches, layout.rows, problem.columns},
                                     .strides = {0, layout.rows * stride, stride, 2},
                                     .type = result.type(),
                                     .box_rows = 16,
                                     .rank = 3});
    }
    const std::int64_t clusters =
        std::int64_t{problem.row_tiles} * problem.column_tiles * problem.batches * problem.splits;
    const std::int64_t at_once = std::max(
        1, result.device().attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) / tile.cluster);
    LaunchConfig config{
        .grid = {static_cast<std::uint32_t>(std::min(clusters, at_once) * tile.cluster)},
        .block = {static_cast<std::uint32_t>(tile.threads())},
        .shared_bytes =
            static_cast<std::uint32_t>(tile.shared_bytes(instance.store != GemmStore::direct)),
        .stream = on};
    if (tile.cluster > 1) config.cluster = {static_cast<std::uint32_t>(tile.cluster), 1, 1};
    launch(gemm_kernel(instance, ending).on(result.device()), config, map_a, map_b, map_out,
           result.address(), gemm_epilogue_values(ending), problem);
  }

  void run(const Array& result) const {
    const GemmChoice made = choice(result);
    const GemmProblem problem = problem_of(layout, made, epilogue.gate.has_value());
    if (problem.splits == 1 && has_short_epilogue(epilogue)) {
      launch_on(result, made, problem, epilogue);
    } else {
      const Array sums = Array::empty(
          result.device(), {problem.splits, problem.batches, layout.rows, layout.columns},
          ScalarType::float32, on);
      launch_on(sums, made, problem, GemmEpilogue{});
      finish_sums(sums, result, epilogue, problem.splits, on);
    }
    a.array.use_on(on);
    b.array.use_on(on);
  }
};

/// Of int8 and float64 there are just the sums.
void require_sums_alone(const Gemm& of, ScalarType type) {
  const GemmEpilogue& then = of.epilogue;
  const bool wide = of.a.type() == ScalarType::float64;
  if (wide ? type != of.a.type() : type != ScalarType::int32 && type != ScalarType::int8) {
    throw ArgumentError(format("the result of a product of {} is {}, not {}",
                               scalar_name(of.a.type()), wide ? "float64" : "int32 or int8",
                               scalar_name(type)));
  }
  if (then.bias || then.c || then.activation || then.gate || then.alpha != 1 ||
      !then.expression.empty()) {
    throw ArgumentError(
        format("nothing follows a product of {}: no alpha, bias, c, activation or gate",
               scalar_name(of.a.type())));
  }
}

bool is_gemm_float8(ScalarType type) {
  return type == ScalarType::float8_e4m3fn || type == ScalarType::float8_e5m2;
}

void require_gemm(const Gemm& of, ScalarType type) {
  if (&of.a.device() != &of.b.device() || of.a.type() != of.b.type()) {
    throw InvalidArgument(format("a matrix product wants the same device and type: {} and {}",
                                 of.a.identify(), of.b.identify()));
  }
  const bool is_tf32 = of.a.type() == ScalarType::float32 && of.tf32;
  if (of.tf32 && !is_tf32) {
    throw ArgumentError(format("tf32 is a precision of float32, not of {}", of.a.identify()));
  }
  if (of.a.type() == ScalarType::int8 || of.a.type() == ScalarType::float64) {
    require_sums_alone(of, type);
  } else if (!is_half_float(of.a.type()) && !is_gemm_float8(of.a.type()) &&
             of.a.type() != ScalarType::float32) {
    throw ArgumentError(
        format("this product takes float16 or bfloat16, float8, int8, float32 and float64, not {}; "
               "matmul() takes all",
               of.a.identify()));
  } else if (!is_half_float(type) && type != ScalarType::float32) {
    throw ArgumentError(format("the result of this product is float16, bfloat16 or float32, not {}",
                               scalar_name(type)));
  }
  if (of.tile) require_gemm_tile(*of.tile);
  if (of.mma_tile) require_mma_tile(*of.mma_tile);
  if (of.fma_tile) require_fma_tile(*of.fma_tile, scalar_size(of.a.type()));
  if (of.splits < 0) throw ArgumentError(format("splits are 1 or more, not {}", of.splits));
}

void require_addend(const Array& array, const char* name, const Array& result,
                    const Shape& wanted) {
  require_one_device(array, name, result, "the result");
  if (!is_half_float(array.type()) && array.type() != ScalarType::float32) {
    throw ArgumentError(
        format("{} is float16, bfloat16 or float32, not {}", name, array.identify()));
  }
  if (array.shape() != wanted) {
    throw InvalidArgument(format("Incompatible dimensions: {} is {}, for a result that is {}", name,
                                 array.identify(), result.identify()));
  }
}

/// With operands as the kernels want them; the bias is of so many columns.
GemmEpilogue ready_epilogue(const GemmEpilogue& epilogue, const Array& result, std::int64_t columns,
                            const Stream& on) {
  GemmEpilogue ready = epilogue;
  if (epilogue.bias) {
    require_addend(*epilogue.bias, "bias", result, {columns});
    ready.bias = contiguous(*epilogue.bias, on);
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
}

/// By gemm.cu; false where that cannot be.
bool run_wgmma(const Gemm& of, const GemmEpilogue& ready, const Array& result, const Stream& on) {
  if (of.kernel != GemmKernel::automatic || of.mma_tile) return false;
  if (!is_half_float(of.a.type()) || !of.a.device().capabilities().wgmma) return false;
  const GemmOperand left = gemm_operand(of.a, on), right = gemm_operand(of.b, on);
  const std::optional<GemmLayout> layout = gemm_layout(left, right);
  if (!layout) return false;
  // Copies begin on 16 bytes of a row, also in its second half.
  if (ready.gate && right.dense_rows && layout->columns % 16 != 0) return false;
  FastGemm{of, ready, left, right, *layout, on}.run(result);
  return true;
}

/// Whether each product is rounded once: not a matter for tensor cores.
bool is_exact_gemm(const Gemm& of) {
  return of.a.type() == ScalarType::float64 || (of.a.type() == ScalarType::float32 && !of.tf32);
}

/// By a kernel for the type; false where that cannot be.
bool run_fast(const Gemm& of, const GemmEpilogue& ready, const Array& result, const Stream& on) {
  if (of.kernel == GemmKernel::plain || of.a.shape().back() == 0) return false;
  if (const std::optional<Gemm> planned = planned_gemm(of, result.type())) {
    return run_fast(*planned, ready, result, on);
  }
  if (is_exact_gemm(of)) return run_fma(of, ready, result, on);
  return run_wgmma(of, ready, result, on) || run_mma(of, ready, result, on);
}

ScalarType gemm_result_type(const Gemm& of) {
  if (of.type) return *of.type;
  if (of.a.type() == ScalarType::int8) return ScalarType::int32;
  return is_gemm_float8(of.a.type()) ? ScalarType::float32 : of.a.type();
}

/// In float32, or in the type of the result where that has just the sums.
Array run_plain(const Gemm& of, const GemmEpilogue& ready, const Array& result, const Stream& on) {
  const bool whole = of.a.type() == ScalarType::int8 || of.a.type() == ScalarType::float64;
  const ScalarType wide = whole ? result.type() : ScalarType::float32;
  const Array sums = plain_matmul(cast(of.a, wide, on), cast(of.b, wide, on), on);
  if (whole) return sums;
  finish_sums(sums, result, ready, 1, on);
  return result;
}

void require_gated(const Gemm& of, const Shape& shape) {
  if (of.epilogue.c || of.epilogue.activation) {
    throw ArgumentError("a gated product has neither c nor an activation beside its gate");
  }
  if (shape.back() % 2 != 0) {
    throw InvalidArgument(format(
        "Incompatible dimensions: the columns of {} are two operands of a gate, and their number "
        "is odd",
        of.b.identify()));
  }
  if (of.tile && of.tile->columns % 128 != 0) {
    throw ArgumentError(
        format("a tile of a gated product has 128 or 256 columns, not {}", of.tile->columns));
  }
}

Array run_gated(const Gemm& of, ScalarType out, const Stream& on) {
  Shape shape = gemm_shape(of.a, of.b);
  require_gated(of, shape);
  const std::int64_t columns = shape.back();
  shape.back() /= 2;
  const Array result = Array::empty(of.a.device(), std::move(shape), out, on);
  const GemmEpilogue ready = ready_epilogue(of.epilogue, result, columns, on);
  if (result.size() == 0) return result;
  if (has_short_epilogue(ready) && run_fast(of, ready, result, on)) {
    use_all(result, ready, on);
    return result;
  }
  Gemm both = of;
  both.epilogue.gate.reset();
  both.type = ScalarType::float32;
  const Array gated = gate(*of.epilogue.gate, both.run(on), std::nullopt, on);
  return out == ScalarType::float32 ? gated : cast(gated, out, on);
}

}  // namespace

bool has_fast_gemm(const Array& a, const Array& b) {
  return is_half_float(a.type()) && a.type() == b.type() && has_mma(a);
}

Array Gemm::run(const Stream& stream) const {
  const ScalarType out = gemm_result_type(*this);
  require_gemm(*this, out);
  require_own_epilogue(epilogue);
  const Stream on = stream ? stream : Stream::legacy(a.device());
  if (epilogue.gate) return run_gated(*this, out, on);
  Array result = Array::empty(a.device(), gemm_shape(a, b), out, on);
  const GemmEpilogue ready = ready_epilogue(epilogue, result, result.shape().back(), on);
  if (result.size() == 0) return result;
  if (!run_fast(*this, ready, result, on)) result = run_plain(*this, ready, result, on);
  use_all(result, ready, on);
  return result;
}

}  // namespace kernwright::kernels
