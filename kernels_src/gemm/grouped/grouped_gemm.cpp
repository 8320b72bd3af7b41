// Operands and launches of products of groups.
#include "kernels_src/gemm/grouped/grouped_gemm.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/math.h"
#include "core/device.h"
#include "kernels_src/elementwise/elementwise.h"
#include "kernels_src/family.h"
#include "kernels_src/gemm/grouped/grouped_checks.h"
#include "kernels_src/gemm/grouped/grouped_fma.h"
#include "kernels_src/gemm/grouped/grouped_rows.h"
#include "kernels_src/gemm/grouped/grouped_scales.h"
#include "kernels_src/gemm/mma/mma_gemm.h"
#include "kernels_src/operands.h"
#include "kernels_src/result_target.h"
#include "kernels_src/zeroed_words.h"
#include "memory/transfer.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace kernwright::kernels {
namespace {

Array turned_matrices(const Array& array) {
  constexpr std::array<int, 3> kAxes = {0, 2, 1};
  return array.transpose(kAxes);
}

/// Whether gemm.cu or promoted_gemm.cu may do it.
bool may_be_wgmma(const GroupedGemm& gemm) {
  if (gemm.by_mma || gemm.mma_tile || gemm.x.shape().back() == 0) return false;
  return gemm.x.device().capabilities().wgmma;
}

/// Ready operands, and the launches.
struct GroupedLaunch {
  const GroupedGemm& gemm;
  GemmOperand x, weights;  // (rows, k), (groups, k, n)
  GemmLayout layout;
  ProductGroups groups;
  std::int64_t capacity;  // rows of a group in a place of its own, else 0
  ScalarType out;
  std::optional<GemmBlockScales> blocks;  // as promoted_gemm.cu wants them
  const Stream& on;

  bool narrow() const { return is_float8(x.array.type()); }
  bool promotes() const { return promotes_grouped(gemm); }
  std::int64_t in_bytes() const { return static_cast<std::int64_t>(scalar_size(x.array.type())); }

  std::int64_t count() const { return groups.count; }
  std::int64_t row_tiles(std::int64_t height) const {
    if (capacity > 0) return count() * ceil_div(capacity, height);
    return layout.rows / height + std::min<std::int64_t>(count(), layout.rows);
  }
  GemmSize size(bool gated) const {
    return {.rows = layout.rows,
            .columns = layout.columns,
            .inner = layout.inner,
            .multiprocessors = multiprocessor_count(x.array),
            .bandwidth = memory_bandwidth(x.array.device()),
            .out_bytes = scalar_size(out),
            .in_bytes = scalar_size(x.array.type()),
            .promotes = promotes(),
            .block_scales = blocks.has_value(),
            .b_turned = !weights.dense_rows,
            .gated = gated,
            .groups = count(),
            .capacity = narrow() ? capacity : 0,
            .a_pitch = layout.a_stride,
            .b_pitch = layout.b_stride};
  }

  /// Common to both kernels' problems.
  template <typename Problem>
  GroupedProblem<Problem> problem(std::int64_t height, std::int64_t columns, std::int64_t width,
                                  std::int64_t depth, int band) const {
    GroupedProblem<Problem> all{};
    Problem& sizes = all.sizes;
    sizes.rows = static_cast<std::int32_t>(layout.rows);
    sizes.columns = static_cast<std::int32_t>(columns);
    sizes.steps = sizes.split_steps = part_count(layout.inner, depth);
    sizes.row_tiles = static_cast<std::int32_t>(row_tiles(height));
    sizes.column_tiles = part_count(columns, width);
    sizes.group = band;
    sizes.batches = sizes.inner_batches = groups.count;
    sizes.splits = 1;
    all.groups = groups;
    return all;
  }

  GemmChoice choice(bool gated) const {
    GemmChoice chosen =
        gemm.tile ? choose_gemm(size(gated), *gemm.tile, 1) : choose_gemm(size(gated));
    leave_table(chosen.tile, count(), blocks.has_value());
    return chosen;
  }

