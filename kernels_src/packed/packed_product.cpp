// Launches of the kernels that read packed weights.
#include "kernels_src/packed/packed_product.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/math.h"
#include "jit/compile_only.h"
#include "jit/kernels_ahead.h"
#include "kernels_src/copy/copy.h"
#include "kernels_src/family.h"
#include "kernels_src/gemv/skinny_problem.h"
#include "kernels_src/index/gather.h"
#include "kernels_src/operands.h"
#include "kernels_src/packed/packed_gemm.cu.h"
#include "kernels_src/packed/packed_one.cu.h"
#include "kernels_src/packed/packed_plan.h"
#include "kernels_src/packed/packed_product.cu.h"
#include "kernels_src/packed/packed_ring.cu.h"
#include "kernels_src/packed/packed_ring_plan.h"
#include "kernels_src/packed/packed_wgmma.h"
#include "kernels_src/packed/packed_whole.cu.h"
#include "kernels_src/plans/planned_rows.h"

#include <algorithm>
#include <bit>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

namespace kernwright::kernels {
namespace {

/// The kernels of products but packed_wgmma.cu, a text each.
enum class PackedKernel : std::uint8_t { tiles, gemm, whole, one, ring };

PackedKernel packed_kernel_for(const PackedWeights& w, std::int64_t rows, const SkinnyPlan& plan) {
  if (plan.kernel != SkinnyKernel::ring)
    return rows > kSkinnyRows ? PackedKernel::gemm : PackedKernel::tiles;
  if (rows > 1) return PackedKernel::ring;
  return is_packed_whole(w) ? PackedKernel::whole : PackedKernel::one;
}

const Family& packed_family(PackedKernel kernel) {
  switch (kernel) {
    case PackedKernel::gemm: {
      static const auto& made = *new Family("packed_gemm.cu", text::packed_gemm_cu);
      return made;
    }
    case PackedKernel::whole: {
      static const auto& made = *new Family("packed_whole.cu", text::packed_whole_cu);
      return made;
    }
    case PackedKernel::one: {
      static const auto& made = *new Family("packed_one.cu", text::packed_one_cu);
      return made;
    }
    case PackedKernel::ring: {
      static const auto& made = *new Family("packed_ring.cu", text::packed_ring_cu);
      return made;
    }
    default: {
      static const auto& made = *new Family("packed_product.cu", text::packed_product_cu);
      return made;
    }
  }
}

/// The name of the kernel with all template arguments.
std::string packed_name(const PackedLinearCall& call, PackedKernel kernel, const SkinnyPlan& plan) {
  const std::string front = format("{}, {}, {}, {}", device_type(call.x.type()),
                                   packed_device_format(call.weights, call.x.type()),
                                   packed_activation(call), plan.warps);
  const char* const normed = call.epilogue.gate ? ", true, true" : call.norm ? ", true" : "";
  switch (kernel) {
    case PackedKernel::whole:
      return format("packed_whole<{}, {}{}>", front, plan.stages, normed);
    case PackedKernel::one:
      return format("packed_one<{}, {}, {}>", front, plan.stages, plan.columns);
    case PackedKernel::ring:
      return format("packed_ring<{}, {}, {}, {}>", front, plan.stages, plan.columns, plan.unroll);
    default:
      return format("packed_{}<{}, {}, {}, {}>", kernel == PackedKernel::gemm ? "gemm" : "tiles",
                    front, plan.rows, plan.columns, plan.unroll);
  }
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

/// The epilogue with arrays that the kernels read.
ProductEpilogue packed_epilogue(const PackedLinearCall& call, std::int64_t rows, const Stream& on) {
  ProductEpilogue ready = ready_epilogue(call.epilogue, {}, on);
  if (ready.residual) ready.residual = packed_rows(*ready.residual, rows, call.weights.n, 1, on);
  return ready;
}

const LazyKernel& packed_kernel(const PackedLinearCall& call, std::int64_t rows, SkinnyPlan plan) {
  if (plan.kernel == SkinnyKernel::wgmma) return packed_wgmma_kernel(call, plan);
  const PackedKernel kernel = packed_kernel_for(call.weights, rows, plan);
  if (kernel == PackedKernel::ring) plan.rows = 0;  // tiles of a cluster: not the kernel's
  const std::uint64_t key =
      packed_product_key(call, plan).add(packed_key(call.weights), kPackedKeyBits);
  return packed_family(kernel).instance(key, [&] { return packed_name(call, kernel, plan); });
}

const LazyKernel& packed_splits_kernel(const PackedLinearCall& call) {
  const std::uint64_t key = packed_product_key(call, {}).add(0, kPackedKeyBits);
  return packed_family(PackedKernel::tiles).instance(key, [&] {
    return format("add_packed_splits<{}, {}>", device_type(call.x.type()), packed_activation(call));
  });
}

LaunchConfig packed_launch(const PackedWeights& w, std::int64_t rows, const SkinnyPlan& plan,
                           const PackedDevice& device, const Stream& on) {
  const bool has_tma = plan.kernel == SkinnyKernel::wgmma;
  const bool ring = plan.kernel == SkinnyKernel::ring;
  const bool early = has_tma || ring || (rows <= kSkinnyRows && plan.columns == 1);
  const auto splits = static_cast<std::uint32_t>(plan.splits);
  std::int64_t shared_bytes = packed_shared_bytes(w, rows, plan);
  // A block of the next launch beside it would fetch weights too early: measured to be slower.
  if (ring && rows == 1 && is_packed_whole(w))
    shared_bytes = std::max(shared_bytes, device.shared_bytes / 2 + 1024);
  return {
      .grid = {static_cast<std::uint32_t>(packed_blocks(w, rows, plan, device)), splits},
      .block = {static_cast<std::uint32_t>(has_tma ? packed_wgmma_warps(plan) : plan.warps) * 32},
      .shared_bytes = static_cast<std::uint32_t>(shared_bytes),
      .stream = on,
      .cluster = has_tma || (ring && splits > 1) ? Dim3{1, splits, 1} : Dim3{0, 0, 0},
      .programmatic_dependent = device.overlapping && early};
}

/// Clusters of `config` that run at once: as a device's multiprocessors are grouped, which no rule
/// knows. Asked once for each shape of a cluster, as registers leave a multiprocessor the same
/// blocks of each of these kernels.
std::int64_t resident_clusters(const Kernel& kernel, const Device& device, LaunchConfig config) {
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
  const std::int64_t clusters = resident_clusters(kernel, device, config);
  const std::int64_t tiles = ceil_div(w.n, 16);
  if (clusters <= 0) return;
  const std::int64_t each = ceil_div(tiles, clusters);
  config.grid.x = static_cast<std::uint32_t>(ceil_div(tiles, each));
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
    if (resident_clusters(kernel, device, wanted) < blocks) return;
    config = wanted;
  }
}

}  // namespace

bool applies_packed_norm(const PackedLinearCall& call, std::int64_t rows, const SkinnyPlan& plan) {
  if (!call.norm) return false;
  const Array& weight = call.norm->weight;
  const bool whole =
      plan.kernel == SkinnyKernel::ring && rows == 1 && is_packed_whole(call.weights);
  return whole && planned_rows(1) == 1 && !call.weights.parts[7] && weight.is_contiguous() &&
         weight.address() % 16 == 0 && call.weights.k % 8 == 0;
}

bool applies_packed_gate(const PackedLinearCall& call, const SkinnyPlan& plan) {
  const std::int64_t pairs = call.weights.n / 32;  // of tiles
  const PackedDevice device = packed_device(call.x.device());
  return applies_packed_norm(call, 1, plan) && call.weights.n % 32 == 0 &&
         pairs >= packed_blocks(call.weights, 1, plan, device);
}

Array packed_product(const PackedLinearCall& call, std::int64_t rows, const SkinnyPlan& plan,
                     const std::optional<Array>& target, const Stream& on) {
  const PackedWeights& w = call.weights;
  Device& device = call.x.device();
  const PackedDevice limits = packed_device(device);
  const bool has_tma = plan.kernel == SkinnyKernel::wgmma;
  Array x = packed_columns(call, rows, on);
  if (has_tma) x = packed_wgmma_columns(x, on);
  const std::int64_t columns = w.n / (call.epilogue.gate ? 2 : 1);
  Array result = target ? *target : Array::empty(device, {rows, columns}, x.type(), on);
  std::vector<Array> used = {x, result};
  SkinnyProblem p;
  p.x = x.address();
  p.out = result.address();
  const ProductEpilogue epilogue = packed_epilogue(call, rows, on);
  p.epilogue = epilogue_values(epilogue);
  if (call.norm) {
    p.norm = used.emplace_back(call.norm->weight).address();
    p.eps = static_cast<float>(call.norm->eps);
  }
  const bool clustered = has_tma || plan.kernel == SkinnyKernel::ring;
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
  const auto& kernel = packed_kernel(call, rows, plan).on(device);
  if (plan.kernel == SkinnyKernel::ring && plan.splits > 2 && call.plan.rows <= 0)
    spread_packed_clusters(kernel, device, w, config);
  if (has_tma && call.plan.splits <= 0) split_packed_clusters(kernel, device, w, config);
  p.splits = config.grid.y;
  if (has_tma) {
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
  use_epilogue(epilogue, on);
  for (const auto& part : w.parts) {
    if (part) part->use_on(on);
  }
  return result;
}

}  // namespace kernwright::kernels
