// The parameters of direct.cu.
#include "kernels_src/conv/direct.h"

#include "kernels_src/conv/direct.cu.h"
#include "kernels_src/family.h"
#include "kernels_src/operands.h"
#include "kernels_src/spatial/spatial.h"

namespace kernwright::kernels {
namespace {

// The argument of the kernels, laid out as direct.cu declares it.
struct DirectValues {
  std::int64_t x_n, x_c, x_y, x_x;
  std::int64_t weight_out, weight_in, weight_y, weight_x;
  std::array<std::int32_t, 2> in, out, taps, stride, padding, dilation;
  std::int32_t batch, channels, outputs, groups;
};

enum class DirectKernel : std::uint8_t { convolve, convolve_transposed, weight_gradient };

const LazyKernel& direct_kernel(DirectKernel kernel, ScalarType type, bool wide = false) {
  static const auto& family = *new Family("direct.cu", text::direct_cu);
  return family.instance(InstanceKey().add(kernel, 2).type(type).add(wide, 1), [&] {
    if (kernel == DirectKernel::weight_gradient)
      return "weight_gradient<" + std::string(device_type(type)) + ">";
    const char* name = kernel == DirectKernel::convolve ? "convolve<" : "convolve_transposed<";
    return std::string(name) + device_type(type) + ", " + index_type(wide) + ">";
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
          .in = geometry.in,
          .out = geometry.out,
          .taps = geometry.kernel,
          .stride = geometry.stride,
          .padding = geometry.padding,
          .dilation = geometry.dilation,
          .batch = static_cast<std::int32_t>(sizes.batch),
          .channels = sizes.channels,
          .outputs = sizes.outputs,
          .groups = geometry.groups};
}

}  // namespace

Array convolve_directly(const Array& x, const Array& weight, const std::optional<Array>& bias,
                        const ConvGeometry& geometry, const ConvSizes& sizes, const Stream& on) {
  const std::int64_t channels = std::int64_t{geometry.groups} * sizes.outputs;
  Array made = Array::empty(x.device(), {sizes.batch, channels, geometry.out[0], geometry.out[1]},
                            x.type(), on);
  const SpatialLaunch launched(made, x, on);
  const auto kind = sizes.transposed ? DirectKernel::convolve_transposed : DirectKernel::convolve;
  const DirectValues values = direct_values(geometry, sizes, x, weight, sizes.transposed);
  const CUdeviceptr added = bias ? bias->address() : 0;
  launched.run(direct_kernel(kind, x.type(), launched.wide()),
               [&](const Kernel& kernel, const LaunchConfig& config, auto count) {
                 launch(kernel, config, made.address(), x.address(), weight.address(), added, count,
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
  LaunchConfig config;
  config.grid = {static_cast<std::uint32_t>(made.size())};
  config.block = {256};
  config.stream = on;
  launch(direct_kernel(DirectKernel::weight_gradient, x.type()).on(x.device()), config,
         made.address(), x.address(), dy.address(), direct_values(geometry, sizes, x, dy, false));
  x.use_on(on);
  dy.use_on(on);
  made.use_on(on);
  return made;
}

}  // namespace kernwright::kernels
