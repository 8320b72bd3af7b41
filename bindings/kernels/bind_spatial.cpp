// Pooling and interpolation for kernwright.nn.
#include "bindings/kernels/bind_kernels.h"
#include "bindings/kernels/kernel_calls.h"
#include "bindings/values/dtype.h"
#include "kernels_src/spatial/pool.h"
#include "kernels_src/spatial/resample.h"

namespace kernwright::python {
namespace {

using Extents = std::array<std::int32_t, 3>;

/// The windows by the names that the Python package gives them.
kernels::WindowGeometry window_geometry(const py::dict& given) {
  const auto extents = [&](const char* name) { return given[name].cast<Extents>(); };
  return {extents("in"),
          extents("out"),
          extents("size"),
          extents("stride"),
          extents("padding"),
          extents("dilation"),
          given["divisor"].cast<std::int32_t>(),
          given["adaptive"].cast<bool>(),
          given["count_padding"].cast<bool>()};
}

py::tuple pool_largest(py::handle values, const py::dict& windows, bool places) {
  const Array x = array_operand(values, "x");
  const kernels::WindowGeometry geometry = window_geometry(windows);
  kernels::Pooled made = on_current_stream(
      x, [&](const Stream& on) { return kernels::pool_largest(x, geometry, places, on); });
  py::object found = py::none();
  if (made.places) found = py::cast(std::move(*made.places));
  return py::make_tuple(std::move(made.values), std::move(found));
}

Array pool_average(py::handle values, const py::dict& windows) {
  const Array x = array_operand(values, "x");
  const kernels::WindowGeometry geometry = window_geometry(windows);
  return on_current_stream(
      x, [&](const Stream& on) { return kernels::pool_average(x, geometry, on); });
}

Array pool_backward(py::handle gradient, py::handle places, const py::dict& windows) {
  const Array dy = array_operand(gradient, "dy");
  const std::optional<Array> at = optional_operand(places, "indices");
  const kernels::WindowGeometry geometry = window_geometry(windows);
  return on_current_stream(
      dy, [&](const Stream& on) { return kernels::pool_backward(dy, at, geometry, on); });
}

Array resample(py::handle values, int axis, std::int64_t extent, int mode, double scale,
               bool align_corners, const py::object& dtype, bool backward) {
  const Array x = array_operand(values, backward ? "dy" : "x");
  const kernels::ResampleOptions options = {static_cast<kernels::Interpolation>(mode), scale,
                                            align_corners};
  const ScalarType type = scalar_argument(dtype);
  return on_current_stream(x, [&](const Stream& on) {
    return backward ? kernels::resample_backward(x, axis, extent, options, type, on)
                    : kernels::resample(x, axis, extent, options, type, on);
  });
}

}  // namespace

void bind_spatial(py::module_& m) {
  m.def("_pool_largest", &pool_largest);
  m.def("_pool_average", &pool_average);
  m.def("_pool_backward", &pool_backward);
  m.def("_resample", &resample);
}

}  // namespace kernwright::python
