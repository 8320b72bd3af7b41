// Chooses how a row of logits is held on the chip.
#include "base/errors.h"
#include "base/format.h"
#include "base/math.h"
#include "core/device.h"
#include "kernels_src/cast/cast.h"
#include "kernels_src/family.h"
#include "kernels_src/launch_choices.h"
#include "kernels_src/loss/cross_entropy.cu.h"
#include "kernels_src/loss/loss.h"
#include "kernels_src/operands.h"

#include <algorithm>
#include <string>
#include <vector>

namespace kernwright::kernels {
namespace {

constexpr int kPackBytes = 16;
constexpr int kReservedShared = 2048;  ///< of the kernel's own, and the driver's

/// LossTerms of cross_entropy.cu.
template <typename Real>
struct LossTerms {
  Real smoothing, z;
  CUdeviceptr scale, upstream;
  std::int32_t upstream_stride;
  std::int64_t ignored;
  CUdeviceptr weights, weight_sum;
};

/// Threads of a block, packs that each keeps in registers, and packs in shared memory.
struct LogitsPlan {
  int threads, packs, shared_packs;
  int blocks = 0;  ///< that take one row after the other; 0: there is a block for each row

  bool is_streamed() const { return blocks > 0; }
  int slots() const { return shared_packs / threads; }
};

constexpr int kStreamedPacks = 3, kMostSlots = 13;  // of a thread: in registers, in shared memory
constexpr int kFewestStreamed = 2048;               // packs: shorter rows fit few registers
constexpr int kStreamedThreads = 1024;              // of all blocks of a multiprocessor

/// For rows of whole packs that the streaming kernel holds on the chip, or nothing.
std::optional<LogitsPlan> plan_streamed(const Device& device, std::int64_t rows, std::int64_t packs,
                                        ScalarType type) {
  const auto attribute = [&](CUdevice_attribute which) { return device.attribute(which); };
  // For float64 the powers take longer than the memory accesses.
  if (packs <= kFewestStreamed || type == ScalarType::float64) return std::nullopt;
  const std::int64_t most = kStreamedPacks + kMostSlots;
  const int threads =
      packs <= kStreamedThreads / 2 * most ? kStreamedThreads / 2 : kStreamedThreads;
  const std::int64_t each = ceil_div(packs, threads);
  const std::int64_t slots = std::max<std::int64_t>(1, each - kStreamedPacks);
  const std::int64_t room = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  if (slots > kMostSlots || slots * threads * kPackBytes + kReservedShared > room)
    return std::nullopt;
  const int blocks =
      attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) * kStreamedThreads / threads;
  return LogitsPlan{threads, kStreamedPacks, static_cast<int>(slots * threads),
                    static_cast<int>(std::min<std::int64_t>(blocks, rows))};
}

LogitsPlan plan_logits(const Device& device, std::int64_t cols, int width, ScalarType type,
                       bool gradient) {
  const std::int64_t packs = cols / width;
  if (packs <= 32 * 4) return {32, 4, 0};
  if (packs <= 128 * 4) return {128, 4, 0};
  if (packs <= 512 * 4 || !gradient) return {512, 4, 0};
  const int held = choose(LaunchChoice::entropy_packs, device, cols, scalar_size(type), 12);
  const int most = device.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  const std::int64_t room = std::max(0, most - kReservedShared) / kPackBytes;
  return {512, held, static_cast<int>(std::clamp<std::int64_t>(packs - 512 * held, 0, room))};
}

const Family& entropy_family() {
  static const auto& made = *new Family("cross_entropy.cu", text::cross_entropy_cu);
  return made;
}

std::string scale_name(ScalarType target, ScalarType real, bool weighted) {
  return format("{}<{}, {}>", weighted ? "weighted_scale" : "target_scale", device_type(target),
                device_type(real));
}

/// The others of the call come with it.
const LazyKernel& entropy_kernel(ScalarType type, ScalarType target, int width,
                                 const LogitsPlan& plan, const CrossEntropyOptions& options) {
  const bool gradient = options.gradient, weighted = options.weights.has_value();
  const bool all = options.label_smoothing != 0;
  const auto key = InstanceKey()
                       .add(0, 1)
                       .type(type)
                       .type(target)
                       .add(width, 5)
                       .add(plan.threads, 11)
                       .add(plan.packs, 5)
                       .add(plan.is_streamed() ? plan.slots() : 0, 4)
                       .add(gradient, 1)
                       .add(all, 1)
                       .add(weighted, 1);
  return entropy_family().instance(key, [&] {
    const std::string common = format("{}, {}, {}, {}, {}", device_type(type), device_type(target),
                                      width, plan.threads, plan.packs);
    std::vector names{
        plan.is_streamed()
            ? format("streamed_entropy<{}, {}, {}, {}>", common, plan.slots(), all, weighted)
            : format("cross_entropy<{}, {}, {}, {}>", common, gradient, all, weighted)};
    const auto real = type == ScalarType::float64 ? type : ScalarType::float32;
    if (options.reduction == LossReduction::mean)
      names.push_back(scale_name(target, real, weighted));
    if (options.reduction != LossReduction::none || (weighted && all))
      names.push_back(total_name(real));
    return names;
  });
}

const LazyKernel& scale_kernel(ScalarType target, ScalarType real, bool weighted) {
  return entropy_family().instance(InstanceKey().add(1, 1).type(target).type(real).add(weighted, 1),
                                   [&] { return scale_name(target, real, weighted); });
}

void check_entropy(const Array& logits, const Array& targets, const CrossEntropyOptions& options) {
  require_floating(logits, "cross_entropy", "logits");
  require_one_device(logits, "logits", targets, "targets");
  if (targets.type() != ScalarType::int32 && targets.type() != ScalarType::int64) {
    throw ArgumentError(format("cross_entropy: targets is a {}, and must be of int32 or int64",
                               targets.identify()));
  }
  const Shape& shape = logits.shape();
  if (shape.empty() ||
      !std::equal(targets.shape().begin(), targets.shape().end(), shape.begin(), shape.end() - 1)) {
    throw InvalidArgument(
        format("Incompatible dimensions: logits is a {}, targets a {}; targets "
               "must have the shape of logits without its last axis",
               logits.identify(), targets.identify()));
  }
  if (shape.back() > 2147483647 ||
      logits.size() / std::max<std::int64_t>(1, shape.back()) > 2147483647) {
    throw InvalidArgument(
        format("cross_entropy: {} has more than 2147483647 rows or classes", logits.identify()));
  }
  if (!(options.label_smoothing >= 0 && options.label_smoothing <= 1)) {
    throw InvalidArgument(format("cross_entropy: label_smoothing is {}, and must be from 0 to 1",
                                 options.label_smoothing));
  }
  if (!options.weights) return;
  require_one_device(logits, "logits", *options.weights, "weight");
  require_floating(*options.weights, "cross_entropy", "weight");
  if (options.weights->shape() != Shape{shape.back()}) {
    throw InvalidArgument(
        format("Incompatible dimensions: weight is a {}, logits a {}; there is a weight for each "
               "class",
               options.weights->identify(), logits.identify()));
  }
}

/// The target of the gradient: the logits themselves, or a separate array.
Array gradient_array(const Array& logits, const RowView& rows, const CrossEntropyOptions& options,
                     const Stream& on) {
  if (!options.in_place) return Array::empty(logits.device(), logits.shape(), logits.type(), on);
  if (rows.array.address() != logits.address() && logits.size() > 0) {
    throw InvalidArgument(
        format("cross_entropy: a gradient over logits needs rows without gaps, "
               "equally spaced; {} has others: pass logits.copy()",
               logits.identify()));
  }
  if (logits.read_only()) {
    throw InvalidArgument(
        format("cross_entropy: the gradient cannot be written over {}: it is "
               "read-only",
               logits.identify()));
  }
  return logits;
}

/// `upstream` in the type of the losses; of one element, or of one for each row.
std::optional<Array> check_upstream(const std::optional<Array>& upstream, const Array& value,
                                    ScalarType real, const Stream& on) {
  if (!upstream) return std::nullopt;
  if (upstream->shape() != value.shape() || &upstream->device() != &value.device()) {
    throw InvalidArgument(
        format("Incompatible dimensions: the gradient of the loss is a {}, the "
               "loss a {}",
               upstream->identify(), value.identify()));
  }
  return upstream->type() == real ? contiguous(*upstream, on) : cast(*upstream, real, on);
}

/// Weights of classes in the type of the losses, and their sum where smoothing takes it.
struct ClassWeights {
  std::optional<Array> each, sum;
};
ClassWeights class_weights(const CrossEntropyOptions& options, ScalarType real, const Stream& on) {
  ClassWeights made;
  if (!options.weights) return made;
  const Array& given = *options.weights;
  made.each = given.type() == real ? contiguous(given, on) : cast(given, real, on);
  if (options.label_smoothing != 0)
    made.sum = total(entropy_family(), *made.each, 1, std::nullopt, on);
  return made;
}

/// One over what LossReduction::mean divides by, into `scale`.
void launch_scale(const Array& ids, const std::optional<Array>& weights, std::int64_t cols,
                  std::int64_t ignored, const Array& scale, const Stream& on) {
  const Kernel& kernel =
      scale_kernel(ids.type(), scale.type(), weights.has_value()).on(ids.device());
  const LaunchConfig config{.grid = {1}, .block = {1024}, .stream = on};
  if (weights) {
    launch(kernel, config, ids.address(), ids.size(), ignored, scale.address(), weights->address(),
           static_cast<std::int32_t>(cols));
  } else {
    launch(kernel, config, ids.address(), ids.size(), ignored, scale.address());
  }
}

/// How losses and gradients of all rows are computed.
struct EntropyLaunch {
  const Kernel& kernel;
  LaunchConfig config;
  LogitsPlan plan;
  std::int64_t out_stride;  ///< of the gradient's rows
};

/// `out` has the gradient, or is `logits` where none is wanted.
EntropyLaunch entropy_launch(const Array& logits, const Array& ids, const RowView& x,
                             const Array& out, const CrossEntropyOptions& options,
                             const Stream& on) {
  Device& device = logits.device();
  const std::int64_t rows = ids.size();
  const std::int64_t out_stride = options.in_place || !options.gradient ? x.stride : x.cols;
  const auto bytes = [&](std::int64_t elements) {
    return static_cast<std::uint64_t>(elements) * scalar_size(logits.type());
  };
  // Rows may begin anywhere, as long as those of the gradient begin alike.
  const std::uint64_t apart = rows > 1 ? bytes(x.stride - out_stride) : 0;
  const int width =
      pack_width(logits.type(), {options.gradient ? x.array.address() - out.address() : 0, apart});
  const std::uint64_t askew = x.array.address() | bytes(x.cols) | (rows > 1 ? bytes(x.stride) : 0);
  std::optional<LogitsPlan> streamed;
  if (options.gradient && pack_width(logits.type(), {out.address(), apart, askew}) == width &&
      bytes(width) == kPackBytes) {
    streamed = plan_streamed(device, rows, x.cols / width, logits.type());
  }
  const LogitsPlan plan =
      streamed ? *streamed : plan_logits(device, x.cols, width, logits.type(), options.gradient);
  const LaunchConfig config{
      .grid = {plan.is_streamed() ? static_cast<std::uint32_t>(plan.blocks)
                                  : static_cast<std::uint32_t>(rows)},
      .block = {static_cast<std::uint32_t>(plan.threads)},
      .shared_bytes = static_cast<std::uint32_t>(plan.shared_packs * kPackBytes),
      .stream = on};
  const Kernel& kernel = entropy_kernel(logits.type(), ids.type(), width, plan, options).on(device);
  return {kernel, config, plan, out_stride};
}

}  // namespace

