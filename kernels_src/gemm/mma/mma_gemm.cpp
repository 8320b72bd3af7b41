// Operands, problem and launch of mma_gemm.cu.
#include "kernels_src/gemm/mma/mma_gemm.h"

#include "base/math.h"
#include "core/device.h"
#include "kernels_src/epilogue/finish_product.h"
#include "kernels_src/family.h"
#include "kernels_src/gemm/gemm_kernels.h"
#include "kernels_src/gemm/gemm_layout.h"
#include "kernels_src/matmul/matmul_batch.h"

#include <algorithm>

namespace kernwright::kernels {
namespace {

// As in mma_gemm.cu.
struct MmaBlockScales {
  CUdeviceptr a, b;
  std::int64_t a_line_step, a_inner_step, b_line_step, b_inner_step;
};
constexpr std::int32_t kMmaBlockSteps = 2;  // of float8
constexpr std::int64_t kMmaDepth = 64;      // bytes of a stage along the inner dimension

/// A product that mma_gemm.cu takes.
struct MmaGemm {
  const Gemm& gemm;
  const MmaPlan& plan;
  const ProductEpilogue& epilogue;
  const GemmOperand &a, &b;
  const GemmLayout& layout;
  const Stream& on;

  std::int64_t element() const { return static_cast<std::int64_t>(scalar_size(a.array.type())); }
  std::int64_t steps() const { return ceil_div(layout.inner * element(), kMmaDepth); }

  MmaChoice choice(const Array& result) const {
    const Device& device = result.device();
    const GemmSize size{
        .rows = layout.rows,
        .columns = layout.columns,
        .inner = layout.inner,
        .batches = layout.batches(),
        .multiprocessors = device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
        .out_bytes = scalar_size(result.type())};
    const bool may_split = a.array.type() != ScalarType::int8 && plan.splits == 0;
    const auto shared = static_cast<std::size_t>(
        device.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR));
    // Blocks with scales have separate accumulators, which takes as many registers again.
    const MmaTile narrow{layout.rows > 64 ? 128 : 64, 64, 3};
    if (gemm.block_scales) return choose_mma(size, steps(), narrow, may_split);
    MmaChoice chosen = plan.tile ? choose_mma(size, steps(), *plan.tile, may_split)
                                 : choose_mma(size, steps(), shared, may_split);
    if (plan.splits > 0 && a.array.type() != ScalarType::int8) chosen.splits = plan.splits;
    return chosen;
  }

  MmaProblem make_problem(const MmaChoice& choice) const {
    MmaProblem problem{};
    problem.rows = static_cast<std::int32_t>(layout.rows);
    problem.columns = static_cast<std::int32_t>(layout.columns);
    problem.steps = static_cast<std::int32_t>(steps());
    const std::int32_t unit = gemm.block_scales ? kMmaBlockSteps : 1;
    problem.split_steps = part_count(problem.steps, choice.splits * unit) * unit;
    problem.splits = part_count(problem.steps, problem.split_steps);  // none of them is empty
    problem.row_tiles = part_count(layout.rows, choice.tile.rows);
    problem.column_tiles = part_count(layout.columns, choice.tile.columns);
    problem.group = choice.group;
    problem.batches = static_cast<std::int32_t>(layout.batches());
    problem.inner_batches = static_cast<std::int32_t>(layout.within.extent);
    return problem;
  }

  /// All of the result, or its partial results.
  void launch_on(const Array& target, const MmaChoice& choice, const MmaProblem& problem,
                 const ProductEpilogue& ending, KernelsAhead& kernels) const {
    const bool turn_a = !a.dense_rows, turn_b = b.dense_rows;
    const MmaInstance instance{a.array.type(), target.type(), choice.tile,
                               turn_a,         turn_b,        gemm.block_scales.has_value()};
    const std::int64_t deep = layout.inner, unit = element();
    const MmaSide left{a.array.address(),
                       layout.a_stride,
                       layout.within.a,
                       layout.outer.a,
                       turn_a ? deep : layout.rows,
                       (turn_a ? layout.rows : deep) * unit};
    const MmaSide right{b.array.address(),
                        layout.b_stride,
                        layout.within.b,
                        layout.outer.b,
                        turn_b ? deep : layout.columns,
                        (turn_b ? layout.columns : deep) * unit};
    const std::int64_t blocks =
        std::int64_t{problem.row_tiles} * problem.column_tiles * problem.batches * problem.splits;
    const LaunchConfig config{
        .grid = {static_cast<std::uint32_t>(blocks)},
        .block = {static_cast<std::uint32_t>(choice.tile.threads())},
        .shared_bytes = static_cast<std::uint32_t>(choice.tile.shared_bytes()),
        .stream = on};
    const Kernel& kernel =
        kernel_for({&a, &b}, mma_kernel(instance, ending), target.device(), kernels, on);
    const TileEpilogueValues then = tile_epilogue_values(ending);
    if (!gemm.block_scales) {
      launch(kernel, config, left, right, target.address(), then, problem);
      return;
    }
    const Array &scales_a = gemm.block_scales->a, &scales_b = gemm.block_scales->b;
    const MmaBlockScales scales{scales_a.address(),        scales_b.address(),
                                scales_a.strides()[0] / 4, scales_a.strides()[1] / 4,
                                scales_b.strides()[1] / 4, scales_b.strides()[0] / 4};
    launch(kernel, config, left, right, target.address(), then, problem, scales);
    scales_a.use_on(on);
    scales_b.use_on(on);
  }

  void run(const Array& result) const {
    const MmaChoice made = choice(result);
    const MmaProblem problem = make_problem(made);
    run_product(result, epilogue, has_short_epilogue(epilogue),
                {problem.splits, problem.batches, layout.rows, layout.columns}, on,
                [&](const Array& target, const ProductEpilogue& ending, KernelsAhead& kernels) {
                  launch_on(target, made, problem, ending, kernels);
                });
    a.array.use_on(on);
    b.array.use_on(on);
  }
};

}  // namespace

bool has_mma(const Device& device, ScalarType type) {
  const Capabilities can = device.capabilities();
  switch (type) {
    case ScalarType::float16:
    case ScalarType::bfloat16:
    case ScalarType::float32:
    case ScalarType::int8:
      return can.bf16 && can.async_copy;
    case ScalarType::float8_e4m3fn:
    case ScalarType::float8_e5m2:
      return can.fp8;
    default:
      return false;
  }
}

bool run_mma(const Gemm& gemm, const MmaPlan& plan, const ProductEpilogue& ready,
             const Array& result, const Stream& on) {
  if (!has_mma(gemm.a.device(), gemm.a.type()) || gemm.a.shape().back() == 0 || ready.gate)
    return false;
  const auto [left, right] = plan_operands(gemm.a, gemm.b, on);
  const std::optional<GemmLayout> layout = gemm_layout(left, right, product_shape(gemm.a, gemm.b));
  if (!layout) return false;
  MmaGemm{gemm, plan, ready, left, right, *layout, on}.run(result);
  return true;
}

}  // namespace kernwright::kernels
