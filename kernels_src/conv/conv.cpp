// Which way a convolution goes, and the product.
#include "kernels_src/conv/conv.h"

#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "kernels_src/conv/direct.h"
#include "kernels_src/conv/windows.h"
#include "kernels_src/elementwise/elementwise.h"
#include "kernels_src/operands.h"
#include "kernels_src/products/linear.h"
#include "kernels_src/products/product_planner.h"
#include "kernels_src/spatial/spatial.h"

#include <numeric>
#include <utility>
#include <vector>

namespace kernwright::kernels {
namespace {

[[noreturn]] void refuse_shapes(const char* what, const Array& a, const Array& b) {
  throw InvalidArgument(
      format("Incompatible dimensions for {}: {} and {}", what, a.identify(), b.identify()));
}

void require_operands(const Array& x, const Array& other, const char* name) {
  require_spatial_type(x, "a convolution");
  require_one_device(x, "x", other, name);
  if (x.type() != other.type())
    throw InvalidArgument(format("x and {} have one dtype, not {} and {}", name,
                                 scalar_name(x.type()), scalar_name(other.type())));
  if (x.ndim() != 4 || other.ndim() != 4) refuse_shapes("a convolution", x, other);
}

void require_geometry(const ConvGeometry& given, const Array& in, const Array& out_or_in) {
  for (std::size_t axis = 0; axis < 2; ++axis)
    if (given.kernel[axis] < 1 || given.stride[axis] < 1 || given.dilation[axis] < 1 ||
        given.out[axis] < 0 || given.in[axis] < 0 || in.shape()[axis + 2] != given.in[axis])
      refuse_shapes("a convolution of such a kernel, stride and dilation", in, out_or_in);
  if (given.groups < 1) throw InvalidArgument(format("groups is above 0, not {}", given.groups));
}

/// Sizes by the weights (outputs, channels of a group, kernel...), or the other way round.
ConvSizes conv_sizes(const Array& x, const Array& weight, const ConvGeometry& geometry,
                     bool transposed) {
  require_operands(x, weight, "weight");
  require_geometry(geometry, x, weight);
  const std::int64_t groups = geometry.groups, first = weight.shape()[0];
  const std::int64_t channels = transposed ? first / groups : weight.shape()[1];
  const std::int64_t outputs = transposed ? weight.shape()[1] : first / groups;
  const bool fits = first % groups == 0 && x.shape()[1] == channels * groups && channels > 0 &&
                    outputs > 0 && weight.shape()[2] == geometry.kernel[0] &&
                    weight.shape()[3] == geometry.kernel[1];
  if (!fits) refuse_shapes("a convolution", x, weight);
  return {.batch = x.shape()[0],
          .channels = static_cast<std::int32_t>(channels),
          .outputs = static_cast<std::int32_t>(outputs),
          .transposed = transposed};
}

std::optional<Array> ready_bias(const std::optional<Array>& bias, const Array& x,
                                std::int64_t outputs, const Stream& on) {
  if (!bias) return std::nullopt;
  require_one_device(x, "x", *bias, "bias");
  if (bias->shape() != Shape{outputs} || bias->type() != x.type())
    throw InvalidArgument(format("bias has shape ({},) and dtype {}, not {}", outputs,
                                 scalar_name(x.type()), bias->identify()));
  return contiguous(*bias, on);
}

/// Whether outputs are products of weights and x as it is.
bool is_pointwise(const ConvGeometry& geometry) {
  constexpr std::array<std::int32_t, 2> kOnes = {1, 1}, kZeros = {0, 0};
  return geometry.kernel == kOnes && geometry.stride == kOnes && geometry.padding == kZeros &&
         geometry.in == geometry.out;
}

/// Taps at the ends of an axis that meet padding alone, for every output: they add nothing.
struct IdleTaps {
  std::int32_t front = 0, kept = 1;
  IdleTaps(const ConvGeometry& geometry, std::size_t axis) : kept(geometry.kernel[axis]) {
    const std::int64_t first = -std::int64_t{geometry.padding[axis]};
    const std::int64_t last = first + std::int64_t{geometry.out[axis] - 1} * geometry.stride[axis];
    const std::int64_t apart = geometry.dilation[axis];
    for (; kept > 1 && last + front * apart < 0; --kept) ++front;
    while (kept > 1 && first + (front + kept - 1) * apart >= geometry.in[axis]) --kept;
  }
};

/// The same convolution without idle taps: one of a single element has one tap.
void drop_idle_taps(ConvGeometry& geometry, Array& weight) {
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const IdleTaps idle(geometry, axis);
    if (idle.kept == geometry.kernel[axis]) continue;
    weight = weight.slice(static_cast<int>(axis) + 2, idle.front, idle.kept, 1);
    geometry.kernel[axis] = idle.kept;
    geometry.padding[axis] -= idle.front * geometry.dilation[axis];
  }
}

/// Channels and positions as the last two dimensions: (n, groups, channels, positions).
Array as_planes(const Array& x, std::int64_t groups, std::int64_t channels, const Stream& on) {
  return contiguous(x, on).reshape({x.shape()[0], groups, channels, x.shape()[2] * x.shape()[3]});
}

Array multiply(const Array& a, const Array& b, bool tf32, const Stream& on) {
  return run_gemm({.a = a, .b = b, .tf32 = tf32 && a.type() == ScalarType::float32}, on);
}

Array add_bias(Array made, const std::optional<Array>& bias, const Stream& on) {
  if (!bias) return made;
  const Array added = bias->reshape({bias->size(), 1, 1});
  const std::array<Operand, 2> operands = {Operand{&made}, Operand{&added}};
  write_elementwise(made, Operation::add, operands, on);
  return made;
}

/// A view with the last two axes swapped.
Array turned(const Array& array) {
  std::vector<int> axes(static_cast<std::size_t>(array.ndim()));
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
  return array.transpose(axes);
}

/// Whether the convolution of one element by one tap is a layer: a product of matrices (n,
/// channels).
bool is_layer(const ConvGeometry& geometry, const ConvSizes& sizes) {
  return geometry.groups == 1 && geometry.in[0] * geometry.in[1] == 1 && sizes.channels > 1 &&
         is_pointwise(geometry);
}

/// (groups, outputs, channels) of weights with one tap.
Array point_weights(const Array& weight, const ConvGeometry& geometry, bool transposed,
                    const Stream& on) {
  const Array matrices =
      contiguous(weight, on)
          .reshape({geometry.groups, weight.shape()[0] / geometry.groups, weight.shape()[1]});
  return transposed ? turned(matrices) : matrices;
}

Array convolve_element(const Array& x, const Array& weights, const std::optional<Array>& bias,
                       const ConvSizes& sizes, bool tf32, const Stream& on) {
  return linear({.x = contiguous(x, on).reshape({sizes.batch, sizes.channels}),
                 .weights = contiguous(weights, on).reshape({sizes.outputs, sizes.channels}),
                 .epilogue = {.bias = bias},
                 .tf32 = tf32 && x.type() == ScalarType::float32},
                on)
      .reshape({sizes.batch, sizes.outputs, 1, 1});
}

/// `weights`: (groups, outputs, channels).
Array convolve_points(const Array& x, const Array& weights, const std::optional<Array>& bias,
                      const ConvGeometry& geometry, const ConvSizes& sizes, bool tf32,
                      const Stream& on) {
  const std::int64_t outputs = std::int64_t{geometry.groups} * sizes.outputs;
  const Array planes = as_planes(x, geometry.groups, sizes.channels, on);
  return add_bias(multiply(weights, planes, tf32, on)
                      .reshape({sizes.batch, outputs, geometry.out[0], geometry.out[1]}),
                  bias, on);
}

/// The bias of products for each image of 16-bit floats and tf32 belongs to a channel of ones: that
/// takes 8 more elements of a sum, where another kernel would read and write the result. Products
/// of float32 take longer for it.
ConvPlan make_plan(const Array& x, const ConvGeometry& geometry, const ConvSizes& sizes,
                   bool adds_ones) {
  const std::size_t element = scalar_size(x.type());
  const ConvPlan plan(geometry, sizes, element, 0, true);
  if (!plan.parted || !adds_ones) return plan;
  return {geometry, sizes, element, 1, true};
}

Array run(const Array& x, Array weight, const std::optional<Array>& given_bias,
          ConvGeometry geometry, bool transposed, bool tf32, const Stream& on) {
  const ConvSizes sizes = conv_sizes(x, weight, geometry, transposed);
  const std::int64_t outputs = std::int64_t{geometry.groups} * sizes.outputs;
  const std::optional<Array> bias = ready_bias(given_bias, x, outputs, on);
  if (sizes.batch == 0 || geometry.out[0] == 0 || geometry.out[1] == 0)
    return Array::empty(x.device(), {sizes.batch, outputs, geometry.out[0], geometry.out[1]},
                        x.type(), on);
  if (!transposed) drop_idle_taps(geometry, weight);
  if (is_layer(geometry, sizes))
    return convolve_element(x, point_weights(weight, geometry, transposed, on), bias, sizes, tf32,
                            on);
  if (is_direct(geometry, sizes)) return convolve_directly(x, weight, bias, geometry, sizes, on);
  if (is_pointwise(geometry))
    return convolve_points(x, point_weights(weight, geometry, transposed, on), bias, geometry,
                           sizes, tf32, on);
  const bool adds_ones = bias && (is_half(x.type()) || tf32);
  const ConvPlan plan = make_plan(x, geometry, sizes, adds_ones);
  const ConvCall call{geometry, sizes, plan, on};
  const auto bytes = static_cast<std::int64_t>(scalar_size(x.type()));
  const auto stride = [&](std::size_t axis) { return weight.strides()[axis] / bytes; };
  const std::int64_t group_elements = stride(0) * (weight.shape()[0] / geometry.groups);
  const WeightStrides strides = {.group = group_elements,
                                 .output = stride(transposed ? 1 : 0),
                                 .channel = stride(transposed ? 0 : 1),
                                 .y = stride(2),
                                 .x = stride(3)};
  const bool has_ones = adds_ones && plan.parted;
  const std::optional<Array> none;
  const ConvCall::Lines lines = call.unfold(x, has_ones);
  const Array weights = call.lay_weights(weight, strides, has_ones ? bias : none);
  const Array product = multiply(weights, turned(lines.windows), tf32, on);
  lines.memory.use_on(on);
  if (!plan.parted) return call.fold(product, bias);
  return add_bias(product.reshape({sizes.batch, outputs, geometry.out[0], geometry.out[1]}),
                  has_ones ? none : bias, on);
}

/// Few weights with long sums would leave a device idle that has a block for each.
bool is_direct_gradient(const ConvGeometry& geometry, const ConvSizes& sizes) {
  constexpr std::int64_t kManyWeights = 256, kShortSum = 1 << 16;
  const std::int64_t weights = std::int64_t{geometry.groups} * sizes.outputs * sizes.channels *
                               geometry.kernel[0] * geometry.kernel[1];
  const std::int64_t sum = sizes.batch * geometry.out[0] * geometry.out[1];
  return is_direct(geometry, sizes) && (weights >= kManyWeights || sum <= kShortSum);
}

}  // namespace

