// The gradient of weights of groups: each has an inner dimension of its own.
#include "base/errors.h"
#include "base/format.h"
#include "base/math.h"
#include "core/device.h"
#include "kernels_src/elementwise/elementwise.h"
#include "kernels_src/family.h"
#include "kernels_src/gemm/grouped/grouped_fma.h"
#include "kernels_src/gemm/grouped/grouped_rows.h"
#include "kernels_src/gemm/mma/mma_gemm.h"
#include "kernels_src/operands.h"
#include "memory/transfer.h"

#include <algorithm>
#include <utility>

namespace kernwright::kernels {
namespace {

constexpr std::int64_t kMostGradientTiles = 100'000'000;

/// Ready operands, and the launches. `grad` is (n, rows), its columns dense.
struct GradientLaunch {
  const GemmOperand &grad, &x;
  const GemmLayout& layout;
  const ProductGroups& groups;
  const Array& result;
  const Stream& on;

  /// As of a batch of groups with the mean of rows.
  GemmSize mean() const {
    return {.rows = layout.rows,
            .columns = layout.columns,
            .inner = ceil_div(layout.inner, groups.count),
            .batches = groups.count,
            .multiprocessors = multiprocessor_count(result),
            .bandwidth = memory_bandwidth(result.device()),
            .out_bytes = scalar_size(result.type()),
            .whole = true};
  }
  template <typename Problem>
  GroupedProblem<Problem> problem(std::int64_t height, std::int64_t width, int band) const {
    GroupedProblem<Problem> all{};
    Problem& sizes = all.sizes;
    sizes.rows = static_cast<std::int32_t>(layout.rows);
    sizes.columns = static_cast<std::int32_t>(layout.columns);
    sizes.row_tiles = part_count(layout.rows, height);
    sizes.column_tiles = part_count(layout.columns, width);
    sizes.group = band;
    sizes.batches = sizes.inner_batches = groups.count;
    sizes.splits = 1;
    all.groups = groups;
    if (tiles(sizes) > kMostGradientTiles) {
      throw InvalidArgument(format("a gradient of groups is too large: {}", result.identify()));
    }
    return all;
  }
  template <typename Problem>
  std::int64_t tiles(const Problem& sizes) const {
    return std::int64_t{sizes.row_tiles} * sizes.column_tiles * groups.count;
  }

  /// By gemm.cu.
  void run_wgmma(const std::optional<GemmTile>& wanted) const {
    GemmChoice made = wanted ? choose_gemm(mean(), *wanted, 1) : choose_gemm(mean());
    leave_table(made.tile, groups.count);
    const GemmTile& tile = made.tile;
    const auto problem =
        this->problem<GemmProblem>(tile.cluster_rows(), tile.cluster_columns(), made.group);
    const GemmStore halves =
        layout.columns % 8 == 0 ? GemmStore::by_copies : GemmStore::by_elements;
    const GemmInstance instance{.a = x.array.type(),
                                .b = x.array.type(),
                                .out = result.type(),
                                .tile = tile,
                                .turn_a = true,
                                .turn_b = true,
                                .store = is_half(result.type()) ? halves : GemmStore::direct,
                                .work = ProductWork::grouped_inside};
    const CUtensorMap map_grad =
        line_map(grad.array, layout.inner, layout.rows, layout.a_stride, tile.a_tma_lines(false));
    const CUtensorMap map_x = line_map(x.array, layout.inner, layout.columns, layout.b_stride,
                                       tile.b_tma_lines(false, false));
    CUtensorMap map_out{};
    if (instance.store == GemmStore::by_copies) {
      const std::int64_t line = layout.columns * 2;
      map_out = gemm_map(result.device(), {.address = result.address(),
                                           .shape = {1, groups.count, layout.rows, layout.columns},
                                           .strides = {0, layout.rows * line, line, 2},
                                           .type = result.type(),
                                           .tma_rows = 16,
                                           .rank = 3});
    }
    const std::int64_t at_once = std::max(1, multiprocessor_count(result) / tile.cluster);
    const std::int64_t clusters = std::min(tiles(problem.sizes), at_once);
    LaunchConfig config{
        .grid = {static_cast<std::uint32_t>(clusters * tile.cluster)},
        .block = {static_cast<std::uint32_t>(tile.threads())},
        .shared_bytes = static_cast<std::uint32_t>(
            tile.shared_bytes(instance.store != GemmStore::direct) + table_bytes(groups.count)),
        .stream = on,
        .most_blocks = static_cast<std::uint32_t>(tiles(problem.sizes) * tile.cluster)};
    if (tile.cluster > 1) config.cluster = {static_cast<std::uint32_t>(tile.cluster), 1, 1};
    launch(gemm_kernel(instance, {}).on(result.device()), config, map_grad, map_x, GemmEdgeMaps{},
           map_out, result.address(), tile_epilogue_values({}), problem);
  }

