// Chooses between rows in registers and rows that blocks share.
#include "kernels_src/norm/norm.h"

#include "array/shape.h"
#include "base/errors.h"
#include "base/format.h"
#include "kernels_src/copy/copy.h"
#include "kernels_src/family.h"
#include "kernels_src/launch_choices.h"
#include "kernels_src/norm/norm.cu.h"
#include "kernels_src/norm/norm_affine.h"
#include "kernels_src/result_target.h"
#include "kernels_src/row_plan.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace kernwright::kernels {
namespace {

struct NormJob {
  Array x, residual;  ///< end in the row's elements; the residual is x where there is none
  NormResult result;
  NormShape shape;
  NormOptions options;
  Stream stream;

  Device& device() const { return x.device(); }
  bool has_residual() const { return options.residual.has_value(); }
  ScalarType weight_type() const {
    const auto& given = options.weight ? options.weight : options.bias;
    return given ? given->type() : x.type();
  }
  Walk<2> view() const { return *pair_rows(x, residual); }
  /// The arrays that the kernel holds early: see HeldAffine in norm_rows.cuh.
  int held() const { return (options.weight ? 1 : 0) + (options.bias ? 2 : 0); }
  CUdeviceptr sum() const { return result.sum ? result.sum->address() : 0; }
  CUdeviceptr scales() const { return result.scales ? result.scales->address() : 0; }
};

enum class NormPart { rows, cluster, moments, finish };

constexpr int kNotHeld = -1;

/// `held`: of weight and bias, or kNotHeld. `is_whole`: no block has fewer rows, no row fewer
/// elements than it has room for. `is_far`: the rows are walked in several dimensions.
const Kernel& norm_part(NormPart part, const NormJob& job, const RowTile& tile, int held,
                        bool is_whole = false, bool is_far = false) {
  static const auto& family = *new Family("norm.cu", text::norm_cu);
  const auto key = InstanceKey()
                       .add(part, 2)
                       .type(job.x.type())
                       .type(job.weight_type())
                       .type(job.result.out.type())
                       .add(job.options.kind, 2)
                       .add(job.shape.channels, 1)
                       .add(job.has_residual(), 1)
                       .add(held - kNotHeld, 3)
                       .add(is_whole, 1)
                       .add(is_far, 1)
                       .add(tile.pack, 5)
                       .add(tile.items, 7)
                       .add(tile.width, 11)
                       .add(tile.threads, 11);
  const auto name = [&] {
    const char* const x = device_type(job.x.type());
    const char* const weight = device_type(job.weight_type());
    const char* const out = device_type(job.result.out.type());
    const int kind = static_cast<int>(job.options.kind);
    const std::string finish =
        format("norm_finish<{}, {}, {}, {}, {}, {}, {}, {}, {}>", x, weight, out, tile.pack,
               tile.items, tile.threads, kind, job.shape.channels, held);
    switch (part) {
      case NormPart::rows:
        return std::vector{format("norm_rows<{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}>",
                                  x, weight, out, tile.pack, tile.items, tile.width, tile.threads,
                                  kind, job.shape.channels, job.has_residual(), held, is_whole,
                                  is_far ? kWalkDims : 1)};
      case NormPart::cluster:
        return std::vector{format("norm_cluster<{}, {}, {}, {}, {}, {}, {}, {}, {}>", x, weight,
                                  out, tile.pack, tile.items, tile.threads, kind,
                                  job.shape.channels, job.has_residual())};
      case NormPart::moments:
        return std::vector{format("norm_moments<{}, {}, {}, {}, {}, {}>", x, tile.pack, tile.items,
                                  tile.threads, kind, job.has_residual()),
                           finish};
      case NormPart::finish:
        break;
    }
    return std::vector{finish};
  };
  return family.instance(key, name).on(job.device());
}

LaunchConfig norm_config(const NormJob& job, std::uint32_t blocks, int threads) {
  return {.grid = {blocks},
          .block = {static_cast<std::uint32_t>(threads)},
          .stream = job.stream,
          .programmatic_dependent = overlaps_launches(job.device(), blocks)};
}

template <typename C>
void launch_norm_rows(const NormJob& job, const RowTile& tile, C eps) {
  const std::uint32_t blocks = tile.blocks(job.shape.rows);
  const auto processors =
      static_cast<std::uint32_t>(job.device().attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  const bool early = !job.options.quantized && !job.shape.channels && blocks <= 2 * processors;
  const LaunchConfig config = norm_config(job, blocks, tile.threads);
  // Many rows of float32 took longer with it (H100).
  const bool is_whole = early && is_whole_tile(tile, {job.shape.rows, job.shape.n});
  dispatch_walk(job.view(), [&](const auto& view) {
    launch(norm_part(NormPart::rows, job, tile, early ? job.held() : kNotHeld, is_whole,
                     view.ndim > 1),
           config, job.result.out.address(), job.x.address(), job.residual.address(), view,
           job.shape.rows, static_cast<std::int32_t>(job.shape.n),
           affine_arguments(job.options.weight, job.options.bias, job.shape), eps, job.sum(),
           job.scales());
  });
}

template <typename C>
void launch_norm_cluster(const NormJob& job, const RowCluster& plan, C eps) {
  const RowTile tile{.pack = plan.pack, .items = plan.items, .width = 1, .threads = plan.threads};
  LaunchConfig config = plan.config(job.shape.rows, job.stream);
  config.programmatic_dependent = overlaps_launches(job.device(), config.grid.x);
  launch(norm_part(NormPart::cluster, job, tile, kNotHeld), config, job.result.out.address(),
         job.x.address(), job.residual.address(), job.view(),
         static_cast<std::int32_t>(job.shape.n), plan.blocks, static_cast<std::int32_t>(plan.part),
         affine_arguments(job.options.weight, job.options.bias, job.shape), eps, job.sum());
}

template <typename C>
void launch_norm_shared(const NormJob& job, int pack, C eps) {
  const RowChunks plan = chunk_rows(job.device(), {job.shape.rows, job.shape.n}, pack, 16);
  const Array moments =
      Array::empty(job.device(), {job.shape.rows, plan.chunks, 2},
                   sizeof(C) == 8 ? ScalarType::float64 : ScalarType::float32, job.stream);
  const RowTile tile{.pack = pack, .items = plan.items, .width = 1, .threads = kChunkThreads};
  const LaunchConfig config = norm_config(job, plan.blocks, kChunkThreads);
  const std::int64_t n = job.shape.n;
  const int held = job.shape.channels ? kNotHeld : job.held();
  launch(norm_part(NormPart::moments, job, tile, held), config, moments.address(), job.x.address(),
         job.residual.address(), job.view(), n, plan.chunks, job.sum());
  const Array& source = job.result.sum ? *job.result.sum : job.x;
  const auto row_bytes = n * static_cast<std::int64_t>(scalar_size(job.x.type()));
  const Walk<2> view =
      job.result.sum ? walk_parameter(WalkDims<2>{{job.shape.rows, {row_bytes, 0}}}) : job.view();
  launch(norm_part(NormPart::finish, job, tile, held), config, job.result.out.address(),
         source.address(), view, n, plan.chunks,
         affine_arguments(job.options.weight, job.options.bias, job.shape), eps, moments.address());
  moments.use_on(job.stream);
}

template <typename C>
void run_norm(const NormJob& job, C eps) {
  const NormShape& shape = job.shape;
  const int pack = affine_pack(common_pack(shape.n, {&job.x, &job.residual, &job.result.out}),
                               job.options.weight, job.options.bias, shape);
  // Rows of any length that the rule's tiles take are quantised in one pass.
  constexpr int kRule = sizeof(C) == 8 ? 8 : 16;
  const int values = job.options.quantized ? kRule
                                           : choose(LaunchChoice::norm_values, job.device(),
                                                    shape.n, scalar_size(job.x.type()), kRule);
  const RowExtent extent{shape.rows, shape.n};
  const RowTile tile = tile_rows_by_warps(job.device(), extent, pack, values);
  if (job.options.quantized && tile.items == 0) {
    throw InvalidArgument(
        format("rows of {} elements are too long to be quantised in one pass; normalise them "
               "without quantize",
               shape.n));
  }
  const bool few = !job.options.quantized && are_few_and_long(job.device(), extent);
  if (tile.items > 0 && !few) return launch_norm_rows(job, tile, eps);
  // Loads of single elements are too slow for the few threads of a cluster.
  const auto cluster =
      pack > 1 ? cluster_rows(job.device(), extent, pack, 2 * kRule) : std::nullopt;
  if (cluster) return launch_norm_cluster(job, *cluster, eps);
  launch_norm_shared(job, pack, eps);
}

/// The axes of a row as one; a copy where they, or the rows, cannot be walked as they are.
Array view_norm_rows(const Array& x, const NormShape& shape, const Stream& stream) {
  Shape flat(x.shape().begin(), x.shape().end() - shape.row_axes);
  if (shape.channels) flat = {shape.rows};
  flat.push_back(shape.n);
  const auto size = static_cast<std::int64_t>(scalar_size(x.type()));
  if (reshape_strides(x.shape(), x.strides(), flat, scalar_size(x.type()))) {
    const Array rows = x.reshape(flat);
    const bool together = shape.n == 1 || rows.strides().back() == size;
    if (together && common_pack(shape.n, {&rows}) > 0) return rows;
  }
  return copy(x, stream).reshape(flat);
}

void check_norm(const Array& x, const NormOptions& options, const char* what) {
  require_computed(x, what, "x");
  if (options.residual &&
      (options.residual->shape() != x.shape() || options.residual->type() != x.type() ||
       &options.residual->device() != &x.device())) {
    throw InvalidArgument(
        format("Incompatible dimensions: {} takes x and a residual of one shape "
               "and dtype on the same device, got {} and {}",
               what, x.identify(), options.residual->identify()));
  }
  if (!options.quantized) return;
  if (*options.quantized != ScalarType::int8 && *options.quantized != ScalarType::float8_e4m3fn) {
    throw InvalidArgument(format("{} quantises to int8 or float8_e4m3fn, not to {}", what,
                                 scalar_name(*options.quantized)));
  }
  if (options.groups != 0) throw InvalidArgument(format("{} of groups does not quantise", what));
}

/// The results' memory. A thread of the kernels reads an element of x and of the residual before it
/// writes the result's, and no other thread reads that element: both arrays may be overwritten.
NormResult norm_targets(const Array& x, const NormOptions& options, const NormShape& shape,
                        const char* what, const Stream& on) {
  Device& device = x.device();
  const Array *const weight = pointer_or_null(options.weight), *const bias =
                                                                   pointer_or_null(options.bias);
  const Array* const residual = pointer_or_null(options.residual);
  const ResultForm out{what, device, x.shape(), options.quantized.value_or(x.type())};
  NormResult made;
  made.out = contiguous_result(options.out, out, on);
  require_apart_or_same(options.out, out, {{"x", &x}, {"the residual", residual}});
  require_apart(options.out, out, {{"weight", weight}, {"bias", bias}});
  if (options.quantized) {
    const Shape rows(x.shape().begin(), x.shape().end() - shape.row_axes);
    const ResultForm form{what, device, rows, ScalarType::float32, "the out of scales"};
    made.scales = contiguous_result(options.scales, form, on);
    require_apart(options.scales, form,
                  {{"x", &x},
                   {"the residual", residual},
                   {"weight", weight},
                   {"bias", bias},
                   {"out", pointer_or_null(options.out)},
                   {"the out of the sum", pointer_or_null(options.sum)}});
  }
  if (options.residual) {
    const ResultForm form{what, device, x.shape(), x.type(), "the out of the sum"};
    made.sum = contiguous_result(options.sum, form, on);
    require_apart_or_same(options.sum, form, {{"x", &x}, {"the residual", residual}});
    require_apart(options.sum, form,
                  {{"weight", weight}, {"bias", bias}, {"out", pointer_or_null(options.out)}});
  }
  return made;
}

}  // namespace

NormResult norm(const Array& x, const NormOptions& options, const Stream& stream) {
  const char* const what = norm_name(options.kind, options.groups);
  check_norm(x, options, what);
  const NormShape shape = norm_shape(x, options.weight, options.bias, options.groups, what);
  const Stream on = stream ? stream : Stream::legacy(x.device());
  NormJob job{
      .x = x, .residual = x, .result = {}, .shape = shape, .options = options, .stream = on};
  job.result = norm_targets(x, options, shape, what, on);
  if (x.size() == 0) return job.result;
  job.x = view_norm_rows(x, shape, on);
  job.residual = options.residual ? view_norm_rows(*options.residual, shape, on) : job.x;
  if (!pair_rows(job.x, job.residual)) {
    job.x = copy(job.x, on);
    job.residual = options.residual ? copy(job.residual, on) : job.x;
  }
  for (auto* const each : {&job.options.weight, &job.options.bias})
    if (*each && !(*each)->is_contiguous()) *each = copy(**each, on);
  NormResult result = job.result;
  job.result.out = result.out.reshape({shape.rows, shape.n});
  if (x.type() == ScalarType::float64) {
    run_norm(job, options.eps);
  } else {
    run_norm(job, static_cast<float>(options.eps));
  }
  use_all_on(on, {&job.x, &job.residual, &result.out},
             {&job.options.weight, &job.options.bias, &result.scales, &result.sum});
  return result;
}

Array RowNorm::normalised(const Array& x, const Stream& stream) const {
  return norm(x, {.eps = eps, .weight = weight}, stream).out;
}

}  // namespace kernwright::kernels
