// The parameters of direct.cu.
#include "kernels_src/conv/direct.h"

#include <algorithm>
#include <array>

#include "base/format.h"
#include "base/math.h"
#include "core/device.h"
#include "kernels_src/conv/direct.cu.h"
#include "kernels_src/family.h"
#include "kernels_src/operands.h"
#include "kernels_src/spatial/spatial.h"

namespace kernwright::kernels {
namespace {

// The argument of the kernels, laid out as direct.cu declares it.
struct DirectValues {
  std::int64_t x_n, x_c, x_y, x_x;
  std::int64_t weight_out, weight_in, weight_y, weight_x, weight_group;
  std::array<std::int32_t, 2> in, out, taps, stride, padding, dilation;
  std::int32_t batch, channels, outputs, groups, block_taps;
};

enum class DirectKernel : std::uint8_t {
  convolve,
  convolve_rows,
  convolve_transposed,
  weight_gradient
};

const LazyKernel& direct_kernel(DirectKernel kernel, ScalarType type, bool wide = false) {
  static const auto& family = *new Family("direct.cu", text::direct_cu);
  return family.instance(InstanceKey().add(kernel, 3).type(type).add(wide, 1), [&] {
    constexpr std::array names = {"convolve", "convolve_rows", "convolve_transposed",
                                  "weight_gradient"};
    const char* const name = names[static_cast<std::size_t>(kernel)];
    if (kernel == DirectKernel::weight_gradient) return format("{}<{}>", name, device_type(type));
    return format("{}<{}, {}>", name, device_type(type), index_type(wide));
  });
}

DirectValues direct_values(const ConvGeometry& geometry, const ConvSizes& sizes, const Array& x,
                           const Array& other, bool swapped) {
  const auto bytes = static_cast<std::int64_t>(scalar_size(x.type()));
  const auto x_stride = [&](std::size_t axis) { return x.strides()[axis] / bytes; };
  const auto other_stride = [&](std::size_t axis) { return other.strides()[axis] / bytes; };
  return {.x_n = x_stride(0),
          .x_c = x_stride(1),
          .x_y = x_stride(2),
          .x_x = x_stride(3),
          .weight_out = other_stride(swapped ? 1 : 0),
          .weight_in = other_stride(swapped ? 0 : 1),
          .weight_y = other_stride(2),
          .weight_x = other_stride(3),
          .weight_group = other_stride(0) * (swapped ? sizes.channels : sizes.outputs),
          .in = geometry.in,
          .out = geometry.out,
          .taps = geometry.kernel,
          .stride = geometry.stride,
          .padding = geometry.padding,
          .dilation = geometry.dilation,
          .batch = static_cast<std::int32_t>(sizes.batch),
          .channels = sizes.channels,
          .outputs = sizes.outputs,
          .groups = geometry.groups,
          .block_taps = 1};
}

Array reverse_taps(const Array& weight) {
  const std::int64_t y = weight.shape()[2], x = weight.shape()[3];
  return weight.slice(2, y - 1, y, -1).slice(3, x - 1, x, -1);
}

/// Weights along x that a block of weight_gradient() takes: fewer of them where a device would have
/// too few blocks.
std::int32_t block_taps(const Device& device, std::int64_t lines, std::int32_t taps) {
  constexpr std::int32_t kBlockTaps = 16, kBlocksEach = 3;  // blocks on each multiprocessor
  const std::int64_t wanted =
      std::int64_t{kBlocksEach} * device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  std::int32_t each = std::min(taps, kBlockTaps);
  while (each > 1 && lines * ceil_div(taps, each) < wanted) each = ceil_div(each, 2);
  return each;
}

}  // namespace

Array convolve_directly(const Array& x, const Array& weight, const std::optional<Array>& bias,
                        const ConvGeometry& geometry, const ConvSizes& sizes, const Stream& on) {
  constexpr std::int32_t kLongRow = 96, kPart = 128;  // a part: outputs of a warp
  const std::int64_t channels = std::int64_t{geometry.groups} * sizes.outputs;
  Array made = Array::empty(x.device(), {sizes.batch, channels, geometry.out[0], geometry.out[1]},
                            x.type(), on);
  // Without a stride a transposed convolution is one by the taps in reversed order.
  const bool is_reversed = sizes.transposed && geometry.stride == std::array{1, 1};
  const Array taps = is_reversed ? reverse_taps(weight) : weight;
  DirectValues values = direct_values(geometry, sizes, x, taps, sizes.transposed);
  for (std::size_t axis = 0; is_reversed && axis < 2; ++axis)
    values.padding[axis] =
        geometry.dilation[axis] * (geometry.kernel[axis] - 1) - geometry.padding[axis];
  const bool gathers = sizes.transposed && !is_reversed;
  const bool has_rows = !gathers && geometry.out[1] >= kLongRow;
  const auto kind = gathers    ? DirectKernel::convolve_transposed
                    : has_rows ? DirectKernel::convolve_rows
                               : DirectKernel::convolve;
  const std::int64_t rows = sizes.batch * channels * geometry.out[0];
  const std::int64_t threads =
      has_rows ? rows * ceil_div(geometry.out[1], kPart) * 32 : made.size();
  const CUdeviceptr added = bias ? bias->address() : 0;
  const SpatialLaunch launched(made, x, on);
  launched.run(direct_kernel(kind, x.type(), launched.wide()), threads,
               [&](const Kernel& kernel, const LaunchConfig& config, auto count) {
                 if (has_rows) count /= 32;
                 launch(kernel, config, made.address(), x.address(), taps.address(), added, count,
                        values);
               });
  weight.use_on(on);
  if (bias) bias->use_on(on);
  return made;
}

Array weight_gradient_directly(const Array& x, const Array& dy, const ConvGeometry& geometry,
                               const ConvSizes& sizes, const Stream& on) {
  const std::int64_t outputs = std::int64_t{geometry.groups} * sizes.outputs;
  Array made = Array::empty(
      x.device(), {outputs, sizes.channels, geometry.kernel[0], geometry.kernel[1]}, x.type(), on);
  DirectValues values = direct_values(geometry, sizes, x, dy, false);
  const std::int32_t taps = geometry.kernel[1];
  const std::int64_t lines = made.size() / taps;
  values.block_taps = block_taps(x.device(), lines, taps);
  LaunchConfig config;
  config.grid = {static_cast<std::uint32_t>(lines * ceil_div(taps, values.block_taps))};
  config.block = {256};
  config.stream = on;
  launch(direct_kernel(DirectKernel::weight_gradient, x.type()).on(x.device()), config,
         made.address(), x.address(), dy.address(), values);
  x.use_on(on);
  dy.use_on(on);
  made.use_on(on);
  return made;
}

}  // namespace kernwright::kernels