Array convolve(const Array& x, const Array& weight, const std::optional<Array>& bias,
               const ConvGeometry& geometry, bool tf32, const Stream& stream) {
  const Stream on = stream ? stream : Stream::legacy(x.device());
  return run(x, weight, bias, geometry, false, tf32, on);
}

Array convolve_transposed(const Array& x, const Array& weight, const std::optional<Array>& bias,
                          const ConvGeometry& geometry, bool tf32, const Stream& stream) {
  const Stream on = stream ? stream : Stream::legacy(x.device());
  return run(x, weight, bias, geometry, true, tf32, on);
}

Array convolve_weight_gradient(const Array& x, const Array& dy, const ConvGeometry& geometry,
                               bool tf32, const Stream& stream) {
  const Stream on = stream ? stream : Stream::legacy(x.device());
  require_operands(x, dy, "dy");
  require_geometry(geometry, x, dy);
  const std::int64_t groups = geometry.groups;
  const bool fits = x.shape()[0] == dy.shape()[0] && x.shape()[1] % groups == 0 &&
                    dy.shape()[1] % groups == 0 && dy.shape()[2] == geometry.out[0] &&
                    dy.shape()[3] == geometry.out[1];
  if (!fits) refuse_shapes("the gradient of a convolution's weights", x, dy);
  const ConvSizes sizes = {.batch = x.shape()[0],
                           .channels = static_cast<std::int32_t>(x.shape()[1] / groups),
                           .outputs = static_cast<std::int32_t>(dy.shape()[1] / groups)};
  const ConvPlan plan(geometry, sizes, scalar_size(x.type()));
  if (plan.rows == 0 || is_direct_gradient(geometry, sizes))
    return weight_gradient_directly(x, dy, geometry, sizes, on);
  const ConvCall call{geometry, sizes, plan, on};
  const ConvCall::Lines lines = call.unfold(x);
  const Array product = multiply(call.spread(dy), lines.windows, tf32, on);
  lines.memory.use_on(on);
  constexpr std::array<int, 5> kOrder = {0, 1, 4, 3, 2};
  return contiguous(product
                        .reshape({groups, sizes.outputs, geometry.kernel[1], geometry.kernel[0],
                                  plan.padded_channels})
                        .slice(4, 0, sizes.channels, 1)
                        .transpose(kOrder),
                    on)
      .reshape({groups * sizes.outputs, sizes.channels, geometry.kernel[0], geometry.kernel[1]});
}

}  // namespace kernwright::kernels
