// Checks, operands and launches of products of groups.
#include "kernels_src/gemm/grouped/grouped_gemm.h"

#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "kernels_src/cast/cast.h"
#include "kernels_src/elementwise/elementwise.h"
#include "kernels_src/family.h"
#include "kernels_src/gemm/grouped/grouped_rows.h"
#include "kernels_src/gemm/mma/mma_gemm.h"
#include "kernels_src/operands.h"
#include "memory/transfer.h"

#include <algorithm>
#include <array>
#include <utility>

namespace kernwright::kernels {
namespace {

/// `array` in two dimensions.
Array as_rows(const Array& array, const Stream& on) {
  if (array.ndim() == 2) return array;
  const Shape shape = {array.shape()[0] * array.shape()[1], array.shape()[2]};
  const bool fits =
      reshape_strides(array.shape(), array.strides(), shape, scalar_size(array.type())).has_value();
  return (fits ? array : contiguous(array, on)).reshape(shape);
}

Array turned_matrices(const Array& array) {
  constexpr std::array<int, 3> kAxes = {0, 2, 1};
  return array.transpose(kAxes);
}

/// Ready operands, and the launches.
struct GroupedLaunch {
  const GroupedGemm& of;
  GemmOperand x, weights;  // (rows, k), (groups, k, n)
  GemmLayout layout;
  ProductGroups groups;
  std::int64_t capacity;  // rows of a group in a place of its own, else 0
  const Stream& on;

  std::int64_t count() const { return groups.count; }
  std::int64_t row_tiles(std::int64_t height) const {
    if (capacity > 0) return count() * grouped_parts(capacity, height);
    return layout.rows / height + std::min<std::int64_t>(count(), layout.rows);
  }
  GemmSize size(bool gated) const {
    return {.rows = layout.rows,
            .columns = layout.columns,
            .inner = layout.inner,
            .multiprocessors = multiprocessors_of(x.array),
            .b_turned = !weights.dense_rows,
            .gated = gated,
            .groups = count(),
            .a_pitch = layout.a_stride,
            .b_pitch = layout.b_stride};
  }

  /// Common to both kernels' problems.
  template <typename Problem>
  GroupedProblem<Problem> problem(std::int64_t height, std::int64_t columns, std::int64_t width,
                                  std::int64_t depth, int band) const {
    GroupedProblem<Problem> all{};
    Problem& sizes = all.of;
    sizes.rows = static_cast<std::int32_t>(layout.rows);
    sizes.columns = static_cast<std::int32_t>(columns);
    sizes.steps = sizes.steps_of_split =
        static_cast<std::int32_t>(grouped_parts(layout.inner, depth));
    sizes.row_tiles = static_cast<std::int32_t>(row_tiles(height));
    sizes.column_tiles = static_cast<std::int32_t>(grouped_parts(columns, width));
    sizes.group = band;
    sizes.batches = sizes.inner_batches = groups.count;
    sizes.splits = 1;
    all.groups = groups;
    return all;
  }

  GemmChoice choice(bool gated) const {
    GemmChoice chosen = of.tile ? choose_gemm(size(gated), *of.tile, 1) : choose_gemm(size(gated));
    leave_table(chosen.tile, count());
    return chosen;
  }

