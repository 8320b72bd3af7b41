// Launches of gemm.cu and promoted_gemm.cu.
#include "kernels_src/gemm/wgmma_gemm.h"

#include "base/math.h"
#include "core/device.h"
#include "kernels_src/epilogue/finish_product.h"
#include "kernels_src/family.h"
#include "kernels_src/gemm/gemm_kernels.h"
#include "kernels_src/gemm/gemm_layout.h"
#include "kernels_src/gemm/gemm_maps.h"
#include "kernels_src/matmul/matmul_batch.h"

#include <algorithm>
#include <utility>

namespace kernwright::kernels {
namespace {

constexpr std::int64_t kGemmStage = 128;  // bytes along the inner dimension

/// Elements of a stage along the inner dimension.
std::int64_t stage_elements(const Array& operand) {
  return kGemmStage / static_cast<std::int64_t>(scalar_size(operand.type()));
}

/// An operand's map, and the one whose TMA tiles have the lines left for a last one.
struct OperandTileMaps {
  CUtensorMap whole, edge;
};

/// Whether the product uses PDL. With PDL blocks get the multiprocessors in the order in which the
/// kernel in front leaves them. Where b comes from memory, and some multiprocessors stay idle or
/// several blocks read one part, that order costs 3 to 10 % of the time on an H200; PDL gains about
/// 1 us. Blocks of clusters are neighbours in any order.
bool gains_by_pdl(const GemmLayout& layout, const GemmTile& tile, std::int64_t element,
                  bool fills_device) {
  const std::int64_t lines = (layout.rows + layout.columns) * layout.batches();
  return tile.cluster > 1 || fills_device || layout.rows > kFewGemmRows ||
         lines * layout.inner * element <= kSmallOperands;
}

/// Takes as many blocks as have a part of `steps` each.
void leave_empty_parts(GemmTile& tile, std::int64_t steps) {
  if (!tile.split_k) return;
  const std::int64_t part_steps = ceil_div(steps, tile.cluster);
  tile.cluster = static_cast<int>(ceil_div(steps, part_steps));
  tile.split_k = tile.cluster > 1;
}

/// A product for gemm.cu or promoted_gemm.cu.
struct FastGemm {
  const Gemm& gemm;
  const WgmmaPlan& plan;
  const ProductEpilogue& epilogue;
  const GemmOperand &a, &b;
  const GemmOperand& scale_lines;  ///< those of `scales`
  const GemmLayout& layout;
  const Stream& on;
  bool promotes;
  std::optional<GemmBlockScales> scales;  ///< as the kernel wants them

  GemmSize size(const Array& result) const {
    return {.rows = layout.rows,
            .columns = layout.columns,
            .inner = layout.inner,
            .batches = layout.batches(),
            .multiprocessors = result.device().attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
            .bandwidth = memory_bandwidth(result.device()),
            .out_bytes = scalar_size(result.type()),
            .in_bytes = scalar_size(gemm.a.type()),
            .promotes = promotes,
            .block_scales = scales.has_value(),
            .whole = gemm.a.type() == ScalarType::int8,
            .b_turned = !b.dense_rows,
            .finishes =
                epilogue.bias || epilogue.c || epilogue.activation || !epilogue.expression.empty(),
            .gated = epilogue.gate.has_value(),
            .a_pitch = layout.a_stride,
            .b_pitch = layout.b_stride};
  }

  GemmChoice choice(const GemmSize& size) const {
    const bool one = size.gated || size.whole;
    if (plan.tile) return choose_gemm(size, *plan.tile, one ? 1 : plan.splits);
    GemmChoice chosen = choose_gemm(size);
    if (plan.splits > 0 && !one) chosen.splits = plan.splits;
    return chosen;
  }

  GemmAccumulation accumulation() const {
    if (scales) return GemmAccumulation::block_scaled;
    return promotes ? GemmAccumulation::promoted : GemmAccumulation::direct;
  }

