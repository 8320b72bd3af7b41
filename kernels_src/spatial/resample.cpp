// One thread an element, in both directions.
#include "kernels_src/spatial/resample.h"

#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "kernels_src/copy/copy.h"
#include "kernels_src/family.h"
#include "kernels_src/spatial/resample.cu.h"
#include "kernels_src/spatial/spatial.h"

#include <array>
#include <limits>

namespace kernwright::kernels {

namespace {

/// The parameters in the layout of resample.cu.
template <typename Real>
struct ResampleAxis {
  std::int32_t in, out;
  Real scale;
  bool align_corners;
};

const Family& resample_family() {
  static const auto& made = *new Family("resample.cu", text::resample_cu);
  return made;
}

const LazyKernel& resample_kernel(bool backward, Interpolation mode, ScalarType in, ScalarType out,
                                  bool wide) {
  constexpr std::array modes = {"kNearest", "kNearestExact", "kLinear", "kCubic"};
  const auto key =
      InstanceKey().add(backward, 1).add(mode, 2).type(in).type(out).add(wide, 1).add(1, 1);
  return resample_family().instance(key, [&] {
    return format("{}<{}, {}, {}, {}>", backward ? "resample_backward" : "resample",
                  modes[static_cast<std::size_t>(mode)], device_type(in), device_type(out),
                  wide ? "UInt64" : "UInt32");
  });
}

Array along_axis(const Array& x, int axis, std::int64_t extent, const ResampleOptions& options,
                 ScalarType type, bool backward, const Stream& stream) {
  require_spatial_type(x, "interpolation");
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max() / 4;
  if (axis < 0 || axis >= x.ndim() || extent < 1 || extent > kMost ||
      x.shape()[static_cast<std::size_t>(axis)] > kMost)
    throw InvalidArgument(format("axis {} of {} cannot be interpolated to {} elements", axis,
                                 shape_to_string(x.shape()), extent));
  if ((type == ScalarType::float64) != (x.type() == ScalarType::float64))
    throw InvalidArgument("float64 is interpolated to float64 alone");
  const Array from = x.is_contiguous() ? x : copy(x, stream);
  Shape shape = x.shape();
  const std::int64_t before = shape[static_cast<std::size_t>(axis)];
  shape[static_cast<std::size_t>(axis)] = extent;
  Array made = Array::empty(x.device(), shape, type, stream);
  if (made.size() == 0) return made;
  if (before == 0) throw InvalidArgument(format("axis {} has no element to take", axis));
  std::int64_t inner = 1;
  for (std::size_t i = static_cast<std::size_t>(axis) + 1; i < shape.size(); ++i) inner *= shape[i];
  const auto in = static_cast<std::int32_t>(backward ? extent : before);
  const auto out = static_cast<std::int32_t>(backward ? before : extent);
  const SpatialLaunch launched(made, from, stream);
  const LazyKernel& lazy = resample_kernel(backward, options.mode, x.type(), type, launched.wide());
  launched.run(lazy, [&](const Kernel& kernel, const LaunchConfig& config, auto count) {
    const auto step = static_cast<decltype(count)>(inner);
    if (x.type() == ScalarType::float64) {
      const ResampleAxis<double> along = {in, out, options.scale, options.align_corners};
      launch(kernel, config, made.address(), from.address(), count, step, along);
    } else {
      const ResampleAxis<float> along = {in, out, static_cast<float>(options.scale),
                                         options.align_corners};
      launch(kernel, config, made.address(), from.address(), count, step, along);
    }
  });
  return made;
}

}  // namespace

Array resample(const Array& x, int axis, std::int64_t extent, const ResampleOptions& options,
               ScalarType type, const Stream& stream) {
  return along_axis(x, axis, extent, options, type, false, stream);
}

Array resample_backward(const Array& dy, int axis, std::int64_t extent,
                        const ResampleOptions& options, ScalarType type, const Stream& stream) {
  return along_axis(dy, axis, extent, options, type, true, stream);
}

}  // namespace kernwright::kernels