  /// By gemm.cu.
  void run_wgmma(const Array& result, const GemmEpilogue& ending) const {
    const bool gated = ending.gate.has_value();
    const GemmChoice made = choice(gated);
    const GemmTile& tile = made.tile;
    const std::int64_t columns = gated ? layout.columns / 2 : layout.columns;
    auto problem =
        this->problem<GemmProblem>(std::int64_t{tile.rows} * tile.cluster, columns,
                                   gated ? tile.columns / 2 : tile.columns, 64, made.group);
    problem.of.b_inner = layout.within.b != 0;
    const bool turn_b = weights.dense_rows;
    const GemmInstance instance{
        .a = x.array.type(),
        .b = x.array.type(),
        .out = result.type(),
        .tile = tile,
        .turn_a = false,
        .turn_b = turn_b,
        .store = columns % 8 == 0 ? GemmStore::by_copies : GemmStore::by_elements,
        .work = ProductWork::grouped};
    const CUtensorMap map_x =
        line_map(x.array, layout.rows, layout.inner, layout.a_stride, tile.box_lines_of_a(true));
    const auto [lines, dense] =
        turn_b ? std::pair(layout.inner, layout.columns) : std::pair(layout.columns, layout.inner);
    const CUtensorMap map_w =
        gemm_map(x.array.device(),
                 {.address = weights.array.address(),
                  .shape = {1, layout.within.b == 0 ? 1 : count(), lines, dense},
                  .strides = {0, layout.within.b, layout.b_stride, 2},
                  .type = weights.array.type(),
                  .box_rows = static_cast<std::uint32_t>(tile.box_lines_of_b(!turn_b, gated))});
    CUtensorMap map_out{};
    if (instance.store == GemmStore::by_copies) {
      map_out = line_map(result, layout.rows, columns, columns * 2, 16, 3);
    }
    const std::int64_t clusters = std::int64_t{problem.of.row_tiles} * problem.of.column_tiles;
    const std::int64_t at_once = std::max(1, multiprocessors_of(result) / tile.cluster);
    LaunchConfig config{
        .grid = {static_cast<std::uint32_t>(std::min(clusters, at_once) * tile.cluster)},
        .block = {static_cast<std::uint32_t>(tile.threads())},
        .shared_bytes = static_cast<std::uint32_t>(tile.shared_bytes(true) + table_bytes(count())),
        .stream = on};
    if (tile.cluster > 1) config.cluster = {static_cast<std::uint32_t>(tile.cluster), 1, 1};
    launch(gemm_kernel(instance, ending).on(result.device()), config, map_x, map_w, map_out,
           result.address(), gemm_epilogue_values(ending), problem);
  }

  MmaTile mma_tile() const {
    if (of.mma_tile) return *of.mma_tile;
    GemmSize mean = size(false);
    mean.batches = std::max<std::int64_t>(1, std::min(count(), layout.rows));
    mean.rows = grouped_parts(layout.rows, mean.batches);
    const auto shared = static_cast<std::size_t>(
        x.array.device().attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR));
    return choose_mma(mean, grouped_parts(layout.inner, 32), shared, false).tile;
  }

  /// By mma_gemm.cu. Nothing gated.
  void run_mma(const Array& result, const GemmEpilogue& ending) const {
    const MmaTile tile = mma_tile();
    const auto problem = this->problem<MmaProblem>(tile.rows, layout.columns, tile.columns, 32, 8);
    const bool turn_b = weights.dense_rows;
    const MmaInstance instance{.in = x.array.type(),
                               .out = result.type(),
                               .tile = tile,
                               .turn_a = false,
                               .turn_b = turn_b,
                               .work = ProductWork::grouped};
    const MmaSide left = mma_side(x, layout.a_stride, 0, layout.rows, layout.inner);
    const MmaSide right =
        turn_b ? mma_side(weights, layout.b_stride, layout.within.b, layout.inner, layout.columns)
               : mma_side(weights, layout.b_stride, layout.within.b, layout.columns, layout.inner);
    const LaunchConfig config{
        .grid = {static_cast<std::uint32_t>(std::int64_t{problem.of.row_tiles} *
                                            problem.of.column_tiles)},
        .block = {static_cast<std::uint32_t>(tile.threads())},
        .shared_bytes = static_cast<std::uint32_t>(tile.shared_bytes() + table_bytes(count())),
        .stream = on};
    launch(mma_kernel(instance, ending).on(result.device()), config, left, right, result.address(),
           gemm_epilogue_values(ending), problem);
  }

  bool takes_wgmma(bool gated) const {
    if (of.by_mma || of.mma_tile || layout.inner == 0) return false;
    if (!x.array.device().capabilities().wgmma) return false;
    // Copies begin on 16 bytes of a row, also in its second half.
    return !gated || !weights.dense_rows || layout.columns % 16 == 0;
  }

