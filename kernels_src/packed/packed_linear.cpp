// Products with packed weights: a kernel for few rows, one for more, numbers and a Gemm beyond.
#include "base/errors.h"
#include "base/format.h"
#include "jit/compile_only.h"
#include "jit/kernels_ahead.h"
#include "kernels_src/copy/copy.h"
#include "kernels_src/family.h"
#include "kernels_src/gemv/skinny_problem.h"
#include "kernels_src/index/gather.h"
#include "kernels_src/operands.h"
#include "kernels_src/packed/packed.h"
#include "kernels_src/packed/packed_gemm.cu.h"
#include "kernels_src/packed/packed_one.cu.h"
#include "kernels_src/packed/packed_plan.h"
#include "kernels_src/packed/packed_product.cu.h"
#include "kernels_src/packed/packed_ring.cu.h"
#include "kernels_src/packed/packed_ring_plan.h"
#include "kernels_src/packed/packed_row.cu.h"
#include "kernels_src/packed/packed_wgmma.h"
#include "kernels_src/packed/packed_whole.cu.h"
#include "kernels_src/products/linear.h"
#include "kernels_src/result_target.h"

#include <algorithm>
#include <bit>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

namespace kernwright::kernels {
namespace {

constexpr std::int64_t kPackedSlabBytes = std::int64_t{128} << 20;  ///< of weights as numbers
constexpr std::int64_t kPackedRows = 512;                           ///< of x, without numbers

const Family& packed_family() {
  static const auto& made = *new Family("packed_product.cu", text::packed_product_cu);
  return made;
}

const Family& packed_one_family() {
  static const auto& made = *new Family("packed_one.cu", text::packed_one_cu);
  return made;
}

const Family& packed_ring_family() {
  static const auto& made = *new Family("packed_ring.cu", text::packed_ring_cu);
  return made;
}

const Family& packed_row_family() {
  static const auto& made = *new Family("packed_row.cu", text::packed_row_cu);
  return made;
}

const Family& packed_whole_family() {
  static const auto& made = *new Family("packed_whole.cu", text::packed_whole_cu);
  return made;
}

const Family& packed_gemm_family() {
  static const auto& made = *new Family("packed_gemm.cu", text::packed_gemm_cu);
  return made;
}

/// `array` as (rows, columns): a view where its strides allow, else a copy. Rows have no gaps.
Array packed_rows(const Array& array, std::int64_t rows, std::int64_t columns, std::uint64_t align,
                  const Stream& on) {
  const auto size = static_cast<std::int64_t>(scalar_size(array.type()));
  const Shape shape = {rows, columns};
  if (reshape_strides(array.shape(), array.strides(), shape, scalar_size(array.type()))) {
    const Array view = array.reshape(shape);
    const std::int64_t apart = rows > 1 ? view.strides()[0] : 0;
    const bool near = columns <= 1 || view.strides()[1] == size;
    const auto bits = view.address() | static_cast<std::uint64_t>(apart);
    if (near && apart % size == 0 && bits % align == 0) return view;
  }
  return copy(array, on).reshape(shape);
}

/// The columns of x in the order of the weights, as rows of the right alignment.
Array packed_columns(const PackedLinearCall& call, std::int64_t rows, const Stream& on) {
  const PackedWeights& w = call.weights;
  if (!w.parts[7]) return packed_rows(call.x, rows, w.k, 16, on);
  const Array x = packed_rows(call.x, rows, w.k, 1, on);
  return take_at(x, {.axes = {1}, .indices = {*w.parts[7]}, .position = 1}, on);
}

const LazyKernel& packed_kernel(const PackedLinearCall& call, const SkinnyPlan& plan, bool many) {
  const std::uint64_t key =
      packed_product_key(call, plan).add(packed_key(call.weights), kPackedKeyBits);
  return (many ? packed_gemm_family() : packed_family()).instance(key, [&] {
    return format("{}<{}, {}, {}, {}, {}, {}, {}>", many ? "packed_gemm" : "packed_tiles",
                  device_type(call.x.type()), packed_device_format(call.weights, call.x.type()),
                  packed_activation(call), plan.warps, plan.rows, plan.columns, plan.unroll);
  });
}

const LazyKernel& packed_one_kernel(const PackedLinearCall& call, const SkinnyPlan& plan) {
  const std::uint64_t key =
      packed_product_key(call, plan).add(packed_key(call.weights), kPackedKeyBits);
  return packed_one_family().instance(key, [&] {
    return format("packed_one<{}, {}, {}, {}, {}, {}>", device_type(call.x.type()),
                  packed_device_format(call.weights, call.x.type()), packed_activation(call),
                  plan.warps, plan.stages, plan.columns);
  });
}

const LazyKernel& packed_whole_kernel(const PackedLinearCall& call, const SkinnyPlan& plan) {
  const std::uint64_t key =
      packed_product_key(call, plan).add(packed_key(call.weights), kPackedKeyBits);
  return packed_whole_family().instance(key, [&] {
    return format("packed_whole<{}, {}, {}, {}, {}>", device_type(call.x.type()),
                  packed_device_format(call.weights, call.x.type()), packed_activation(call),
                  plan.warps, plan.stages);
  });
}

const LazyKernel& packed_ring_kernel(const PackedLinearCall& call, SkinnyPlan plan) {
  plan.rows = 0;
  const std::uint64_t key =
      packed_product_key(call, plan).add(packed_key(call.weights), kPackedKeyBits);
  return packed_ring_family().instance(key, [&] {
    return format("packed_ring<{}, {}, {}, {}, {}, {}, {}>", device_type(call.x.type()),
                  packed_device_format(call.weights, call.x.type()), packed_activation(call),
                  plan.warps, plan.stages, plan.columns, plan.unroll);
  });
}

const LazyKernel& packed_row_kernel(const PackedLinearCall& call, const SkinnyPlan& plan) {
  const std::uint64_t key =
      packed_product_key(call, plan).add(packed_key(call.weights), kPackedKeyBits);
  return packed_row_family().instance(key, [&] {
    return format("packed_row<{}, {}, {}, {}, {}>", device_type(call.x.type()),
                  packed_device_format(call.weights, call.x.type()), packed_activation(call),
                  plan.warps, plan.unroll);
  });
}

const LazyKernel& packed_kernel_of(const PackedLinearCall& call, std::int64_t rows,
                                   const SkinnyPlan& plan) {
  if (plan.kernel == SkinnyKernel::row) return packed_row_kernel(call, plan);
  if (plan.kernel == SkinnyKernel::wgmma) return packed_wgmma_kernel(call, plan);
  if (plan.kernel != SkinnyKernel::ring) return packed_kernel(call, plan, rows > kSkinnyRows);
  if (rows > 1) return packed_ring_kernel(call, plan);
  return is_packed_whole(call.weights) ? packed_whole_kernel(call, plan)
                                       : packed_one_kernel(call, plan);
}

const LazyKernel& packed_splits_kernel(const PackedLinearCall& call) {
  const std::uint64_t key = packed_product_key(call, {}).add(0, kPackedKeyBits);
  return packed_family().instance(key, [&] {
    return format("add_packed_splits<{}, {}>", device_type(call.x.type()), packed_activation(call));
  });
}

LaunchConfig packed_launch(const PackedWeights& w, std::int64_t rows, const SkinnyPlan& plan,
                           const PackedDevice& device, const Stream& on) {
  const bool boxes = plan.kernel == SkinnyKernel::wgmma;
  const bool ring = plan.kernel == SkinnyKernel::ring;
  const bool early = boxes || ring || (rows <= kSkinnyRows && plan.columns == 1);
  const auto splits = static_cast<std::uint32_t>(plan.splits);
  std::int64_t shared_bytes = packed_shared_bytes(w, rows, plan);
  // A block of the next launch beside it would fetch weights too early: measured to be slower.
  if (ring && rows == 1 && is_packed_whole(w))
    shared_bytes = std::max(shared_bytes, device.shared_bytes / 2 + 1024);
  return {.grid = {static_cast<std::uint32_t>(packed_blocks(w, rows, plan, device)), splits},
          .block = {static_cast<std::uint32_t>(boxes ? packed_wgmma_warps(plan) : plan.warps) * 32},
          .shared_bytes = static_cast<std::uint32_t>(shared_bytes),
          .stream = on,
          .cluster = boxes || (ring && splits > 1) ? Dim3{1, splits, 1} : Dim3{0, 0, 0},
          .programmatic_dependent = device.overlapping && early};
}

/// Clusters of `config` that run at once: as a device's multiprocessors are grouped, which no rule
/// knows. Asked once for each shape of a cluster, as registers leave a multiprocessor the same
/// blocks of each of these kernels.
std::int64_t clusters_of_device(const Kernel& kernel, const Device& device, LaunchConfig config) {
  if (CompileOnly::current() != nullptr) return 0;  // the kernel may be another
  static std::mutex mutex;
  using Launch = std::tuple<const Device*, std::uint32_t, std::uint32_t, std::uint32_t>;
  static auto& known = *new std::map<Launch, std::int64_t>;
  const Launch key = {&device, config.cluster.y, config.block.x, config.shared_bytes};
  {
    const std::scoped_lock lock(mutex);
    const auto found = known.find(key);
    if (found != known.end()) return found->second;
  }
  config.programmatic_dependent = false;
  const std::int64_t clusters = kernel.active_clusters(config);  // may compile: without the lock
  const std::scoped_lock lock(mutex);
  return known[key] = clusters;
}

/// Each cluster has as many tiles as others, in one wave.
void spread_packed_clusters(const Kernel& kernel, const Device& device, const PackedWeights& w,
                            LaunchConfig& config) {
  const std::int64_t clusters = clusters_of_device(kernel, device, config);
  const std::int64_t tiles = (w.n + 15) / 16;
  if (clusters <= 0) return;
  const std::int64_t each = (tiles + clusters - 1) / clusters;
  config.grid.x = static_cast<std::uint32_t>((tiles + each - 1) / each);
}

/// More splits of k, where as many clusters run at once and blocks have less of k then.
void split_packed_clusters(const Kernel& kernel, const Device& device, const PackedWeights& w,
                           LaunchConfig& config) {
  const auto units = [&](std::int64_t splits) { return packed_units(w, static_cast<int>(splits)); };
  const std::int64_t blocks = config.grid.x;
  for (std::uint32_t splits = config.cluster.y + 1; splits <= kMostCluster; ++splits) {
    if (units(splits) == units(config.cluster.y)) continue;
    LaunchConfig wanted = config;
    wanted.grid.y = wanted.cluster.y = splits;
    if (clusters_of_device(kernel, device, wanted) < blocks) return;
    config = wanted;
  }
}

/// Up to kPackedRows rows of 16-bit numbers, which are views or copies of those of the call.
/// `target`: memory of the result.
Array packed_product(const PackedLinearCall& call, std::int64_t rows,
                     const std::optional<Array>& target, const Stream& on) {
  const PackedWeights& w = call.weights;
  Device& device = call.x.device();
  const PackedDevice limits = packed_device(device);
  const SkinnyPlan plan = plan_packed(w, rows, call.plan, limits);
  const bool boxes = plan.kernel == SkinnyKernel::wgmma;
  Array x = packed_columns(call, rows, on);
  if (boxes) x = packed_wgmma_columns(x, on);
  Array result = target ? *target : Array::empty(device, {rows, w.n}, x.type(), on);
  std::vector<Array> used = {x, result};
  SkinnyProblem p;
  p.x = x.address();
  p.out = result.address();
  if (call.bias) p.bias = used.emplace_back(contiguous(*call.bias, on)).address();
  if (call.residual) {
    const Array residual = packed_rows(*call.residual, rows, w.n, 1, on);
    p.residual = used.emplace_back(residual).address();
    p.residual_row = rows > 1 ? residual.strides()[0] / 2 : 0;
  }
  const bool clustered = boxes || plan.kernel == SkinnyKernel::ring;
  const bool adds_later = plan.splits > 1 && !clustered;
  if (adds_later) {
    const Shape shape = {plan.splits, rows, w.n};
    p.partial = used.emplace_back(Array::empty(device, shape, ScalarType::float32, on)).address();
  }
  p.x_row = rows > 1 ? x.strides()[0] / 2 : 0;
  p.m = static_cast<std::uint32_t>(rows);
  p.n = static_cast<std::uint32_t>(w.n);
  p.k = static_cast<std::uint32_t>(w.k);
  LaunchConfig config = packed_launch(w, rows, plan, limits, on);
  p.ahead = config.programmatic_dependent && packed_fetches(w, plan) ? 1 : 0;
  const LazyKernel* const adding = adds_later ? &packed_splits_kernel(call) : nullptr;
  KernelsAhead kernels;
  if (adding != nullptr) kernels.begin(*adding, device);
  const auto& kernel = packed_kernel_of(call, rows, plan).on(device);
  if (plan.kernel == SkinnyKernel::ring && plan.splits > 2 && call.plan.rows <= 0)
    spread_packed_clusters(kernel, device, w, config);
  if (boxes && call.plan.splits <= 0) split_packed_clusters(kernel, device, w, config);
  p.splits = config.grid.y;
  if (boxes) {
    launch(kernel, config, packed_wgmma_map(x, plan), p, packed_arrays(w));
  } else {
    launch(kernel, config, p, packed_arrays(w));
  }
  if (adding != nullptr) {
    config.grid = {static_cast<std::uint32_t>((result.size() + 255) / 256)};
    config.block = {256};
    config.shared_bytes = 0;
    config.programmatic_dependent = false;
    launch(kernels.on(*adding, device), config, p);
  }
  for (const Array& array : used) array.use_on(on);
  for (const auto& part : w.parts) {
    if (part) part->use_on(on);
  }
  return result;
}

/// By numbers of x's type, at most kPackedSlabBytes of them at a time.
Array packed_by_numbers(const PackedLinearCall& call, const Shape& shape, const Stream& on) {
  const PackedWeights& w = call.weights;
  const std::int64_t bytes =
      std::max<std::int64_t>(1, w.k) * static_cast<std::int64_t>(scalar_size(call.x.type()));
  const std::int64_t each = std::max<std::int64_t>(256, kPackedSlabBytes / bytes / 256 * 256);
  const int last = static_cast<int>(shape.size()) - 1;
  std::optional<Array> whole;
  if (w.n > each)
    whole = call.out ? *call.out : Array::empty(call.x.device(), shape, call.x.type(), on);
  for (std::int64_t first = 0; first < w.n; first += each) {
    const std::int64_t end = std::min(w.n, first + each);
    LinearCall part{.x = call.x, .weights = unpack_weights(w, first, end, call.x.type(), on)};
    part.activation = call.activation;
    if (call.bias) part.bias = call.bias->slice(0, first, end - first, 1);
    if (call.residual) part.residual = call.residual->slice(last, first, end - first, 1);
    part.out = whole ? whole->slice(last, first, end - first, 1) : call.out;
    const Array made = linear(part, on);
    if (!whole) return made;
  }
  return *whole;
}

/// `out` where kernels can write there. Throws InvalidArgument for one that does not fit.
std::optional<Array> packed_target(const PackedLinearCall& call, const Shape& shape,
                                   const Stream& on) {
  const ResultForm form{"linear", call.x.device(), shape, call.x.type()};
  std::optional<Array> target = direct_target(call.out, form, on);
  require_apart(call.out, form, {{"x", &call.x}, {"bias", pointer_of(call.bias)}});
  require_apart_or_same(call.out, form, {{"residual", pointer_of(call.residual)}});
  for (const auto& part : call.weights.parts) {
    require_apart(call.out, form, {{"weight", pointer_of(part)}});
  }
  return target;
}

}  // namespace

Array packed_linear(const PackedLinearCall& call, const Stream& stream) {
  const PackedWeights& w = call.weights;
  check_packed(w);
  require_one_device(call.x, "x", *w.parts[0], "weight");
  const ScalarType type = call.x.type();
  const bool half = is_half(type);
  if (!half && type != ScalarType::float32)
    throw InvalidArgument(
        format("x of a product with packed weights is float16, bfloat16 or "
               "float32, not {}",
               call.x.identify()));
  if (call.x.ndim() < 1 || call.x.shape().back() != w.k)
    throw InvalidArgument(
        format("Incompatible dimensions for linear(): x is a {}, weight has the "
               "shape ({}, {}); their last dimensions must be equal",
               call.x.identify(), w.n, w.k));
  Shape shape = call.x.shape();
  shape.back() = w.n;
  require_like_linear_result(call.x, call.bias, "bias", {w.n});
  require_like_linear_result(call.x, call.residual, "residual", shape);
  const Stream on = stream ? stream : Stream::legacy(call.x.device());
  std::int64_t rows = 1;
  for (std::size_t d = 0; d + 1 < shape.size(); ++d) rows *= shape[d];
  std::optional<Array> target = packed_target(call, shape, on);
  if (rows * w.n == 0) return call.out ? *call.out : Array::empty(call.x.device(), shape, type, on);
  const bool direct = rows <= kPackedRows && half && w.n <= (1 << 25) &&
                      call.x.device().compute_capability().major >= 8;
  if (direct) {
    if (target) target = target->reshape({rows, w.n});
    const Array result = packed_product(call, rows, target, on).reshape(std::move(shape));
    return deliver(call.out, result, on);
  }
  return packed_by_numbers(call, shape, on);
}

}  // namespace kernwright::kernels
