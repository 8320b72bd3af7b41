// Operands and launches of fma_gemm.cu with groups.
#include "kernels_src/gemm/grouped/grouped_fma.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/math.h"
#include "core/device.h"
#include "kernels_src/family.h"
#include "kernels_src/gemm/fma/fma_choice.h"
#include "kernels_src/gemm/fma/fma_gemm.h"
#include "kernels_src/matmul/matmul_batch.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <utility>

namespace kernwright::kernels {
namespace {

constexpr std::int64_t kSize = sizeof(float);

std::int64_t stride_at(const Array& array, int axis) {
  return array.strides()[static_cast<std::size_t>(axis)];
}

/// Matrices as the kernel reads them; the groups are the dimension in front.
struct FmaOperands {
  FmaSide a, b;
  ProductBatch batch{};
  FmaWay way_a{}, way_b{};
};

FmaTile choose_tile(const Array& result, std::int64_t rows, std::int64_t columns,
                    std::int64_t inner, std::int64_t groups, bool b_turned) {
  const Device& device = result.device();
  const GemmSize size{.rows = std::max<std::int64_t>(1, rows),
                      .columns = columns,
                      .inner = inner,
                      .batches = groups,
                      .multiprocessors = multiprocessor_count(result),
                      .out_bytes = kSize,
                      .b_turned = b_turned};
  const auto shared = static_cast<std::size_t>(
      device.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR));
  return choose_fma(size, shared, 1).tile;
}

/// Launches a block for each of `blocks` tiles.
void launch_fma(const Array& result, const FmaTile& tile, ProductWork work,
                const FmaOperands& operands, const GroupedProblem<FmaProblem>& problem,
                std::int64_t blocks, const ProductEpilogue& ending, const Stream& on) {
  if (blocks > std::numeric_limits<std::int32_t>::max()) {
    throw InvalidArgument(
        format("a product of groups is too large: {} tiles for {}", blocks, result.identify()));
  }
  const FmaInstance instance{.in = ScalarType::float32,
                             .out = ScalarType::float32,
                             .tile = tile,
                             .way_a = operands.way_a,
                             .way_b = operands.way_b,
                             .whole = false,
                             .work = work};
  const LaunchConfig config{.grid = {static_cast<std::uint32_t>(blocks)},
                            .block = {static_cast<std::uint32_t>(tile.threads())},
                            .shared_bytes = static_cast<std::uint32_t>(
                                tile.shared_bytes(kSize) + table_bytes(problem.groups.count)),
                            .stream = on};
  launch(fma_kernel(instance, ending).on(result.device()), config, operands.a, operands.b,
         operands.batch, result.address(), tile_epilogue_values(ending), problem);
}

GroupedProblem<FmaProblem> make_problem(const ProductGroups& groups, const FmaTile& tile,
                                        std::int64_t rows, std::int64_t columns, std::int64_t inner,
                                        std::int64_t row_tiles) {
  GroupedProblem<FmaProblem> all{};
  FmaProblem& sizes = all.sizes;
  sizes.rows = static_cast<std::int32_t>(rows);
  sizes.columns = static_cast<std::int32_t>(columns);
  sizes.steps = sizes.split_steps = static_cast<std::int32_t>(inner);
  sizes.row_tiles = static_cast<std::int32_t>(row_tiles);
  sizes.column_tiles = part_count(columns, tile.columns);
  sizes.group = 8;
  sizes.batches = groups.count;
  sizes.splits = 1;
  sizes.packs = columns % (16 / kSize) == 0;
  all.groups = groups;
  return all;
}

void require_countable(const Array& x, const Array& y) {
  constexpr std::int64_t kMost = 1'000'000'000;
  for (const Array* each : {&x, &y}) {
    for (const std::int64_t extent : each->shape()) {
      if (extent <= kMost) continue;
      throw InvalidArgument(
          format("a product of groups is too large: {} and {}", x.identify(), y.identify()));
    }
  }
}

}  // namespace

void GroupedFma::run_on(const Array& result, const ProductEpilogue& ending,
                        const Stream& on) const {
  const std::int64_t rows = x.shape()[0], inner = x.shape()[1], columns = weights.shape()[1];
  const std::int64_t count = groups.count, used = std::max<std::int64_t>(1, std::min(count, rows));
  FmaOperands operands{.a = {x.address(), stride_at(x, 0), stride_at(x, 1)},
                       .b = {weights.address(), stride_at(weights, 1), stride_at(weights, 2)}};
  operands.batch.ndim = 1;
  operands.batch.extent[0] = count;
  operands.batch.b[0] = stride_at(weights, 0);
  operands.way_a = fma_way(operands.a, rows, kSize, operands.batch.a, 1);
  // A group begins at any row: packs of a group's rows are not aligned.
  if (operands.way_a == FmaWay::packs) operands.way_a = FmaWay::across;
  operands.way_b = fma_way(operands.b, columns, kSize, operands.batch.b, 1);
  const bool turned = columns > 1 && std::abs(operands.b.line) > std::abs(operands.b.step);
  const FmaTile chosen =
      tile ? *tile : choose_tile(result, ceil_div(rows, used), columns, inner, used, turned);
  const std::int64_t row_tiles = capacity > 0 ? count * ceil_div(capacity, chosen.rows)
                                              : rows / chosen.rows + std::min(count, rows);
  const auto problem = make_problem(groups, chosen, rows, columns, inner, row_tiles);
  launch_fma(result, chosen, ProductWork::grouped, operands, problem,
             row_tiles * problem.sizes.column_tiles, ending, on);
}

Array GroupedFma::run(const ProductEpilogue& ending, const std::optional<Array>& target,
                      const Stream& on) const {
  require_countable(x, weights);
  const auto run_it = [&](const Array& result, const ProductEpilogue& plain) {
    run_on(result, plain, on);
  };
  const std::int64_t rows = x.shape()[0], columns = weights.shape()[1];
  Array result;
  if (ending.gate) {
    result = gate_product(x.device(), {rows, columns}, ending, ScalarType::float32, on, run_it);
  } else {
    result = target ? *target : Array::empty(x.device(), {rows, columns}, ScalarType::float32, on);
    run_it(result, ending);
  }
  for (const Array* each : {&x, &weights, &std::as_const(result)}) each->use_on(on);
  return result;
}

void run_gradient_fma(const Array& grad, const Array& x, const ProductGroups& groups,
                      const Array& result, const Stream& on) {
  require_countable(grad, x);
  const std::int64_t rows = grad.shape()[1], columns = x.shape()[1], inner = x.shape()[0];
  FmaOperands operands{.a = {grad.address(), stride_at(grad, 1), stride_at(grad, 0)},
                       .b = {x.address(), stride_at(x, 1), stride_at(x, 0)}};
  operands.way_a = fma_way(operands.a, rows, kSize, operands.batch.a, 0);
  operands.way_b = fma_way(operands.b, columns, kSize, operands.batch.b, 0);
  const FmaTile tile =
      choose_tile(result, rows, columns, ceil_div(inner, groups.count), groups.count, false);
  const std::int64_t row_tiles = ceil_div(rows, tile.rows);
  const auto problem = make_problem(groups, tile, rows, columns, inner, row_tiles);
  launch_fma(result, tile, ProductWork::grouped_inside, operands, problem,
             row_tiles * problem.sizes.column_tiles * groups.count, {}, on);
  for (const Array* each : {&grad, &x, &result}) each->use_on(on);
}

}  // namespace kernwright::kernels
