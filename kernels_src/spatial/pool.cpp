// One thread an element, in both directions.
#include "kernels_src/spatial/pool.h"

#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "kernels_src/copy/copy.h"
#include "kernels_src/family.h"
#include "kernels_src/spatial/pool.cu.h"
#include "kernels_src/spatial/spatial.h"

#include <algorithm>
#include <string>

namespace kernwright::kernels {

namespace {

/// The windows in the layout of pool.cu.
struct PoolWindows {
  std::array<std::int32_t, 3> in, out, size, stride, padding, dilation;
  std::int32_t divisor;
  bool adaptive, count_padding;
};

const Family& pool_family() {
  static const auto& made = *new Family("pool.cu", text::pool_cu);
  return made;
}

enum class PoolKernel : std::uint8_t { largest, average, backward };

const LazyKernel& pool_kernel(PoolKernel kernel, ScalarType type, bool wide) {
  constexpr std::array names = {"pool_largest", "pool_average", "pool_backward"};
  return pool_family().instance(InstanceKey().add(kernel, 2).type(type).add(wide, 1), [&] {
    return format("{}<{}, {}>", names[static_cast<std::size_t>(kernel)], device_type(type),
                  wide ? "UInt64" : "UInt32");
  });
}

PoolWindows pool_windows(const WindowGeometry& given) {
  for (std::size_t axis = 0; axis < 3; ++axis)
    if (given.in[axis] < 0 || given.out[axis] < 0 || given.size[axis] < 1 ||
        given.stride[axis] < 1 || given.dilation[axis] < 1 || given.padding[axis] < 0)
      throw InvalidArgument("a window has a size, stride and dilation above 0");
  return {given.in,       given.out,     given.size,     given.stride,       given.padding,
          given.dilation, given.divisor, given.adaptive, given.count_padding};
}

void require_planes(const Array& x, const std::array<std::int32_t, 3>& extents) {
  require_spatial_type(x, "pooling");
  const Shape& shape = x.shape();
  const bool fits = x.ndim() == 4 && std::equal(extents.begin(), extents.end(), shape.begin() + 1);
  if (!fits)
    throw InvalidArgument(format("pooling takes planes of {} x {} x {}, not {}", extents[0],
                                 extents[1], extents[2], shape_to_string(shape)));
}

Shape plane_shape(std::int64_t planes, const std::array<std::int32_t, 3>& extents) {
  return {planes, extents[0], extents[1], extents[2]};
}

}  // namespace

Pooled pool_largest(const Array& x, const WindowGeometry& geometry, bool places,
                    const Stream& stream) {
  const PoolWindows windows = pool_windows(geometry);
  require_planes(x, geometry.in);
  const Array from = x.is_contiguous() ? x : copy(x, stream);
  const Shape shape = plane_shape(x.shape()[0], geometry.out);
  Pooled made = {Array::empty(x.device(), shape, x.type(), stream), std::nullopt};
  if (places) made.places = Array::empty(x.device(), shape, ScalarType::int64, stream);
  const SpatialLaunch launched(made.values, from, stream);
  const CUdeviceptr at = places ? made.places->address() : 0;
  launched.run(pool_kernel(PoolKernel::largest, x.type(), launched.wide()),
               [&](const Kernel& kernel, const LaunchConfig& config, auto count) {
                 launch(kernel, config, made.values.address(), at, from.address(), count, windows);
               });
  if (places) made.places->use_on(launched.stream());
  return made;
}

Array pool_average(const Array& x, const WindowGeometry& geometry, const Stream& stream) {
  const PoolWindows windows = pool_windows(geometry);
  require_planes(x, geometry.in);
  const Array from = x.is_contiguous() ? x : copy(x, stream);
  Array made = Array::empty(x.device(), plane_shape(x.shape()[0], geometry.out), x.type(), stream);
  const SpatialLaunch launched(made, from, stream);
  launched.run(pool_kernel(PoolKernel::average, x.type(), launched.wide()),
               [&](const Kernel& kernel, const LaunchConfig& config, auto count) {
                 launch(kernel, config, made.address(), from.address(), count, windows);
               });
  return made;
}

Array pool_backward(const Array& dy, const std::optional<Array>& places,
                    const WindowGeometry& geometry, const Stream& stream) {
  const PoolWindows windows = pool_windows(geometry);
  require_planes(dy, geometry.out);
  if (places && (places->type() != ScalarType::int64 || places->shape() != dy.shape() ||
                 &places->device() != &dy.device()))
    throw InvalidArgument(format("indices are int64 of shape {} on the gradient's device, not {}",
                                 shape_to_string(dy.shape()), places->identify()));
  const Array from = dy.is_contiguous() ? dy : copy(dy, stream);
  std::optional<Array> chosen = places;
  if (chosen && !chosen->is_contiguous()) chosen = copy(*chosen, stream);
  Array made =
      Array::empty(dy.device(), plane_shape(dy.shape()[0], geometry.in), dy.type(), stream);
  const SpatialLaunch launched(made, from, stream);
  const CUdeviceptr at = chosen ? chosen->address() : 0;
  launched.run(pool_kernel(PoolKernel::backward, dy.type(), launched.wide()),
               [&](const Kernel& kernel, const LaunchConfig& config, auto count) {
                 launch(kernel, config, made.address(), from.address(), at, count, windows);
               });
  if (chosen) chosen->use_on(launched.stream());
  return made;
}

}  // namespace kernwright::kernels
