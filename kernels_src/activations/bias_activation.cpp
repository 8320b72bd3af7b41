// Bias and activation in one pass; the gradient of the bias in two steps of a fixed order.
#include "base/errors.h"
#include "base/format.h"
#include "base/math.h"
#include "kernels_src/activations/activations.h"
#include "kernels_src/activations/bias_activation.cu.h"
#include "kernels_src/family.h"
#include "kernels_src/operands.h"

#include <algorithm>
#include <string>
#include <vector>

namespace kernwright::kernels {
namespace {

constexpr std::int64_t kBiasLanes = 32, kBiasThreads = 256;  // as in bias_activation.cu
constexpr std::int64_t kLeastBiasRows = 64;                  ///< that a block of the backward walks
constexpr std::int64_t kBiasBlocks = 1024;                   ///< that the backward aims at

const Family& bias_family() {
  static const auto& made = *new Family("bias_activation.cu", text::bias_activation_cu);
  return made;
}

const LazyKernel& bias_forward_kernel(Activation kind, ScalarType type, int width,
                                      const PackGrid& grid) {
  const auto key = InstanceKey()
                       .add(0, 2)
                       .add(kind, 5)
                       .type(type)
                       .add(width, 5)
                       .add(grid.packs_each, 3)
                       .add(grid.wide, 1);
  return bias_family().instance(key, [&] {
    return format("bias_activate<{}, {}, {}, {}, {}>", activation_type(kind, type),
                  device_type(type), width, grid.packs_each, index_type(grid.wide));
  });
}

std::string bias_sum_name(ScalarType type, bool wide) {
  return format("bias_gradient<{}, {}>", device_type(type), index_type(wide));
}

const LazyKernel& bias_backward_kernel(Activation kind, ScalarType type, int width, bool wide) {
  const auto key = InstanceKey().add(1, 2).add(kind, 5).type(type).add(width, 5).add(wide, 1);
  return bias_family().instance(key, [&] {
    return std::vector{format("bias_activate_backward<{}, {}, {}, {}>", activation_type(kind, type),
                              device_type(type), width, index_type(wide)),
                       bias_sum_name(type, wide)};
  });
}

const LazyKernel& bias_sum_kernel(ScalarType type, bool wide) {
  return bias_family().instance(InstanceKey().add(2, 2).type(type).add(wide, 1),
                                [&] { return bias_sum_name(type, wide); });
}

void check_bias(const Array& x, const Array& bias) {
  require_floating(x, "bias_activation", "x");
  require_one_device(x, "x", bias, "bias");
  const bool fits = x.ndim() > 0 && bias.ndim() == 1 && bias.shape()[0] == x.shape().back();
  if (fits && bias.type() == x.type()) return;
  throw InvalidArgument(
      format("Incompatible dimensions or dtypes: x is a {}, bias a {}; bias must "
             "have one element for each of the last axis of x, and its dtype",
             x.identify(), bias.identify()));
}

/// Elements of one access where every row begins at a multiple of it.
int bias_width(const Array& x, std::initializer_list<const Array*> all) {
  std::uint64_t bits = static_cast<std::uint64_t>(x.shape().back()) * scalar_size(x.type());
  if (x.size() == x.shape().back()) bits = 0;
  for (const Array* const each : all) bits |= each->address();
  return pack_width(x.type(), {bits});
}

std::uint32_t bias_blocks(std::int64_t count, std::int64_t each) {
  return static_cast<std::uint32_t>(ceil_div(count, each));
}

}  // namespace

Array bias_activate(const ActivationCall& call, const Array& x, const Array& bias,
                    const Stream& stream) {
  check_bias(x, bias);
  const Stream on = stream ? stream : Stream::legacy(x.device());
  Array result = Array::empty(x.device(), x.shape(), x.type(), on);
  if (x.size() == 0) return result;
  const Array from = contiguous(x, on), shift = contiguous(bias, on);
  const int width = bias_width(x, {&from, &shift, &result});
  const std::int64_t cols = x.shape().back(), rows = x.size() / cols;
  const std::int64_t row_packs = ceil_div(cols, width);
  PackGrid grid = pack_grid(rows * row_packs, width, on, LaunchChoice::activation_packs, 1);
  while (grid.packs_each > rows) grid.packs_each /= 2;
  const std::int64_t groups = ceil_div(rows, grid.packs_each);
  grid.config.grid = {bias_blocks(groups * row_packs, kBiasThreads)};
  const Kernel& kernel = bias_forward_kernel(call.kind, x.type(), width, grid).on(x.device());
  dispatch_index(grid.wide, [&](auto zero) {
    using Index = decltype(zero);
    dispatch_compute(x.type(), [&](auto real) {
      launch(kernel, grid.config, from.address(), shift.address(), result.address(),
             static_cast<Index>(rows), static_cast<Index>(cols), Knobs<decltype(real)>(call));
    });
  });
  for (const Array* each : {&from, &shift, static_cast<const Array*>(&result)}) each->use_on(on);
  return result;
}

BiasGradients bias_activate_backward(const ActivationCall& call, const Array& dy, const Array& x,
                                     const Array& bias, const Stream& stream) {
  check_bias(x, bias);
  require_alike(dy, "the gradient", x, "x");
  const Stream on = stream ? stream : Stream::legacy(x.device());
  Device& device = x.device();
  BiasGradients made{Array::empty(device, x.shape(), x.type(), on),
                     Array::empty(device, bias.shape(), x.type(), on)};
  const std::int64_t cols = x.shape().back(), rows = cols == 0 ? 0 : x.size() / cols;
  if (cols == 0) return made;
  const Array from = contiguous(x, on), shift = contiguous(bias, on), grad = contiguous(dy, on);
  const int width = bias_width(x, {&from, &shift, &grad, &made.x});
  const bool wide = x.size() > (std::int64_t{1} << 30);
  const std::int64_t tiles = bias_blocks(cols, kBiasLanes * width);
  const std::int64_t wanted = std::max<std::int64_t>(1, kBiasBlocks / tiles);
  const std::int64_t block_rows = std::max(kLeastBiasRows, ceil_div(rows, wanted));
  const std::uint32_t splits = bias_blocks(rows, block_rows);
  const ScalarType real_type =
      x.type() == ScalarType::float64 ? ScalarType::float64 : ScalarType::float32;
  const Array partial = Array::empty(device, {splits, cols}, real_type, on);
  dispatch_index(wide, [&](auto zero) {
    using Index = decltype(zero);
    const auto threads = static_cast<std::uint32_t>(kBiasThreads);
    if (splits > 0) {
      const LaunchConfig config{
          .grid = {static_cast<std::uint32_t>(tiles), splits}, .block = {threads}, .stream = on};
      dispatch_compute(x.type(), [&](auto real) {
        launch(bias_backward_kernel(call.kind, x.type(), width, wide).on(device), config,
               grad.address(), from.address(), shift.address(), made.x.address(), partial.address(),
               static_cast<Index>(rows), static_cast<Index>(cols), static_cast<Index>(block_rows),
               Knobs<decltype(real)>(call));
      });
    }
    launch(bias_sum_kernel(x.type(), wide).on(device),
           {.grid = {bias_blocks(cols, kBiasThreads)}, .block = {threads}, .stream = on},
           partial.address(), made.bias.address(), static_cast<Index>(splits),
           static_cast<Index>(cols));
  });
  for (const Array* each : {&from, &shift, &grad, &partial, static_cast<const Array*>(&made.x),
                            static_cast<const Array*>(&made.bias)}) {
    each->use_on(on);
  }
  return made;
}

}  // namespace kernwright::kernels