  /// TMA tiles of lines that are whole units of 16 bytes; else lines of elements of 2 bytes go
  /// through shared memory.
  static GemmStore choose_store(ScalarType type, std::int64_t columns) {
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
                                      .tma_rows = 16,
                                      .tma_columns = static_cast<std::uint32_t>(128 / element),
                                      .rank = 3});
  }

  /// The maps of a's rows or b's columns. `along_inner`: their elements follow each other along the
  /// inner dimension; `stride`: the bytes between lines of the other one.
  OperandTileMaps operand_maps(const Array& operand, std::int64_t lines, bool along_inner,
                               std::int64_t stride, std::int64_t BatchDim::*step,
                               int tma_lines) const {
    const auto extent = [&](const BatchDim& dim) { return dim.*step == 0 ? 1 : dim.extent; };
    const auto element = static_cast<std::int64_t>(scalar_size(operand.type()));
    MapSubject subject{.address = operand.address(),
                       .shape = {extent(layout.outer), extent(layout.within), lines, layout.inner},
                       .strides = {layout.outer.*step, layout.within.*step, stride, element},
                       .type = operand.type(),
                       .tma_rows = static_cast<std::uint32_t>(tma_lines),
                       .tma_columns = static_cast<std::uint32_t>(stage_elements(operand))};
    if (!along_inner) std::swap(subject.shape[2], subject.shape[3]);
    const CUtensorMap whole = gemm_map(operand.device(), subject);
    const std::int64_t left = along_inner ? lines % tma_lines : 0;
    if (left == 0) return {whole, whole};
    subject.tma_rows = static_cast<std::uint32_t>(left);
    return {whole, gemm_map(operand.device(), subject)};
  }

  LaunchConfig launch_config(Device& device, const GemmTile& tile, const GemmProblem& problem,
                             bool stages_result) const {
    const std::int64_t clusters =
        std::int64_t{problem.row_tiles} * problem.column_tiles * problem.batches * problem.splits;
    const std::int64_t at_once = std::max(1, multiprocessors_of(on, device) / tile.cluster);
    const auto element = static_cast<std::int64_t>(scalar_size(gemm.a.type()));
    const std::int64_t grid = tile.split_k ? clusters : std::min(clusters, at_once);
    const auto cluster = static_cast<std::uint32_t>(tile.cluster);
    return {.grid = {static_cast<std::uint32_t>(grid * tile.cluster)},
            .block = {static_cast<std::uint32_t>(tile.threads())},
            .shared_bytes =
                static_cast<std::uint32_t>(tile.shared_bytes(stages_result, scales.has_value())),
            .stream = on,
            .cluster = tile.cluster > 1 ? Dim3{cluster, 1, 1} : Dim3{0, 0, 0},
            .programmatic_dependent = overlaps_launches(device) &&
                                      gains_by_pdl(layout, tile, element, clusters >= at_once),
            .most_blocks = static_cast<std::uint32_t>(clusters * tile.cluster)};
  }

  GemmProblem make_problem(const GemmChoice& choice, const GemmEdges& edges) const {
    const bool gated = epilogue.gate.has_value();
    GemmProblem problem{};
    problem.rows = static_cast<std::int32_t>(layout.rows);
    problem.columns = static_cast<std::int32_t>(gated ? layout.columns / 2 : layout.columns);
    problem.steps = part_count(layout.inner, stage_elements(a.array));
    problem.split_steps =
        part_count(problem.steps, choice.tile.split_k ? choice.tile.cluster : choice.splits);
    // None of them is empty.
    problem.splits = choice.tile.split_k ? 1 : part_count(problem.steps, problem.split_steps);
    problem.row_tiles = part_count(layout.rows, choice.tile.cluster_rows());
    const int columns = choice.tile.cluster_columns();
    problem.column_tiles = part_count(problem.columns, gated ? columns / 2 : columns);
    problem.group = choice.group;
    problem.batches = static_cast<std::int32_t>(layout.batches());
    problem.inner_batches = static_cast<std::int32_t>(layout.within.extent);
    problem.a_inner = layout.within.a != 0;
    problem.a_outer = layout.outer.a != 0;
    problem.b_inner = layout.within.b != 0;
    problem.b_outer = layout.outer.b != 0;
    problem.short_rows = edges.short_rows;
    problem.narrow_columns = edges.narrow_columns;
    return problem;
  }