  GemmAccumulation accumulation() const {
    if (blocks) return GemmAccumulation::block_scaled;
    return promotes() ? GemmAccumulation::promoted : GemmAccumulation::direct;
  }
  /// TMA tiles of 4-byte results would reach the rows of the next group.
  static GemmStore choose_store(const Array& result, std::int64_t columns) {
    if (!is_half(result.type())) return GemmStore::direct;
    return columns % 8 == 0 ? GemmStore::by_copies : GemmStore::by_elements;
  }
  CUtensorMap weights_map(const GemmTile& tile, bool gated) const {
    const bool turned = weights.dense_rows;
    const auto [lines, dense] =
        turned ? std::pair(layout.inner, layout.columns) : std::pair(layout.columns, layout.inner);
    return gemm_map(
        x.array.device(),
        {.address = weights.array.address(),
         .shape = {1, layout.within.b == 0 ? 1 : count(), lines, dense},
         .strides = {0, layout.within.b, layout.b_stride, in_bytes()},
         .type = weights.array.type(),
         .tma_rows = static_cast<std::uint32_t>(tile.b_tma_lines(!turned, gated, promotes())),
         .tma_columns = static_cast<std::uint32_t>(128 / in_bytes())});
  }
  GemmBlockValues block_values() const {
    const Array& scales_b = blocks->b;
    const std::int64_t column_step = scales_b.strides()[1] / 4;
    return {.b = scales_b.address(),
            .column_step = column_step,
            .inner_step = scales_b.strides()[2] / 4,
            .matrix_step = scales_b.strides()[0] / 4,
            .half = layout.columns / 2 / kGemmBlock * column_step,
            .last_column = static_cast<std::int32_t>(scales_b.shape()[1] - 1)};
  }

  /// By gemm.cu, or promoted_gemm.cu.
  void run_wgmma(const Array& result, const ProductEpilogue& ending) const {
    const bool gated = ending.gate.has_value();
    const GemmChoice made = choice(gated);
    const GemmTile& tile = made.tile;
    const std::int64_t columns = gated ? layout.columns / 2 : layout.columns;
    const int across = tile.cluster_columns();
    auto problem = this->problem<GemmProblem>(
        tile.cluster_rows(), columns, gated ? across / 2 : across, 128 / in_bytes(), made.group);
    problem.sizes.b_inner = layout.within.b != 0;
    const GemmInstance instance{.a = x.array.type(),
                                .b = weights.array.type(),
                                .out = result.type(),
                                .tile = tile,
                                .turn_a = false,
                                .turn_b = weights.dense_rows,
                                .store = choose_store(result, columns),
                                .accumulation = accumulation(),
                                .work = ProductWork::grouped};
    std::optional<Array> next;
    if (tile.cluster == 1 && !tile.ping_pong) {  // `kDeals` of product_roles.cuh
      next = zeroed_words(1, on);
      problem.groups.next = next->address();
    }
    const CUtensorMap map_x = line_map(x.array, layout.rows, layout.inner, layout.a_stride,
                                       tile.a_tma_lines(true, promotes()));
    const CUtensorMap map_w = weights_map(tile, gated);
    CUtensorMap map_out{};
    if (instance.store == GemmStore::by_copies) {
      map_out = ragged_map(result, layout.rows, columns);
    }
    const std::int64_t clusters =
        std::int64_t{problem.sizes.row_tiles} * problem.sizes.column_tiles;
    const std::int64_t at_once = std::max(1, multiprocessor_count(result) / tile.cluster);
    LaunchConfig config{
        .grid = {static_cast<std::uint32_t>(std::min(clusters, at_once) * tile.cluster)},
        .block = {static_cast<std::uint32_t>(tile.threads())},
        .shared_bytes = static_cast<std::uint32_t>(
            tile.shared_bytes(instance.store != GemmStore::direct, blocks.has_value()) +
            table_bytes(count()) + (blocks ? skew_bytes(tile) : 0)),
        .stream = on,
        .most_blocks = static_cast<std::uint32_t>(clusters * tile.cluster)};
    if (tile.cluster > 1) config.cluster = {static_cast<std::uint32_t>(tile.cluster), 1, 1};
    const Kernel& kernel = gemm_kernel(instance, ending).on(result.device());
    const TileEpilogueValues then = tile_epilogue_values(ending);
    if (!promotes()) {
      launch(kernel, config, map_x, map_w, GemmEdgeMaps{}, map_out, result.address(), then,
             problem);
    } else {
      CUtensorMap map_scales{};
      GemmBlockValues values{};
      if (blocks) {
        map_scales = scales_map(blocks->a, tile.rows + kGroupedSkews);
        values = block_values();
      }
      launch(kernel, config, map_x, map_w, GemmEdgeMaps{}, map_out, map_scales, values,
             result.address(), then, problem);
    }
    if (next) next->use_on(on);
  }

  MmaTile mma_tile() const {
    if (gemm.mma_tile) return *gemm.mma_tile;
    GemmSize mean = size(false);
    mean.batches = std::max<std::int64_t>(1, std::min(count(), layout.rows));
    mean.rows = ceil_div(layout.rows, mean.batches);
    const auto shared = static_cast<std::size_t>(
        x.array.device().attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR));
    return choose_mma(mean, ceil_div(layout.inner, 32), shared, false).tile;
  }

