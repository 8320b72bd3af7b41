// The parameters of windows.cu.
#include "kernels_src/conv/windows.h"

#include "base/format.h"
#include "base/math.h"
#include "core/device.h"
#include "kernels_src/conv/windows.cu.h"
#include "kernels_src/family.h"

#include <array>
#include <memory>
#include <utility>

namespace kernwright::kernels {
namespace {

// The argument of the kernels, laid out as windows.cu declares it.
struct WindowValues {
  std::int64_t stride_n, stride_c, stride_y, stride_x;
  std::int64_t positions, all_positions;
  std::int32_t channels, padded_channels;
  bool has_ones;
  std::int32_t in_y, in_x, taps_y;
  std::int32_t first_y, step_y, dilation_y, count_y;
  std::int32_t first_x, phase_step, step_x, phases, slab;
};
struct WeightAxisValues {
  std::int32_t taps, size, shuffle, step, dilation;
  bool transposed;
};
struct WeightValues {
  std::int64_t stride_group, stride_out, stride_in, stride_y, stride_x;
  std::int32_t outputs, channels, padded_channels, tile_shift;
  WeightAxisValues y, x;
};
struct RowAxisValues {
  std::int32_t out, shuffle, offset;
};
struct RowValues {
  std::int64_t all;
  std::int32_t channels, batch;
  std::int32_t phases, period, count_y, columns;
  RowAxisValues y, x;
};

constexpr std::int64_t kThreads = 256, kTile = 4096, kChannels = 16;

enum class WindowKernel : std::uint8_t { unfold_few, unfold, lay_weights, fold, spread };

const LazyKernel& window_kernel(WindowKernel kernel, ScalarType type) {
  static const auto& family = *new Family("windows.cu", text::windows_cu);
  return family.instance(InstanceKey().add(kernel, 3).type(type), [&] {
    constexpr std::array names = {"unfold", "unfold", "lay_weights", "fold", "spread"};
    constexpr std::array options = {", 8", ", 64", "", "", ""};
    const auto at = static_cast<std::size_t>(kernel);
    return format("{}<{}{}>", names[at], device_type(type), options[at]);
  });
}

LaunchConfig grid_config(const Device& device, std::int64_t x, std::int64_t y, std::int64_t z,
                         const Stream& on) {
  LaunchConfig config;
  config.grid = {static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(y),
                 static_cast<std::uint32_t>(z)};
  config.block = {static_cast<std::uint32_t>(kThreads)};
  config.stream = on;
  config.programmatic_dependent = overlaps_launches(device);
  return config;
}

std::array<std::int64_t, 4> element_strides(const Array& array) {
  const auto bytes = static_cast<std::int64_t>(scalar_size(array.type()));
  std::array<std::int64_t, 4> strides{};
  for (std::size_t i = 0; i < 4; ++i) strides[i] = array.strides()[i] / bytes;
  return strides;
}

RowValues row_values(const ConvCall& call) {
  const ConvPlan& plan = call.plan;
  const std::array<std::int32_t, 2>& out = call.geometry.out;
  return {.all = plan.all_rows,
          .channels = call.sizes.outputs * call.geometry.groups,
          .batch = static_cast<std::int32_t>(call.sizes.batch),
          .phases = plan.phases,
          .period = plan.period,
          .count_y = plan.y.count,
          .columns = plan.columns,
          .y = {out[0], plan.y.shuffle, plan.y.offset},
          .x = {out[1], plan.x.shuffle, plan.x.offset}};
}

}  // namespace

ConvCall::Lines ConvCall::unfold(const Array& x, bool has_ones) const {
  const std::array<std::int64_t, 4> strides = element_strides(x);
  const auto groups = std::int64_t{geometry.groups};
  const std::int64_t group_elements = plan.all_positions * plan.y.taps * plan.padded_channels;
  const Array memory = Array::empty(x.device(), {groups, group_elements}, x.type(), on);
  const WindowValues values = {.stride_n = strides[0],
                               .stride_c = strides[1],
                               .stride_y = strides[2],
                               .stride_x = strides[3],
                               .positions = plan.positions,
                               .all_positions = plan.all_positions,
                               .channels = sizes.channels,
                               .padded_channels = plan.padded_channels,
                               .has_ones = has_ones,
                               .in_y = geometry.in[0],
                               .in_x = geometry.in[1],
                               .taps_y = plan.y.taps,
                               .first_y = plan.y.first,
                               .step_y = plan.y.stride,
                               .dilation_y = plan.y.dilation,
                               .count_y = plan.y.count,
                               .first_x = plan.x.first,
                               .phase_step = plan.step * plan.row_step,
                               .step_x = plan.step * plan.period,
                               .phases = plan.phases,
                               .slab = plan.columns * plan.row_step};
  const bool few = plan.padded_channels <= 16;
  const std::int64_t channels = few ? 8 : 64;
  const LaunchConfig config =
      grid_config(x.device(), ceil_div(plan.all_positions, kTile / channels),
                  ceil_div(plan.padded_channels, channels), groups * plan.y.taps, on);
  const LazyKernel& lazy =
      window_kernel(few ? WindowKernel::unfold_few : WindowKernel::unfold, x.type());
  launch(lazy.on(x.device()), config, memory.address(), x.address(), values);
  x.use_on(on);
  memory.use_on(on);
  const auto bytes = static_cast<std::int64_t>(scalar_size(x.type()));
  Shape shape = {groups, plan.all_rows, plan.inner};
  Shape steps = {group_elements * bytes, plan.row_elements * bytes, bytes};
  if (plan.parted) {
    shape.insert(shape.begin(), sizes.batch);
    steps.insert(steps.begin(), plan.columns * plan.row_elements * bytes);
  }
  return {memory, Array::adopt(x.device(), memory.address(), std::move(shape), std::move(steps),
                               x.type(), std::make_shared<Array>(memory))};
}

Array ConvCall::lay_weights(const Array& weight, const WeightStrides& strides,
                            const std::optional<Array>& bias) const {
  Array made = Array::empty(weight.device(), {geometry.groups, plan.products, plan.inner},
                            weight.type(), on);
  const auto axis = [&](const ConvAxis& planned, std::size_t at) -> WeightAxisValues {
    return {planned.taps,     geometry.kernel[at],   planned.shuffle,
            planned.dilation, geometry.dilation[at], sizes.transposed};
  };
  const std::int32_t lines = plan.x.taps * plan.y.taps * plan.x.shuffle * plan.y.shuffle;
  const std::int32_t tile_shift = lines <= 8 ? 8 : 6;
  const WeightValues values = {.stride_group = strides.group,
                               .stride_out = strides.output,
                               .stride_in = strides.channel,
                               .stride_y = strides.y,
                               .stride_x = strides.x,
                               .outputs = sizes.outputs,
                               .channels = sizes.channels,
                               .padded_channels = plan.padded_channels,
                               .tile_shift = tile_shift,
                               .y = axis(plan.y, 0),
                               .x = axis(plan.x, 1)};
  const CUdeviceptr added = bias ? bias->address() : 0;
  const std::int64_t blocks = std::int64_t{geometry.groups} * sizes.outputs;
  launch(
      window_kernel(WindowKernel::lay_weights, weight.type()).on(weight.device()),
      grid_config(weight.device(), blocks, ceil_div(plan.padded_channels, 1 << tile_shift), 1, on),
      made.address(), weight.address(), added, values);
  weight.use_on(on);
  made.use_on(on);
  if (bias) bias->use_on(on);
  return made;
}

Array ConvCall::fold(const Array& product, const std::optional<Array>& bias) const {
  const std::array<std::int32_t, 2>& out = geometry.out;
  const RowValues values = row_values(*this);
  Array made = Array::empty(product.device(), {sizes.batch, values.channels, out[0], out[1]},
                            product.type(), on);
  const CUdeviceptr added = bias ? bias->address() : 0;
  const LaunchConfig config =
      grid_config(product.device(), ceil_div(made.size() / values.channels, kThreads),
                  ceil_div(values.channels, kChannels), 1, on);
  launch(window_kernel(WindowKernel::fold, product.type()).on(product.device()), config,
         made.address(), product.address(), added, values);
  product.use_on(on);
  made.use_on(on);
  if (bias) bias->use_on(on);
  return made;
}

Array ConvCall::spread(const Array& dy) const {
  const std::array<std::int64_t, 4> strides = element_strides(dy);
  Array made =
      Array::empty(dy.device(), {geometry.groups, sizes.outputs, plan.all_rows}, dy.type(), on);
  const RowValues values = row_values(*this);
  const LaunchConfig config = grid_config(dy.device(), ceil_div(plan.all_rows, kThreads),
                                          ceil_div(values.channels, kChannels), 1, on);
  launch(window_kernel(WindowKernel::spread, dy.type()).on(dy.device()), config, made.address(),
         dy.address(), strides[0], strides[1], strides[2], strides[3], values);
  dy.use_on(on);
  made.use_on(on);
  return made;
}

}  // namespace kernwright::kernels
