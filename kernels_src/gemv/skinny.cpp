// Checks, plan and launch of the products with few rows.
#include "kernels_src/gemv/skinny.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/math.h"
#include "jit/kernels_ahead.h"
#include "kernels_src/copy/copy.h"
#include "kernels_src/epilogue/epilogue_values.h"
#include "kernels_src/gemm/gemm_maps.h"
#include "kernels_src/gemv/skinny_kernels.h"
#include "kernels_src/gemv/skinny_problem.h"
#include "kernels_src/operands.h"
#include "kernels_src/plans/planned_rows.h"
#include "kernels_src/result_target.h"

#include <algorithm>
#include <utility>

namespace kernwright::kernels {
namespace {

constexpr std::int64_t kMostSkinnyBatches = 65535;

/// ByteRows has its distances in bytes, DotRows in elements.
struct WeightRows {
  CUdeviceptr data = 0;
  std::int64_t row = 0, batch = 0;
};

// As in skinny_wgmma.cu.
struct SkinnyTiles {
  std::int32_t weights_batch = 0, x_batch = 0;
};

/// Lines of neighbours in memory, the rows of an operand or its columns; distances in bytes are 0
/// where there is one.
struct SkinnyLines {
  std::int64_t batches = 1, lines = 1, elements = 1;
  std::int64_t batch = 0, line = 0;
  bool columns = false;
  bool aligned = false;  ///< all lines begin at multiples of 16 bytes
  int width = 1;         ///< elements of a load at the addresses of all lines
};

/// A product ready for launches.
struct SkinnyJob {
  const SkinnyCall& call;  ///< arrays whose innermost elements are neighbours
  const SkinnyLines &x, &weights;
  const Array& out;
  const SkinnyShape& shape;
  const SkinnyPlan& plan;
  SkinnyProblem problem;
};

// ---- checks

[[noreturn]] void refuse_skinny(const SkinnyCall& call, const char* what) {
  throw InvalidArgument(
      format("Incompatible dimensions or dtypes for a product with few rows: x is a {}, weights a "
             "{}; {}",
             call.x.identify(), call.weights.identify(), what));
}

void check_skinny(const SkinnyCall& call, const Shape& result) {
  const ScalarType x = call.x.type(), w = call.weights.type();
  require_one_device(call.x, "x", call.weights, "weights");
  if (x != ScalarType::float16 && x != ScalarType::bfloat16 && x != ScalarType::float32)
    refuse_skinny(call, "x must be float16, bfloat16 or float32");
  if (w != x && !is_narrow_weight(w))
    refuse_skinny(call, "weights must have x's dtype, int8, float8_e4m3fn or float8_e5m2");
  if (result[result.size() - 2] > kSkinnyRows) refuse_skinny(call, "x has more than 64 rows");
  if (const auto& scale = call.epilogue.column_scales) {
    require_one_device(call.x, "x", *scale, "scale");
    const bool fits = scale->size() == 1 || scale->shape() == Shape{result.back()};
    if (!fits || scale->type() != ScalarType::float32)
      refuse_skinny(call, "scale is float32 and has one number, or one a row of the weights");
  }
  if (call.epilogue.c || call.epilogue.row_scales || !call.epilogue.expression.empty())
    refuse_skinny(call, "c, scales of rows and an expression follow products of tiles alone");
  if (call.epilogue.gate) refuse_skinny(call, "a gate follows products of linear() alone");
  require_epilogue(
      call.epilogue,
      {.product = "a product with few rows", .x = call.x, .result = result, .type = x});
}

/// (m, n) or (b, m, n), of operands that fit.
Shape skinny_shape(const SkinnyCall& call) {
  const Shape &x = call.x.shape(), &w = call.weights.shape();
  const bool ranks = (x.size() == 2 || x.size() == 3) && w.size() >= 2 && w.size() <= x.size();
  if (!ranks) refuse_skinny(call, "x has 2 or 3 dimensions, weights 2 or as many");
  if (x.back() != w.back()) refuse_skinny(call, "their last dimensions must be equal");
  if (w.size() == 3 && w[0] != x[0] && w[0] != 1)
    refuse_skinny(call, "their first dimensions must be equal");
  Shape result(x.begin(), x.end());
  result.back() = w[w.size() - 2];
  return result;
}

// ---- operands

/// The rows, or the columns, of an array of two or three dimensions; nothing where their elements
/// are no neighbours, or lines begin inside of an element.
std::optional<SkinnyLines> skinny_lines(const Array& array, bool columns) {
  const Shape &shape = array.shape(), &strides = array.strides();
  const std::size_t last = shape.size() - 1, line = columns ? last : last - 1;
  const std::size_t element = columns ? last - 1 : last;
  SkinnyLines made{.lines = shape[line], .elements = shape[element], .columns = columns};
  if (made.lines != 1) made.line = strides[line];
  if (last == 2) made.batches = shape[0];
  if (made.batches != 1) made.batch = strides[0];
  const auto size = static_cast<std::int64_t>(scalar_size(array.type()));
  const bool near = made.elements <= 1 || strides[element] == size;
  if (!near || made.line % size != 0 || made.batch % size != 0) return std::nullopt;
  const std::uint64_t begins = array.address() | static_cast<std::uint64_t>(made.batch | made.line);
  made.aligned = begins % 16 == 0;
  made.width = pack_width(array.type(), {begins, static_cast<std::uint64_t>(made.elements * size)});
  return made;
}

/// The rows of `array`, or where these have gaps and `any` the columns; without either the rows of
/// a copy, which becomes `array`.
SkinnyLines near_skinny_lines(Array& array, bool any, const Stream& stream) {
  if (const auto rows = skinny_lines(array, false)) return *rows;
  const auto columns = any ? skinny_lines(array, true) : std::nullopt;
  if (columns && columns->elements > 1) return *columns;
  array = copy(array, stream);
  return *skinny_lines(array, false);
}

/// The rows of x. They begin at multiples of 16 bytes, if those of a copy do.
SkinnyLines aligned_skinny_rows(Array& x, const Stream& stream) {
  const SkinnyLines rows = near_skinny_lines(x, false, stream);
  const auto size = static_cast<std::int64_t>(scalar_size(x.type()));
  if (rows.aligned || rows.elements * size % 16 != 0) return rows;
  x = copy(x, stream);
  return *skinny_lines(x, false);
}

/// Whether a tensor map can describe the lines.
bool fits_skinny_map(const SkinnyLines& lines) {
  constexpr std::int64_t kMostBytes = std::int64_t{1} << 40;
  const auto fits = [](std::int64_t extent, std::int64_t stride) {
    return extent == 1 || (stride > 0 && stride < kMostBytes);
  };
  return lines.aligned && fits(lines.lines, lines.line) && fits(lines.batches, lines.batch);
}

/// The facts about a product that its plan depends on.
SkinnyShape skinny_facts(const SkinnyCall& call, const SkinnyLines& x, const SkinnyLines& weights) {
  const Device& device = call.x.device();
  const bool by_columns = weights.columns;
  const int major = device.compute_capability().major;
  SkinnyShape shape{.batches = x.batches,
                    .m = x.lines,
                    .n = by_columns ? weights.elements : weights.lines,
                    .k = x.elements,
                    .x_type = call.x.type(),
                    .weight_type = call.weights.type(),
                    .width = weights.width,
                    .by_columns = by_columns,
                    .pairs = x.width >= 4,
                    .multiprocessors = device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
                    .overlapping = major >= 9,
                    .tensor_cores = major >= 8,
                    .clusters = major >= 9};
  // x can be loaded in the packs of the weights.
  if (!by_columns && x.width * scalar_size(shape.x_type) < 16)
    shape.width = std::min(x.width, shape.width);
  const bool bytes = scalar_size(shape.weight_type) == 1 && !by_columns;
  shape.tma_tiles = is_half(shape.x_type) && (bytes || shape.weight_type == shape.x_type) &&
                    shape.k > 0 && device.capabilities().wgmma && fits_skinny_map(x) &&
                    fits_skinny_map(weights);
  return shape;
}

SkinnyProblem describe_skinny(const SkinnyJob& job) {
  const SkinnyCall& call = job.call;
  SkinnyProblem p;
  const auto x_size = static_cast<std::int64_t>(scalar_size(call.x.type()));
  p.x = call.x.address();
  p.out = job.out.address();
  p.x_row = job.x.line / x_size;
  p.x_batch = job.x.batch / x_size;
  p.batches = static_cast<std::uint64_t>(job.shape.batches);
  p.m = static_cast<std::uint32_t>(job.shape.m);
  p.n = static_cast<std::uint32_t>(job.shape.n);
  p.k = static_cast<std::uint32_t>(job.shape.k);
  p.splits = static_cast<std::uint32_t>(job.plan.splits);
  p.ahead = static_cast<std::uint32_t>(job.plan.ahead);
  p.epilogue = epilogue_values(call.epilogue);
  if (call.norm) {
    p.norm = call.norm->weight.address();
    p.eps = static_cast<float>(call.norm->eps);
  }
  return p;
}

/// Whether the kernel applies the norm of x.
bool applies_norm(const SkinnyCall& call, const SkinnyShape& shape, const SkinnyPlan& plan) {
  const Array& weight = call.norm->weight;
  const bool one = shape.m == 1 && shape.batches == 1 && planned_rows(1) == 1;
  const bool packs = weight.is_contiguous() && weight.address() % 16 == 0;
  const bool row = plan.kernel == SkinnyKernel::row && shape.x_type == ScalarType::bfloat16;
  const bool dot = plan.kernel == SkinnyKernel::dot && plan.columns == 1 && plan.splits == 1 &&
                   plan.width >= pack_width(shape.x_type, {});
  return one && packs && (row || dot);
}

/// Whether the kernel that applies the norm also applies the gate.
bool applies_gate(const SkinnyShape& shape, const SkinnyPlan& plan) {
  return shape.n % (plan.kernel == SkinnyKernel::row ? 8 : 2) == 0 && plan.rows % 2 == 0;
}

// ---- launches

/// The bytes of the unit in which the kernel counts distances: WeightRows.
std::int64_t skinny_distance_unit(const SkinnyShape& shape, const SkinnyPlan& plan) {
  const bool bytes = plan.kernel == SkinnyKernel::tiles || plan.kernel == SkinnyKernel::staged ||
                     plan.kernel == SkinnyKernel::row;
  return bytes ? 1 : static_cast<std::int64_t>(scalar_size(shape.weight_type));
}

/// TMA tiles of 128 bytes of so many lines.
CUtensorMap skinny_map(const Array& array, const SkinnyLines& lines, int tma_lines) {
  const auto size = static_cast<std::int64_t>(scalar_size(array.type()));
  return gemm_map(array.device(), {.address = array.address(),
                                   .shape = {1, lines.batches, lines.lines, lines.elements},
                                   .strides = {0, lines.batch, lines.line, size},
                                   .type = array.type(),
                                   .tma_rows = static_cast<std::uint32_t>(tma_lines),
                                   .tma_columns = static_cast<std::uint32_t>(128 / size)});
}

void launch_skinny(const SkinnyJob& job, const Stream& on) {
  const Array &x = job.call.x, &weights = job.call.weights;
  Device& device = x.device();
  const SkinnyPlan& plan = job.plan;
  SkinnyInstance instance{
      job.shape, plan, {}, job.call.norm.has_value(), job.call.epilogue.gate.has_value()};
  if (const auto& activation = epilogue_activation(job.call.epilogue))
    instance.activation = activation->kind;
  const auto across = static_cast<std::uint32_t>(skinny_blocks(job.shape, plan));
  const bool tma = plan.kernel == SkinnyKernel::wgmma || plan.kernel == SkinnyKernel::bytes;
  const int producers = tma ? 1 : 0;  // warps
  const LaunchConfig config{
      .grid = {across, job.problem.splits,
               static_cast<std::uint32_t>(std::min(job.shape.batches, kMostSkinnyBatches))},
      .block = {static_cast<std::uint32_t>(plan.warps + producers) * 32},
      .shared_bytes = static_cast<std::uint32_t>(skinny_shared_bytes(job.shape, plan)),
      .stream = on,
      .cluster = plan.clustered ? Dim3{1, job.problem.splits, 1} : Dim3{0, 0, 0},
      .programmatic_dependent = job.shape.overlapping && plan.ahead > 0};
  const LazyKernel* const adding =
      job.problem.partial != 0 ? &skinny_splits_kernel(instance) : nullptr;
  KernelsAhead kernels;
  if (adding != nullptr) kernels.begin(*adding, device);
  const Kernel& kernel = skinny_kernel(instance).on(device);
  if (plan.kernel == SkinnyKernel::wgmma) {
    const SkinnyTiles tiles{job.weights.batch != 0 ? 1 : 0, job.x.batch != 0 ? 1 : 0};
    const int rows = job.shape.by_columns ? 64 : 16 * plan.warps;
    launch(kernel, config, skinny_map(weights, job.weights, rows),
           skinny_map(x, job.x, 8 * plan.columns), job.problem, tiles);
  } else if (plan.kernel == SkinnyKernel::bytes) {
    launch(kernel, config, skinny_map(weights, job.weights, 16 * plan.rows),
           skinny_map(x, job.x, 8 * plan.columns), job.problem);
  } else {
    const std::int64_t unit = skinny_distance_unit(job.shape, plan);
    const WeightRows rows{weights.address(), job.weights.line / unit, job.weights.batch / unit};
    launch(kernel, config, job.problem, rows);
  }
  if (adding == nullptr) return;
  launch(kernels.on(*adding, device),
         {.grid = {static_cast<std::uint32_t>(ceil_div(job.out.size(), 256))},
          .block = {256},
          .stream = on,
          .programmatic_dependent = config.programmatic_dependent},
         job.problem);
}

/// The product with the norm, unless its kernel applies that, and the gate as kernels around it.
Array run_apart(SkinnyCall call, Shape shape, bool norms, const Stream& on) {
  const ProductEpilogue rest = take_gate(call.epilogue);
  std::optional<Array> out;
  if (rest.gate) {
    shape.back() *= 2;
    out = std::exchange(call.out, std::nullopt);  // half as wide as the product
  }
  if (call.norm && !norms) call.x = std::exchange(call.norm, std::nullopt)->normalised(call.x, on);
  return deliver(out, run_rest(run_skinny(std::move(call), shape, on), rest, {}, on), on);
}

}  // namespace

Array run_skinny(SkinnyCall call, const Shape& shape, const Stream& stream) {
  Device& device = call.x.device();
  const Stream on = stream ? stream : Stream::legacy(device);
  std::optional<Array> result = call.out;
  if (element_count(shape) == 0)
    return result ? *result : Array::empty(device, shape, call.x.type(), on);
  const SkinnyLines x = aligned_skinny_rows(call.x, on);
  const SkinnyLines weights = near_skinny_lines(call.weights, true, on);
  call.epilogue = ready_epilogue(call.epilogue, {}, on);
  if (call.epilogue.residual) near_skinny_lines(*call.epilogue.residual, false, on);
  const SkinnyShape facts = skinny_facts(call, x, weights);
  SkinnyPlan plan = plan_skinny(facts, call.plan);
  const bool norms = call.norm && applies_norm(call, facts, plan);
  if (norms) plan = plan_skinny_normed(facts, plan);
  if ((call.norm && !norms) || (call.epilogue.gate && !(norms && applies_gate(facts, plan))))
    return run_apart(std::move(call), shape, norms, on);
  if (!result) result = Array::empty(device, shape, call.x.type(), on);
  SkinnyJob job{call, x, weights, *result, facts, plan, {}};
  job.problem = describe_skinny(job);
  std::optional<Array> partial;
  if (plan.splits > 1 && !plan.clustered) {  // a second kernel adds what the blocks summed
    Shape partials = {plan.splits};
    partials.insert(partials.end(), shape.begin(), shape.end());
    partial = Array::empty(device, std::move(partials), ScalarType::float32, on);
    job.problem.partial = partial->address();
  }
  launch_skinny(job, on);
  for (const Array* each : {&call.x, &call.weights, &*result}) each->use_on(on);
  if (partial) partial->use_on(on);
  use_epilogue(call.epilogue, on);
  if (call.norm) call.norm->weight.use_on(on);
  return *std::move(result);
}

Array skinny_product(const SkinnyCall& call, const Stream& stream) {
  const Shape shape = skinny_shape(call);
  check_skinny(call, shape);
  const bool empty = element_count(shape) == 0;
  if (!empty && (call.x.shape().back() > kMostSkinnyInner || shape.back() > kMostSkinnyColumns))
    refuse_skinny(call, "rows of more than 2^30 elements or more than 2^25 rows are not taken");
  return run_skinny(call, shape, stream);
}

}  // namespace kernwright::kernels