  /// By mma_gemm.cu. Nothing gated.
  void run_mma(const Array& result, const ProductEpilogue& ending) const {
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
        .grid = {static_cast<std::uint32_t>(std::int64_t{problem.sizes.row_tiles} *
                                            problem.sizes.column_tiles)},
        .block = {static_cast<std::uint32_t>(tile.threads())},
        .shared_bytes = static_cast<std::uint32_t>(tile.shared_bytes() + table_bytes(count())),
        .stream = on};
    launch(mma_kernel(instance, ending).on(result.device()), config, left, right, result.address(),
           tile_epilogue_values(ending), problem);
  }

  /// Whether the kernel has the gate: both halves of float8 have whole blocks of scales.
  bool takes_gate(bool fast) const {
    if (narrow()) return fast && blocks && layout.columns % (2 * kGemmBlock) == 0;
    // Copies begin on 16 bytes of a row, also in its second half.
    return fast && (!weights.dense_rows || layout.columns % 16 == 0);
  }
  void run_on(const Array& result, const ProductEpilogue& ending, bool fast) const {
    if (fast) {
      run_wgmma(result, ending);
    } else {
      run_mma(result, ending);
    }
  }
  /// The result's rows, in `target` unless a gate follows by itself.
  Array run(const ProductEpilogue& ending, const std::optional<Array>& target) const {
    const bool fast = may_be_wgmma(gemm), gated = ending.gate.has_value();
    Array result;
    if (gated && !takes_gate(fast)) {
      result = gate_product(x.array.device(), {layout.rows, layout.columns}, ending, out, on,
                            [&](const Array& product, const ProductEpilogue& plain) {
                              run_on(product, plain, fast);
                            });
    } else {
      const std::int64_t columns = gated ? layout.columns / 2 : layout.columns;
      result = target ? *target : Array::empty(x.array.device(), {layout.rows, columns}, out, on);
      run_on(result, ending, fast);
    }
    x.array.use_on(on);
    weights.array.use_on(on);
    if (blocks) {
      blocks->a.use_on(on);
      blocks->b.use_on(on);
    }
    result.use_on(on);
    return result;
  }
};

/// The result's `out` where kernels can write there. Throws InvalidArgument for one that does not
/// fit.
std::optional<Array> grouped_target(const GroupedGemm& gemm, const Shape& shape, ScalarType type,
                                    const Stream& stream) {
  const ResultForm form{"grouped_linear", gemm.x.device(), shape, type};
  std::optional<Array> target = direct_target(gemm.out, form, stream);
  require_apart(gemm.out, form,
                {{"x", &gemm.x},
                 {"weights", &gemm.weights},
                 {"the numbers of groups", &gemm.groups.numbers},
                 {"bias", pointer_or_null(gemm.bias)},
                 {"scale_a", gemm.scales ? &gemm.scales->x : nullptr},
                 {"scale_b", gemm.scales ? &gemm.scales->weights : nullptr}});
  return target;
}

}  // namespace

Array GroupedGemm::run(const Stream& stream) const {
  const Shape shape = check_grouped(*this);
  require_grouped_tiles(*this);
  ProductEpilogue ending{.bias = bias, .activation = activation, .gate = gate};
  if (!has_short_epilogue(ending)) {
    throw ArgumentError("this activation does not follow a product of groups: apply it after");
  }
  const Stream on = stream ? stream : Stream::legacy(x.device());
  std::int64_t size = 1;
  for (const std::int64_t extent : shape) size *= extent;
  const ScalarType result_type = grouped_result_type(*this);
  std::optional<Array> target = grouped_target(*this, shape, result_type, on);
  if (size == 0) return out ? *out : Array::empty(x.device(), shape, result_type, on);
  const std::int64_t rows = size / shape.back(), capacity = x.ndim() == 3 ? shape[1] : 0;
  if (target) target = target->reshape({rows, shape.back()});
  ending = ready_epilogue(ending, {}, on);
  const Array numbers = as_int32(groups.numbers, on);
  GroupedOperands operands = grouped_operands(*this, may_be_wgmma(*this), on);
  ending.row_scales = operands.rows;
  ending.column_scales = operands.columns;
  const ProductGroups listed = product_groups(groups, numbers, rows, capacity);
  if (operands.x.type() == ScalarType::float32) {
    const Array result = GroupedFma{operands.x, operands.weights, listed, capacity, fma_tile}.run(
        ending, target, on);
    numbers.use_on(on);
    use_epilogue(ending, on);
    return deliver(out, result.reshape(shape), on);
  }
  const bool narrow = is_float8(operands.x.type());
  GemmOperand left = gemm_operand(operands.x, on, true);
  GemmOperand right = gemm_operand(turned_matrices(operands.weights), on,
                                   narrow ? std::optional(false) : std::nullopt);
  const GemmLayout layout = grouped_layout(left, right);
  const GroupedLaunch work{*this,    std::move(left), std::move(right),           layout, listed,
                           capacity, result_type,     std::move(operands.blocks), on};
  const Array result = work.run(ending, target);
  numbers.use_on(on);
  use_epilogue(ending, on);
  return deliver(out, result.reshape(shape), on);
}

}  // namespace kernwright::kernels