  /// The result's rows.
  Array run(const GemmEpilogue& ending) const {
    const bool gated = ending.gate.has_value(), fast = takes_wgmma(gated);
    const std::int64_t columns = gated && fast ? layout.columns / 2 : layout.columns;
    const ScalarType type = x.array.type();
    Array result = Array::empty(x.array.device(), {layout.rows, columns},
                                gated && !fast ? ScalarType::float32 : type, on);
    if (fast) {
      run_wgmma(result, ending);
    } else if (gated) {
      // Rows of no group are 0, as the gate reads them too.
      fill(result.device(), result.address(), 0, 4, static_cast<std::size_t>(result.size()), on);
      run_mma(result, {.bias = ending.bias});
      result = cast(kernels::gate(*ending.gate, result, std::nullopt, on), type, on);
    } else {
      run_mma(result, ending);
    }
    x.array.use_on(on);
    weights.array.use_on(on);
    result.use_on(on);
    return result;
  }
};

[[noreturn]] void refuse_grouped(const GroupedGemm& of, const char* what) {
  throw InvalidArgument(
      format("Incompatible dimensions or types of a product of groups: x is {}, "
             "weights are {}; {}",
             of.x.identify(), of.weights.identify(), what));
}

/// The shape of the result before its leading dimensions become one.
Shape check_grouped(const GroupedGemm& of) {
  require_one_device(of.x, "x", of.weights, "weights");
  require_grouped_type(of.x, "x");
  if (of.weights.ndim() != 3) refuse_grouped(of, "weights are (groups, n, k)");
  if (of.x.ndim() != 2 && of.x.ndim() != 3) refuse_grouped(of, "x has 2 dimensions or 3");
  const Shape& weights = of.weights.shape();
  if (of.weights.type() != of.x.type()) refuse_grouped(of, "both have one type");
  if (of.x.shape().back() != weights[2]) refuse_grouped(of, "their last extents must be equal");
  if (of.x.ndim() == 3 && of.x.shape()[0] != weights[0]) {
    refuse_grouped(of, "x has three dimensions, and the first is not that of the weights");
  }
  if (of.x.ndim() == 3 && of.groups.kind != RowGroups::Kind::counts) {
    refuse_grouped(of, "groups that lie apart are told by counts");
  }
  if (weights[0] == 0) refuse_grouped(of, "there is no group");
  require_groups(of.groups, weights[0], of.x);
  if (of.bias) {
    require_one_device(*of.bias, "bias", of.x, "x");
    if (of.bias->type() != of.x.type() || of.bias->shape() != Shape{weights[0], weights[1]}) {
      throw InvalidArgument(
          format("Incompatible dimensions or types: bias is {}, for weights that "
                 "are {}",
                 of.bias->identify(), of.weights.identify()));
    }
  }
  if (of.gate && (of.activation || weights[1] % 2 != 0)) {
    refuse_grouped(of, "a gate has an even n, and no activation beside it");
  }
  Shape shape = of.x.shape();
  shape.back() = of.gate ? weights[1] / 2 : weights[1];
  return shape;
}

}  // namespace

Array GroupedGemm::run(const Stream& stream) const {
  const Shape shape = check_grouped(*this);
  if (tile) require_gemm_tile(*tile);
  if (mma_tile) require_mma_tile(*mma_tile);
  GemmEpilogue ending{.bias = bias, .activation = activation, .gate = gate};
  if (!has_short_epilogue(ending)) {
    throw ArgumentError("this activation does not follow a product of groups: apply it after");
  }
  const Stream on = stream ? stream : Stream::legacy(x.device());
  std::int64_t size = 1;
  for (const std::int64_t extent : shape) size *= extent;
  if (size == 0) return Array::empty(x.device(), shape, x.type(), on);
  const std::int64_t rows = size / shape.back(), capacity = x.ndim() == 3 ? shape[1] : 0;
  if (bias) ending.bias = contiguous(*bias, on);
  const Array numbers = as_int32(groups.numbers, on);
  GemmOperand left = gemm_operand(as_rows(x, on), on, true);
  GemmOperand right = gemm_operand(turned_matrices(weights), on);
  const GemmLayout layout = grouped_layout(left, right);
  const GroupedLaunch work{*this,
                           std::move(left),
                           std::move(right),
                           layout,
                           product_groups(groups, numbers, rows, capacity),
                           capacity,
                           on};
  const Array result = work.run(ending);
  numbers.use_on(on);
  if (ending.bias) ending.bias->use_on(on);
  return result.reshape(shape);
}

}  // namespace kernwright::kernels