Loss cross_entropy(const Array& logits, const Array& targets, const CrossEntropyOptions& options,
                   const std::optional<Array>& upstream, const Stream& stream) {
  check_entropy(logits, targets, options);
  Device& device = logits.device();
  const Stream on = stream ? stream : Stream::legacy(device);
  const bool none = options.reduction == LossReduction::none;
  const auto real =
      logits.type() == ScalarType::float64 ? ScalarType::float64 : ScalarType::float32;
  const RowView x = row_view(logits, on);
  const std::int64_t rows = targets.size();
  const Array ids = contiguous(targets, on);
  const Array losses = Array::empty(device, targets.shape(), real, on);
  Loss made{none ? losses : Array::empty(device, {}, real, on), std::nullopt};
  if (options.gradient) made.gradient = gradient_array(logits, x, options, on);
  const std::optional<Array> above = check_upstream(upstream, made.value, real, on);
  const ClassWeights weights = class_weights(options, real, on);
  std::optional<Array> scale;
  if (options.reduction == LossReduction::mean) {
    scale = Array::empty(device, {}, real, on);
    scale->use_on(on);
  }
  const auto find_scale = [&] {
    if (scale) launch_scale(ids, weights.each, x.cols, options.ignore_index, *scale, on);
  };
  if (rows == 0) find_scale();
  if (rows > 0) {
    const Array& out = made.gradient ? *made.gradient : logits;
    const EntropyLaunch how = entropy_launch(logits, ids, x, out, options, on);
    find_scale();
    dispatch_compute(logits.type(), [&](auto zero) {
      using Real = decltype(zero);
      const LossTerms<Real> terms{static_cast<Real>(options.label_smoothing),
                                  static_cast<Real>(options.z_loss),
                                  scale ? scale->address() : 0,
                                  above ? above->address() : 0,
                                  none ? 1 : 0,
                                  options.ignore_index,
                                  weights.each ? weights.each->address() : 0,
                                  weights.sum ? weights.sum->address() : 0};
      const auto run = [&](const auto&... rest) {
        launch(how.kernel, how.config, x.array.address(), x.stride, out.address(), how.out_stride,
               ids.address(), losses.address(), rest..., terms);
      };
      const auto cols = static_cast<std::int32_t>(x.cols);
      if (how.plan.is_streamed()) {
        run(rows, cols);
      } else {
        run(cols, static_cast<std::int32_t>(how.plan.shared_packs));
      }
    });
    if (made.gradient) made.gradient->use_on(on);
  }
  if (!none) made.value = total(entropy_family(), losses, 1, scale, on);
  for (const Array* each : {&x.array, &ids, &losses}) each->use_on(on);
  for (const std::optional<Array>* each : {&above, &weights.each, &weights.sum})
    if (*each) (*each)->use_on(on);
  return made;
}

}  // namespace kernwright::kernels
