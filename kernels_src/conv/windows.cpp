// The parameters of windows.cu.
#include "kernels_src/conv/windows.h"

#include "kernels_src/conv/windows.cu.h"
#include "kernels_src/family.h"
#include "kernels_src/operands.h"

#include <algorithm>
#include <memory>

namespace kernwright::kernels {
namespace {

// As in windows.cu.
struct WindowValues {
  std::int64_t stride_n, stride_c, stride_y, stride_x;
  std::int64_t positions, all_positions;
  std::int32_t groups, channels, padded_channels;
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
  std::int32_t outputs, channels, padded_channels;
  WeightAxisValues y, x;
};
struct RowAxisValues {
  std::int32_t out, shuffle, offset;
};
struct RowValues {
  std::int64_t all;
  std::int32_t channels, per_group;
  std::int32_t phases, period, count_y, columns;
  RowAxisValues y, x;
};

constexpr std::int64_t kThreads = 256, kTile = 4096, kEach = 8;

enum class WindowKernel : std::uint8_t { unfold_few, unfold, lay_weights, fold, fold_wide, spread };

const LazyKernel& window_kernel(WindowKernel kernel, ScalarType type) {
  static const auto& family = *new Family("windows.cu", text::windows_cu);
  return family.instance(InstanceKey().add(kernel, 3).type(type), [&] {
    constexpr std::array names = {"unfold<{}, 8>",
                                  "unfold<{}, 64>",
                                  "lay_weights<{}>",
                                  "fold<{}, unsigned int>",
                                  "fold<{}, unsigned long long>",
                                  "spread<{}>"};
    const std::string name = names[static_cast<std::size_t>(kernel)];
    const std::size_t hole = name.find("{}");
    return name.substr(0, hole) + device_type(type) + name.substr(hole + 2);
  });
}

LaunchConfig config_of(std::int64_t blocks, const Stream& on) {
  constexpr std::int64_t kMostBlocks = 1 << 20;
  LaunchConfig config;
  config.grid = {static_cast<std::uint32_t>(std::clamp<std::int64_t>(blocks, 1, kMostBlocks))};
  config.block = {static_cast<std::uint32_t>(kThreads)};
  config.stream = on;
  return config;
}

std::int64_t blocks_of(std::int64_t count, std::int64_t each) { return (count + each - 1) / each; }

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
          .per_group = call.sizes.outputs,
          .phases = plan.phases,
          .period = plan.period,
          .count_y = plan.y.count,
          .columns = plan.columns,
          .y = {out[0], plan.y.shuffle, plan.y.offset},
          .x = {out[1], plan.x.shuffle, plan.x.offset}};
}

}  // namespace

ConvCall::Lines ConvCall::unfold(const Array& x) const {
  const std::array<std::int64_t, 4> strides = element_strides(x);
  const auto groups = std::int64_t{geometry.groups};
  const std::int64_t of_group = plan.all_positions * plan.y.taps * plan.padded_channels;
  const Array memory = Array::empty(x.device(), {groups, of_group}, x.type(), on);
  const WindowValues values = {.stride_n = strides[0],
                               .stride_c = strides[1],
                               .stride_y = strides[2],
                               .stride_x = strides[3],
                               .positions = plan.positions,
                               .all_positions = plan.all_positions,
                               .groups = geometry.groups,
                               .channels = sizes.channels,
                               .padded_channels = plan.padded_channels,
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
  LaunchConfig config = config_of(1, on);
  config.grid = {static_cast<std::uint32_t>(blocks_of(plan.all_positions, kTile / channels)),
                 static_cast<std::uint32_t>(blocks_of(plan.padded_channels, channels)),
                 static_cast<std::uint32_t>(groups * plan.y.taps)};
  const LazyKernel& lazy =
      window_kernel(few ? WindowKernel::unfold_few : WindowKernel::unfold, x.type());
  launch(lazy.on(x.device()), config, memory.address(), x.address(), values);
  x.use_on(on);
  memory.use_on(on);
  const auto bytes = static_cast<std::int64_t>(scalar_size(x.type()));
  return {memory, Array::adopt(x.device(), memory.address(), {groups, plan.all_rows, plan.inner},
                               {of_group * bytes, plan.row_elements * bytes, bytes}, x.type(),
                               std::make_shared<Array>(memory))};
}

Array ConvCall::lay_weights(const Array& weight, const WeightStrides& strides) const {
  Array made = Array::empty(weight.device(), {geometry.groups, plan.products, plan.inner},
                            weight.type(), on);
  const auto axis = [&](const ConvAxis& planned, std::size_t at) -> WeightAxisValues {
    return {planned.taps,     geometry.kernel[at],   planned.shuffle,
            planned.dilation, geometry.dilation[at], sizes.transposed};
  };
  const WeightValues values = {.stride_group = strides.group,
                               .stride_out = strides.output,
                               .stride_in = strides.channel,
                               .stride_y = strides.y,
                               .stride_x = strides.x,
                               .outputs = sizes.outputs,
                               .channels = sizes.channels,
                               .padded_channels = plan.padded_channels,
                               .y = axis(plan.y, 0),
                               .x = axis(plan.x, 1)};
  launch(window_kernel(WindowKernel::lay_weights, weight.type()).on(weight.device()),
         config_of(blocks_of(made.size(), kThreads), on), made.address(), weight.address(),
         made.size(), values);
  weight.use_on(on);
  made.use_on(on);
  return made;
}

Array ConvCall::fold(const Array& product, const std::optional<Array>& bias) const {
  const std::array<std::int32_t, 2>& out = geometry.out;
  const RowValues values = row_values(*this);
  Array made = Array::empty(product.device(), {sizes.batch, values.channels, out[0], out[1]},
                            product.type(), on);
  std::int32_t lanes_log2 = 0;
  while (lanes_log2 < 5 && (kEach << lanes_log2) < out[1]) ++lanes_log2;
  const auto parts_of_line = static_cast<std::int32_t>(blocks_of(out[1], kEach << lanes_log2));
  const std::int64_t parts = made.size() / out[1] * parts_of_line;
  const bool wide = std::max(made.size(), parts << lanes_log2) >= std::int64_t{1} << 30;
  const Kernel& kernel =
      window_kernel(wide ? WindowKernel::fold_wide : WindowKernel::fold, product.type())
          .on(product.device());
  const LaunchConfig config = config_of(blocks_of(parts << lanes_log2, kThreads), on);
  const CUdeviceptr added = bias ? bias->address() : 0;
  with_index(wide, [&](auto index) {
    launch(kernel, config, made.address(), product.address(), added,
           static_cast<decltype(index)>(parts), parts_of_line, lanes_log2, values);
  });
  product.use_on(on);
  made.use_on(on);
  if (bias) bias->use_on(on);
  return made;
}

Array ConvCall::spread(const Array& dy) const {
  const std::array<std::int64_t, 4> strides = element_strides(dy);
  Array made =
      Array::empty(dy.device(), {geometry.groups, sizes.outputs, plan.all_rows}, dy.type(), on);
  launch(window_kernel(WindowKernel::spread, dy.type()).on(dy.device()),
         config_of(blocks_of(made.size(), kThreads), on), made.address(), dy.address(), made.size(),
         sizes.batch, strides[0], strides[1], strides[2], strides[3], row_values(*this));
  dy.use_on(on);
  made.use_on(on);
  return made;
}

}  // namespace kernwright::kernels
