// Sums of losses in two steps: one partial sum for each block, then their total.
#include "base/errors.h"
#include "base/format.h"
#include "base/math.h"
#include "kernels_src/cast/cast.h"
#include "kernels_src/family.h"
#include "kernels_src/loss/loss.h"
#include "kernels_src/loss/pointwise_loss.cu.h"
#include "kernels_src/operands.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace kernwright::kernels {
namespace {

constexpr std::int64_t kLossThreads = 256, kMostLossBlocks = 2048;

constexpr std::array<std::string_view, 4> kPointwiseNames = {"squared", "absolute", "huber",
                                                             "binary_cross_entropy"};
constexpr std::array<const char*, 4> kPointwiseTypes = {"SquaredError", "AbsoluteError", "Huber",
                                                        "BinaryCrossEntropy"};

const Family& pointwise_family() {
  static const auto& made = *new Family("pointwise_loss.cu", text::pointwise_loss_cu);
  return made;
}

const LazyKernel& pointwise_kernel(const PointwiseOptions& options, ScalarType type, int width,
                                   bool each, bool sum, bool wide) {
  const auto key = InstanceKey()
                       .add(options.kind, 3)
                       .type(type)
                       .add(width, 5)
                       .add(each, 1)
                       .add(sum, 1)
                       .add(options.gradient, 1)
                       .add(wide, 1);
  return pointwise_family().instance(key, [&] {
    std::vector names{format("pointwise_loss<{}, {}, {}, {}, {}, {}, {}>",
                             kPointwiseTypes[static_cast<std::size_t>(options.kind)],
                             device_type(type), width, each, sum, options.gradient,
                             index_type(wide))};
    if (sum) names.push_back(total_name(type == ScalarType::float64 ? type : ScalarType::float32));
    return names;
  });
}

void check_pointwise(const Array& x, const Array& target, const PointwiseOptions& options,
                     const Array& value, const std::optional<Array>& upstream) {
  require_alike(x, "x", target, "target");
  if (options.kind == PointwiseLoss::huber && !(options.knob > 0)) {
    throw InvalidArgument(format("huber_loss: delta is {}, and must be above 0", options.knob));
  }
  if (!upstream || (upstream->shape() == value.shape() && &upstream->device() == &x.device()))
    return;
  throw InvalidArgument(
      format("Incompatible dimensions: the gradient of the loss is a {}, the "
             "loss a {}",
             upstream->identify(), value.identify()));
}

}  // namespace

LossReduction loss_reduction_from_name(std::string_view name) {
  if (name == "none") return LossReduction::none;
  if (name == "mean") return LossReduction::mean;
  if (name == "sum") return LossReduction::sum;
  throw ArgumentError(format("reduction is \"{}\", and must be none, mean or sum", name));
}

PointwiseLoss pointwise_loss_from_name(std::string_view name) {
  const auto found = std::find(kPointwiseNames.begin(), kPointwiseNames.end(), name);
  if (found == kPointwiseNames.end()) throw ArgumentError(format("\"{}\" is no loss", name));
  return static_cast<PointwiseLoss>(found - kPointwiseNames.begin());
}

std::string total_name(ScalarType type) { return format("total<{}>", device_type(type)); }

Array total(const Family& family, const Array& values, double factor,
            const std::optional<Array>& scale, const Stream& stream) {
  // Other instances of these families have smaller numbers.
  const auto key = InstanceKey().add(std::uint64_t{1} << 58, 59).type(values.type());
  Array result = Array::empty(values.device(), {}, values.type(), stream);
  const auto name = [&] { return total_name(values.type()); };
  const Kernel& kernel = family.instance(key, name).on(values.device());
  dispatch_compute(values.type(), [&](auto zero) {
    launch(kernel, {.grid = {1}, .block = {1024}, .stream = stream}, values.address(),
           values.size(), scale ? scale->address() : CUdeviceptr{0},
           static_cast<decltype(zero)>(factor), result.address());
  });
  values.use_on(stream);
  if (scale) scale->use_on(stream);
  result.use_on(stream);
  return result;
}

Loss pointwise_loss(const Array& x, const Array& target, const PointwiseOptions& options,
                    const std::optional<Array>& upstream, const Stream& stream) {
  require_floating(x, "loss", "x");
  Device& device = x.device();
  const Stream on = stream ? stream : Stream::legacy(device);
  const auto real = x.type() == ScalarType::float64 ? ScalarType::float64 : ScalarType::float32;
  const bool none = options.reduction == LossReduction::none;
  const bool each = none && options.value, sum = !none && options.value;
  Loss made{
      none ? Array::empty(device, x.shape(), x.type(), on) : Array::empty(device, {}, real, on),
      std::nullopt};
  check_pointwise(x, target, options, made.value, upstream);
  const ScalarType above_type = none ? x.type() : real;
  std::optional<Array> above;
  if (upstream)
    above = upstream->type() == above_type ? contiguous(*upstream, on)
                                           : cast(*upstream, above_type, on);
  if (options.gradient) made.gradient = Array::empty(device, x.shape(), x.type(), on);
  const Array from = contiguous(x, on), wanted = contiguous(target, on);
  const bool mean = options.reduction == LossReduction::mean;
  const double scale = mean ? 1.0 / static_cast<double>(x.size()) : 1.0;
  const CUdeviceptr dx = made.gradient ? made.gradient->address() : 0;
  const CUdeviceptr above_all = above && !none ? above->address() : 0;
  const CUdeviceptr above_each = above && none ? above->address() : 0;
  const int width = pack_width(x.type(), {from.address(), wanted.address(), dx, above_each,
                                          each ? made.value.address() : 0});
  const std::int64_t packs = (x.size() + width - 1) / width;
  const auto blocks = std::min(ceil_div(packs, kLossThreads), kMostLossBlocks);
  const Array partial = Array::empty(device, {sum ? blocks : 0}, real, on);
  if (blocks > 0) {
    const bool wide = x.size() > (std::int64_t{1} << 30);
    const Kernel& kernel = pointwise_kernel(options, x.type(), width, each, sum, wide).on(device);
    const LaunchConfig config{.grid = {static_cast<std::uint32_t>(blocks)},
                              .block = {static_cast<std::uint32_t>(kLossThreads)},
                              .stream = on};
    dispatch_index(wide, [&](auto index) {
      dispatch_compute(x.type(), [&](auto zero) {
        using Real = decltype(zero);
        launch(kernel, config, from.address(), wanted.address(), made.value.address(),
               partial.address(), dx, above_all, above_each, static_cast<Real>(scale),
               static_cast<Real>(options.knob), static_cast<decltype(index)>(x.size()));
      });
    });
  }
  if (sum) made.value = total(pointwise_family(), partial, scale, std::nullopt, on);
  for (const Array* used : {&from, &wanted, &partial}) used->use_on(on);
  if (each) made.value.use_on(on);
  if (above) above->use_on(on);
  if (made.gradient) made.gradient->use_on(on);
  return made;
}

}  // namespace kernwright::kernels
