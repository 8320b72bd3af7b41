// Launches of gemm.cu, the second kernel of products in parts, and the way without tensor maps.
#include "kernels_src/gemm/gemm.h"

#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "kernels_src/cast/cast.h"
#include "kernels_src/family.h"
#include "kernels_src/formats/formats.h"
#include "kernels_src/gemm/fma/fma_gemm.h"
#include "kernels_src/gemm/gemm_kernels.h"
#include "kernels_src/gemm/gemm_layout.h"
#include "kernels_src/gemm/gemm_maps.h"
#include "kernels_src/gemm/mma/mma_gemm.h"
#include "kernels_src/gemm/own_epilogue.h"
#include "kernels_src/gemm/product_choices.h"
#include "kernels_src/matmul/matmul.h"
#include "kernels_src/operands.h"

#include <algorithm>
#include <utility>

namespace kernwright::kernels {
namespace {

// As in promoted_gemm.cu; steps in elements.
struct GemmBlockValues {
  CUdeviceptr b = 0;
  std::int64_t column_step = 0, inner_step = 0;
  std::int32_t last_column = 0;
};
constexpr std::int64_t kGemmBlock = 128;
constexpr std::int64_t kGemmStage = 128;  // bytes along the inner dimension

/// Elements of a stage along the inner dimension.
std::int64_t stage_elements(const Array& operand) {
  return kGemmStage / static_cast<std::int64_t>(scalar_size(operand.type()));
}

/// `rows` of `dense` elements each, in the batch's two dimensions.
CUtensorMap operand_map(const Array& array, std::int64_t rows, std::int64_t dense,
                        std::int64_t stride, const GemmBatchDim& outer, const GemmBatchDim& within,
                        std::int64_t GemmBatchDim::*side, int box_rows) {
  const auto extent = [&](const GemmBatchDim& dim) { return dim.*side == 0 ? 1 : dim.extent; };
  const auto element = static_cast<std::int64_t>(scalar_size(array.type()));
  return gemm_map(array.device(),
                  {.address = array.address(),
                   .shape = {extent(outer), extent(within), rows, dense},
                   .strides = {outer.*side, within.*side, stride, element},
                   .type = array.type(),
                   .box_rows = static_cast<std::uint32_t>(box_rows),
                   .box_columns = static_cast<std::uint32_t>(stage_elements(array))});
}

/// A map of scales (rows, blocks) with dense columns: the scales of a tile's rows in one block.
CUtensorMap scales_map(const Array& scales, int box) {
  const Shape& shape = scales.shape();
  return gemm_map(scales.device(), {.address = scales.address(),
                                    .shape = {1, 1, shape[1], shape[0]},
                                    .strides = {0, 0, scales.strides()[1], 4},
                                    .type = ScalarType::float32,
                                    .box_rows = 1,
                                    .box_columns = static_cast<std::uint32_t>(box),
                                    .swizzled = false});
}

GemmProblem problem_of(const GemmLayout& layout, const GemmChoice& choice, bool gated,
                       std::int64_t stage) {
  const auto parts = [](std::int64_t a, std::int64_t b) {
    return static_cast<std::int32_t>((a + b - 1) / b);
  };
  GemmProblem of{};
  of.rows = static_cast<std::int32_t>(layout.rows);
  of.columns = static_cast<std::int32_t>(gated ? layout.columns / 2 : layout.columns);
  of.steps = parts(layout.inner, stage);
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

/// A product for gemm.cu or promoted_gemm.cu.
struct FastGemm {
  const Gemm& of;
  const GemmEpilogue& epilogue;
  const GemmOperand &a, &b;
  const GemmLayout& layout;
  const Stream& on;
  bool promotes;
  std::optional<GemmBlockScales> scales;  ///< as the kernel wants them

  GemmChoice choice(const Array& result) const {
    const GemmSize size{
        .rows = layout.rows,
        .columns = layout.columns,
        .inner = layout.inner,
        .batches = layout.batches(),
        .multiprocessors = result.device().attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
        .out_bytes = scalar_size(result.type()),
        .in_bytes = scalar_size(of.a.type()),
        .promotes = promotes,
        .block_scales = scales.has_value(),
        .whole = of.a.type() == ScalarType::int8,
        .gated = epilogue.gate.has_value()};
    const bool one = size.gated || size.whole;
    if (of.tile) return choose_gemm(size, *of.tile, one ? 1 : of.splits);
    GemmChoice chosen = choose_gemm(size);
    if (of.splits > 0 && !one) chosen.splits = of.splits;
    return chosen;
  }

  GemmSums sums() const {
    if (scales) return GemmSums::of_blocks;
    return promotes ? GemmSums::promoted : GemmSums::direct;
  }

  /// Boxes of lines that are whole units of 16 bytes; else lines of elements of 2 bytes go through
  /// shared memory.
  static GemmStore store_of(ScalarType type, std::int64_t columns) {
    const auto element = static_cast<std::int64_t>(scalar_size(type));
    if (element != 2 && element != 4) return GemmStore::direct;
    if (columns * element % 16 == 0) return GemmStore::by_copies;
    return element == 2 ? GemmStore::by_elements : GemmStore::direct;
  }

  CUtensorMap result_map(const Array& result, const GemmProblem& problem) const {
    const auto element = static_cast<std::int64_t>(scalar_size(result.type()));
    const std::int64_t stride = problem.columns * element;
    const std::int64_t matrices = std::int64_t{problem.batches} * problem.splits;
    return gemm_map(result.device(), {.address = result.address(),
                                      .shape = {1, matrices, layout.rows, problem.columns},
                                      .strides = {0, layout.rows * stride, stride, element},
                                      .type = result.type(),
                                      .box_rows = 16,
                                      .box_columns = static_cast<std::uint32_t>(128 / element),
                                      .rank = 3});
  }

  /// All of the result, or the parts of its sums.
  void launch_on(const Array& result, const GemmChoice& choice, const GemmProblem& problem,
                 const GemmEpilogue& ending) const {
    const GemmTile& tile = choice.tile;
    const GemmInstance instance{of.a.type(),
                                of.b.type(),
                                result.type(),
                                tile,
                                !a.dense_rows,
                                b.dense_rows,
                                store_of(result.type(), problem.columns),
                                sums()};
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
    if (instance.store == GemmStore::by_copies) map_out = result_map(result, problem);
    const std::int64_t clusters =
        std::int64_t{problem.row_tiles} * problem.column_tiles * problem.batches * problem.splits;
    const std::int64_t at_once = std::max(
        1, result.device().attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) / tile.cluster);
    LaunchConfig config{
        .grid = {static_cast<std::uint32_t>(std::min(clusters, at_once) * tile.cluster)},
        .block = {static_cast<std::uint32_t>(tile.threads())},
        .shared_bytes = static_cast<std::uint32_t>(
            tile.shared_bytes(instance.store != GemmStore::direct, scales.has_value())),
        .stream = on};
    if (tile.cluster > 1) config.cluster = {static_cast<std::uint32_t>(tile.cluster), 1, 1};
    const Kernel& kernel = gemm_kernel(instance, ending).on(result.device());
    const GemmEpilogueValues then = gemm_epilogue_values(ending);
    if (!promotes) {
      launch(kernel, config, map_a, map_b, map_out, result.address(), then, problem);
      return;
    }
    CUtensorMap map_scales{};
    GemmBlockValues blocks{};
    if (scales) {
      map_scales = scales_map(scales->a, tile.rows);
      const Shape &shape = scales->b.shape(), &strides = scales->b.strides();
      blocks = {scales->b.address(), strides[1] / 4, strides[0] / 4,
                static_cast<std::int32_t>(shape[1] - 1)};
    }
    launch(kernel, config, map_a, map_b, map_out, map_scales, blocks, result.address(), then,
           problem);
  }

  void run(const Array& result) const {
    const GemmChoice made = choice(result);
    const GemmProblem problem =
        problem_of(layout, made, epilogue.gate.has_value(), stage_elements(a.array));
    run_product(result, epilogue, has_short_epilogue(epilogue),
                {problem.splits, problem.batches, layout.rows, layout.columns}, on,
                [&](const Array& target, const GemmEpilogue& ending) {
                  launch_on(target, made, problem, ending);
                });
    a.array.use_on(on);
    b.array.use_on(on);
    if (scales) {
      scales->a.use_on(on);
      scales->b.use_on(on);
    }
  }
};

/// int8 and float64 have only the plain sums.
void require_sums_alone(const Gemm& of, ScalarType type) {
  const GemmEpilogue& then = of.epilogue;
  const bool wide = of.a.type() == ScalarType::float64;
  if (wide ? type != of.a.type() : type != ScalarType::int32 && type != ScalarType::int8) {
    throw ArgumentError(format("the result of a product of {} is {}, not {}",
                               scalar_name(of.a.type()), wide ? "float64" : "int32 or int8",
                               scalar_name(type)));
  }
  if (then.bias || then.c || then.activation || then.gate || then.alpha != 1 || then.row_scales ||
      !then.expression.empty()) {
    throw ArgumentError(
        format("nothing follows a product of {}: no alpha, bias, c, scales, activation or gate",
               scalar_name(of.a.type())));
  }
}

bool is_promoted(const Gemm& of) {
  const ProductSums sums = product_sums(of);
  return sums == ProductSums::promoted || sums == ProductSums::blocks;
}

void require_scale(const Array& scales, const char* name, const Array& of, const Shape& wanted) {
  require_one_device(scales, name, of, "what they belong to");
  if (scales.type() != ScalarType::float32) {
    throw ArgumentError(format("{} are float32, not {}", name, scales.identify()));
  }
  if (scales.shape() == wanted || (wanted.size() == 1 && scales.size() == 1)) return;
  throw InvalidArgument(format("Incompatible dimensions: {} are {}, and must be of {} for {}", name,
                               scales.identify(), shape_to_string(wanted), of.identify()));
}

/// Checks the scales of rows and columns, or of blocks.
void require_scales(const Gemm& of) {
  const GemmEpilogue& then = of.epilogue;
  if (!then.row_scales && !then.column_scales && !of.block_scales) return;
  if (then.row_scales.has_value() != then.column_scales.has_value() ||
      (then.row_scales && of.block_scales) || then.gate || of.a.ndim() != 2 || of.b.ndim() != 2) {
    throw ArgumentError(
        "scales are those of rows and columns, or of blocks, of a product of two "
        "matrices without a gate");
  }
  const std::int64_t rows = of.a.shape()[0], inner = of.a.shape()[1], columns = of.b.shape()[1];
  if (then.row_scales) {
    require_scale(*then.row_scales, "scales of rows", of.a, {rows});
    require_scale(*then.column_scales, "scales of columns", of.b, {columns});
    return;
  }
  const auto blocks = [](std::int64_t extent) { return (extent + kGemmBlock - 1) / kGemmBlock; };
  if (!is_gemm_float8(of.a.type())) {
    throw ArgumentError(format("scales of blocks are of float8, not of {}", of.a.identify()));
  }
  require_scale(of.block_scales->a, "scales of a's blocks", of.a, {rows, blocks(inner)});
  require_scale(of.block_scales->b, "scales of b's blocks", of.b, {blocks(inner), blocks(columns)});
}

void require_gemm(const Gemm& of, ScalarType type) {
  const bool both_float8 = is_gemm_float8(of.a.type()) && is_gemm_float8(of.b.type());
  if (&of.a.device() != &of.b.device() || (of.a.type() != of.b.type() && !both_float8)) {
    throw InvalidArgument(format("a matrix product wants the same device and type: {} and {}",
                                 of.a.identify(), of.b.identify()));
  }
  require_scales(of);
  const bool is_tf32 = of.a.type() == ScalarType::float32 && of.tf32;
  if (of.tf32 && !is_tf32) {
    throw ArgumentError(format("tf32 is a precision of float32, not of {}", of.a.identify()));
  }
  const bool is_whole = of.a.type() == ScalarType::int8;
  if (of.a.type() == ScalarType::float64 || (is_whole && !of.epilogue.row_scales)) {
    require_sums_alone(of, type);
  } else if (!is_half_float(of.a.type()) && !is_gemm_float8(of.a.type()) && !is_whole &&
             of.a.type() != ScalarType::float32) {
    throw ArgumentError(
        format("this product takes float16 or bfloat16, float8, int8, float32 and float64, not {}; "
               "matmul() takes all",
               of.a.identify()));
  } else if (!is_half_float(type) && type != ScalarType::float32) {
    throw ArgumentError(format("the result of this product is float16, bfloat16 or float32, not {}",
                               scalar_name(type)));
  }
  if (of.tile) require_gemm_tile(*of.tile, is_promoted(of));
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

/// By gemm.cu; false if impossible.
bool run_wgmma(const Gemm& of, const GemmEpilogue& ready, const Array& result, const Stream& on) {
  if (of.kernel != GemmKernel::automatic || of.mma_tile) return false;
  if (!of.a.device().capabilities().wgmma) return false;
  const bool any = is_half_float(of.a.type());
  const auto wanted = [&](bool rows) { return any ? std::nullopt : std::optional(rows); };
  const GemmOperand left = gemm_operand(of.a, on, wanted(true));
  const GemmOperand right = gemm_operand(of.b, on, wanted(false));
  const std::optional<GemmLayout> layout = gemm_layout(left, right);
  if (!layout) return false;
  // Copies begin on 16 bytes of a row, also in its second half.
  if (ready.gate && right.dense_rows && layout->columns % 16 != 0) return false;
  std::optional<GemmBlockScales> scales;
  if (of.block_scales) {
    scales = {gemm_operand(of.block_scales->a, on, false).array, of.block_scales->b};
  }
  FastGemm{of, ready, left, right, *layout, on, is_promoted(of), scales}.run(result);
  return true;
}

/// Float8 as bfloat16, a superset of its numbers; those in blocks times their scales, rounded.
Gemm in_bfloat16(const Gemm& of, const Stream& on) {
  Gemm wide = of;
  wide.block_scales.reset();
  wide.tile.reset();
  constexpr ScalarType type = ScalarType::bfloat16;
  if (of.block_scales) {
    const GemmBlockScales& scales = *of.block_scales;
    wide.a = dequantize_tiles(of.a, scales.a, {1, kGemmBlock}, type, on);
    wide.b =
        dequantize_tiles(of.b.transpose(), scales.b.transpose(), {kGemmBlock, kGemmBlock}, type, on)
            .transpose();
  } else {
    wide.a = cast(of.a, type, on);
    wide.b = cast(of.b, type, on);
  }
  return wide;
}

/// Whether each product is rounded once: not a matter for tensor cores.
bool is_exact_gemm(const Gemm& of) {
  return of.a.type() == ScalarType::float64 || (of.a.type() == ScalarType::float32 && !of.tf32);
}

/// By a kernel for the type; false if impossible.
bool run_fast(const Gemm& of, const GemmEpilogue& ready, const Array& result, const Stream& on) {
  if (of.kernel == GemmKernel::plain || of.a.shape().back() == 0) return false;
  if (const std::optional<Gemm> planned = planned_gemm(of, result.type())) {
    return run_fast(*planned, ready, result, on);
  }
  if (is_exact_gemm(of)) return run_fma(of, ready, result, on);
  if (run_wgmma(of, ready, result, on)) return true;
  const bool as_they_are = of.a.type() == of.b.type() && has_mma(of.a);
  if (is_gemm_float8(of.a.type()) && !as_they_are) {
    return run_mma(in_bfloat16(of, on), ready, result, on);
  }
  return run_mma(of, ready, result, on);
}

ScalarType gemm_result_type(const Gemm& of) {
  if (of.type) return *of.type;
  if (of.a.type() == ScalarType::int8) return ScalarType::int32;
  return is_gemm_float8(of.a.type()) ? ScalarType::float32 : of.a.type();
}

/// In float32, or in the type of the result if it has just the sums.
Array run_plain(const Gemm& of, const GemmEpilogue& ready, const Array& result, const Stream& on) {
  const bool whole = of.a.type() == ScalarType::int8;
  if (of.a.type() == ScalarType::float64 || (whole && !ready.row_scales)) {
    return plain_matmul(cast(of.a, result.type(), on), cast(of.b, result.type(), on), on);
  }
  if (of.block_scales) return run_plain(in_bfloat16(of, on), ready, result, on);
  const ScalarType wide = whole ? ScalarType::int32 : ScalarType::float32;
  const Array sums = plain_matmul(cast(of.a, wide, on), cast(of.b, wide, on), on);
  finish_sums(whole ? cast(sums, ScalarType::float32, on) : sums, result, ready, 1, on);
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

bool is_gemm_float8(ScalarType type) noexcept {
  return type == ScalarType::float8_e4m3fn || type == ScalarType::float8_e5m2;
}

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