  /// All of the result, or its partial results.
  void launch_on(const Array& result, const GemmChoice& choice, const GemmProblem& problem,
                 const ProductEpilogue& ending, KernelsAhead& kernels) const {
    const GemmTile& tile = choice.tile;
    const GemmInstance instance{gemm.a.type(),
                                gemm.b.type(),
                                result.type(),
                                tile,
                                !a.dense_rows,
                                b.dense_rows,
                                choose_store(result.type(), problem.columns),
                                accumulation()};
    const OperandTileMaps left =
        operand_maps(a.array, layout.rows, a.dense_rows, layout.a_stride, &BatchDim::a,
                     tile.a_tma_lines(a.dense_rows, promotes));
    const OperandTileMaps right =
        operand_maps(b.array, layout.columns, !b.dense_rows, layout.b_stride, &BatchDim::b,
                     tile.b_tma_lines(!b.dense_rows, ending.gate.has_value(), promotes));
    const GemmEdgeMaps edges{left.edge, right.edge};
    CUtensorMap map_out{};
    if (instance.store == GemmStore::by_copies) map_out = result_map(result, problem);
    const LaunchConfig config =
        launch_config(result.device(), tile, problem, instance.store != GemmStore::direct);
    const Kernel& kernel = kernel_for({&a, &b, &scale_lines}, gemm_kernel(instance, ending),
                                      result.device(), kernels, on);
    const TileEpilogueValues then = tile_epilogue_values(ending);
    if (!promotes) {
      launch(kernel, config, left.whole, right.whole, edges, map_out, result.address(), then,
             problem);
      return;
    }
    CUtensorMap map_scales{};
    GemmBlockValues blocks{};
    if (scales) {
      map_scales = scales_map(scales->a, tile.rows);
      const Shape &shape = scales->b.shape(), &strides = scales->b.strides();
      blocks = {.b = scales->b.address(),
                .column_step = strides[1] / 4,
                .inner_step = strides[0] / 4,
                .last_column = static_cast<std::int32_t>(shape[1] - 1)};
    }
    launch(kernel, config, left.whole, right.whole, edges, map_out, map_scales, blocks,
           result.address(), then, problem);
  }

  void run(const Array& result) const {
    const GemmSize all = size(result);
    GemmChoice made = choice(all);
    leave_empty_parts(made.tile, ceil_div(layout.inner, stage_elements(a.array)));
    const GemmProblem problem = make_problem(made, gemm_edges(all, made));
    run_product(result, epilogue, has_short_epilogue(epilogue),
                {problem.splits, problem.batches, layout.rows, layout.columns}, on,
                [&](const Array& target, const ProductEpilogue& ending, KernelsAhead& kernels) {
                  launch_on(target, made, problem, ending, kernels);
                });
    a.array.use_on(on);
    b.array.use_on(on);
    if (scales) {
      scales->a.use_on(on);
      scales->b.use_on(on);
    }
  }
};

}  // namespace

bool run_wgmma(const Gemm& gemm, const WgmmaPlan& plan, const ProductEpilogue& ready,
               const Array& result, const Stream& on) {
  if (!gemm.a.device().capabilities().wgmma) return false;
  const auto [left, right] = plan_operands(gemm.a, gemm.b, on);
  const std::optional<GemmLayout> layout = gemm_layout(left, right, product_shape(gemm.a, gemm.b));
  if (!layout) return false;
  GemmOperand scale_lines;
  std::optional<GemmBlockScales> scales;
  if (gemm.block_scales) {
    scale_lines = plan_operand(gemm.block_scales->a, on, false);
    scales = {scale_lines.array, gemm.block_scales->b};
  }
  FastGemm{gemm, plan, ready, left, right, scale_lines, *layout, on, is_promoted(gemm), scales}.run(
      result);
  return true;
}

}  // namespace kernwright::kernels