  /// By mma_gemm.cu.
  void run_mma() const {
    const auto shared = static_cast<std::size_t>(
        result.device().attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR));
    const GemmSize size = mean();
    const MmaTile tile = choose_mma(size, ceil_div(size.inner, 32), shared, false).tile;
    const auto problem = this->problem<MmaProblem>(tile.rows, tile.columns, 8);
    const MmaInstance instance{.in = x.array.type(),
                               .out = result.type(),
                               .tile = tile,
                               .turn_a = true,
                               .turn_b = true,
                               .work = ProductWork::grouped_inside};
    const LaunchConfig config{
        .grid = {static_cast<std::uint32_t>(tiles(problem.sizes))},
        .block = {static_cast<std::uint32_t>(tile.threads())},
        .shared_bytes = static_cast<std::uint32_t>(tile.shared_bytes() + table_bytes(groups.count)),
        .stream = on};
    launch(mma_kernel(instance, {}).on(result.device()), config,
           mma_side(grad, layout.a_stride, 0, layout.inner, layout.rows),
           mma_side(x, layout.b_stride, 0, layout.inner, layout.columns), result.address(),
           tile_epilogue_values({}), problem);
  }
};

std::int64_t group_count(const RowGroups& groups) {
  if (groups.numbers.ndim() != 1) {
    throw InvalidArgument(format("Incompatible dimensions: the numbers of groups have one, not {}",
                                 groups.numbers.identify()));
  }
  return groups.numbers.shape()[0] - (groups.kind == RowGroups::Kind::offsets ? 1 : 0);
}

void check_gradient(const Array& grad, const Array& x, ScalarType type) {
  require_one_device(grad, "grad", x, "x");
  require_grouped_type(grad, "grad");
  if (grad.ndim() != 2 || x.ndim() != 2 || grad.shape()[0] != x.shape()[0] ||
      grad.type() != x.type()) {
    throw InvalidArgument(
        format("Incompatible dimensions or types: grad is {}, x is {}; both are "
               "rows in the same groups",
               grad.identify(), x.identify()));
  }
  if (grad.type() == ScalarType::float32 && type != ScalarType::float32) {
    throw ArgumentError(
        format("a gradient of float32 weights is float32, not {}", scalar_name(type)));
  }
  if (!is_half(type) && type != ScalarType::float32) {
    throw ArgumentError(
        format("a gradient of weights is float16, bfloat16 or float32, not {}", scalar_name(type)));
  }
}

}  // namespace

Array GroupedGradient::run(const Stream& stream) const {
  const ScalarType out = type.value_or(grad.type());
  check_gradient(grad, x, out);
  if (tile) require_gemm_tile(*tile);
  const std::int64_t count = group_count(groups), rows = x.shape()[0];
  require_groups(groups, count, x);
  const Stream on = stream ? stream : Stream::legacy(x.device());
  const Array result = Array::empty(x.device(), {count, grad.shape()[1], x.shape()[1]}, out, on);
  if (result.size() == 0) return result;
  if (rows == 0) {
    fill(x.device(), result.address(), 0, scalar_size(out), static_cast<std::size_t>(result.size()),
         on);
    return result;
  }
  const Array numbers = as_int32(groups.numbers, on);
  const ProductGroups listed = product_groups(groups, numbers, rows, 0);
  if (grad.type() == ScalarType::float32) {
    if (tile || by_mma) {
      throw ArgumentError(format("this tile is none of a gradient of {}", grad.identify()));
    }
    run_gradient_fma(grad, x, listed, result, on);
    numbers.use_on(on);
    return result;
  }
  const GemmOperand left = gemm_operand(grad.transpose(), on, false);
  const GemmOperand right = gemm_operand(x, on, true);
  const GemmLayout layout = grouped_layout(left, right);
  const GradientLaunch work{left, right, layout, listed, result, on};
  if (x.device().capabilities().wgmma && !by_mma) {
    work.run_wgmma(tile);
  } else {
    work.run_mma();
  }
  for (const Array* each : {&left.array, &right.array, &numbers, &result}) each->use_on(on);
  return result;
}

}  // namespace kernwright::kernels
