// Operands, problem and launch of fma_gemm.cu.
#include "kernels_src/gemm/fma/fma_gemm.h"

#include "base/math.h"
#include "core/device.h"
#include "kernels_src/epilogue/finish_product.h"
#include "kernels_src/family.h"
#include "kernels_src/gemm/gemm_kernels.h"
#include "kernels_src/matmul/matmul_batch.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

namespace kernwright::kernels {
namespace {

constexpr std::int64_t kMostFmaExtent = 2'000'000'000;

/// A product for fma_gemm.cu.
struct FmaGemm {
  const Gemm& gemm;
  const FmaPlan& plan;
  const ProductEpilogue& epilogue;
  const Stream& on;
  ProductBatch batch;
  FmaSide a, b;
  std::int64_t rows, columns, inner, batches;

  std::size_t element() const { return scalar_size(gemm.a.type()); }

  /// Consecutive dimensions of a alone become rows.
  void merge_rows() {
    while (batch.ndim > 0 && batch.b[0] == 0 && (rows == 1 || batch.a[0] == rows * a.line)) {
      if (rows == 1) a.line = batch.a[0];
      rows *= batch.extent[0];
      batch.drop_innermost();
    }
    batches = batch.products();
  }

  FmaChoice choice(const Array& result) const {
    const Device& device = result.device();
    const GemmSize size{
        .rows = rows,
        .columns = columns,
        .inner = inner,
        .batches = batches,
        .multiprocessors = device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
        .out_bytes = element(),
        .b_turned = columns > 1 && std::abs(b.line) > std::abs(b.step)};
    const auto shared = static_cast<std::size_t>(
        device.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR));
    if (plan.tile) return choose_fma(size, shared, *plan.tile, plan.splits);
    FmaChoice chosen = choose_fma(size, shared);
    if (plan.splits > 0) chosen.splits = plan.splits;
    return chosen;
  }

  FmaProblem make_problem(const FmaChoice& choice) const {
    FmaProblem problem{};
    problem.rows = static_cast<std::int32_t>(rows);
    problem.columns = static_cast<std::int32_t>(columns);
    problem.steps = static_cast<std::int32_t>(inner);
    // Parts of whole stages, so copies of packs stay aligned; none of them is empty.
    const std::int64_t depth = choice.tile.depth;
    const std::int64_t split_length = ceil_div(ceil_div(inner, choice.splits), depth) * depth;
    problem.split_steps = static_cast<std::int32_t>(std::min(split_length, kMostFmaExtent));
    problem.splits = part_count(inner, split_length);
    problem.row_tiles = part_count(rows, choice.tile.rows);
    problem.column_tiles = part_count(columns, choice.tile.columns);
    problem.group = choice.group;
    problem.batches = static_cast<std::int32_t>(batches);
    return problem;
  }
  static double block_count(const FmaProblem& problem) {
    return static_cast<double>(problem.row_tiles) * problem.column_tiles * problem.batches *
           problem.splits;
  }

  /// All of the result, or its partial results.
  void launch_on(const Array& target, const FmaChoice& choice, FmaProblem problem,
                 const ProductEpilogue& ending) const {
    const auto size = static_cast<std::int64_t>(element());
    const FmaTile& tile = choice.tile;
    const bool aligned = !ending.c || ending.c->address() % 16 == 0;
    const bool whole =
        rows % tile.rows == 0 && columns % tile.columns == 0 && inner % tile.depth == 0 && aligned;
    const FmaInstance instance{gemm.a.type(),
                               target.type(),
                               tile,
                               fma_way(a, rows, size, batch.a, batch.ndim),
                               fma_way(b, columns, size, batch.b, batch.ndim),
                               whole};
    problem.packs = problem.columns % (16 / size) == 0 && aligned;
    const LaunchConfig config{
        .grid = {static_cast<std::uint32_t>(block_count(problem))},
        .block = {static_cast<std::uint32_t>(tile.threads())},
        .shared_bytes = static_cast<std::uint32_t>(tile.shared_bytes(element())),
        .stream = on};
    launch(fma_kernel(instance, ending).on(target.device()), config, a, b, batch, target.address(),
           tile_epilogue_values(ending), problem);
  }

  void run(const Array& result, const FmaChoice& made, const FmaProblem& problem) const {
    Shape partials_shape = result.shape();
    partials_shape.insert(partials_shape.begin(), problem.splits);
    const bool at_once = has_short_epilogue(epilogue) && !epilogue.row_scales;
    run_product(result, epilogue, at_once, std::move(partials_shape), on,
                [&](const Array& target, const ProductEpilogue& ending, KernelsAhead& /*kernels*/) {
                  launch_on(target, made, problem, ending);
                });
    gemm.a.use_on(on);
    gemm.b.use_on(on);
  }
};

}  // namespace

bool has_fma(const Device& device, ScalarType type) {
  return (type == ScalarType::float32 || type == ScalarType::float64) &&
         device.capabilities().async_copy;
}

FmaWay fma_way(const FmaSide& side, std::int64_t lines, std::int64_t element,
               const std::int64_t* batch, int ndim) {
  const bool apart = std::all_of(batch, batch + ndim, [](std::int64_t s) { return s % 16 == 0; });
  const bool dense = side.line == element && lines > 1;
  if (dense && apart && side.data % 16 == 0 && side.step % 16 == 0) return FmaWay::packs;
  return dense || (lines > 1 && std::abs(side.line) < std::abs(side.step)) ? FmaWay::across
                                                                           : FmaWay::along;
}

bool run_fma(const Gemm& gemm, const FmaPlan& plan, const ProductEpilogue& ready,
             const Array& result, const Stream& on) {
  if (!has_fma(gemm.a.device(), gemm.a.type()) || ready.gate) return false;
  FmaGemm product{.gemm = gemm,
                  .plan = plan,
                  .epilogue = ready,
                  .on = on,
                  .batch = matrix_batch(gemm.a, gemm.b, result.shape()),
                  .a = {gemm.a.address(), stride_from_end(gemm.a, 2), stride_from_end(gemm.a, 1)},
                  .b = {gemm.b.address(), stride_from_end(gemm.b, 1), stride_from_end(gemm.b, 2)},
                  .rows = extent_from_end(gemm.a, 2),
                  .columns = gemm.b.shape().back(),
                  .inner = gemm.a.shape().back(),
                  .batches = 1};
  product.merge_rows();
  if (std::max({product.rows, product.columns, product.inner, product.batches}) > kMostFmaExtent) {
    return false;
  }
  const FmaChoice made = product.choice(result);
  const FmaProblem problem = product.make_problem(made);
  if (FmaGemm::block_count(problem) > std::numeric_limits<std::int32_t>::max()) return false;
  product.run(result, made, problem);
  return true;
}

}  // namespace kernwright::kernels
