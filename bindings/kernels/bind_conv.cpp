// Convolutions for kernwright.nn.
#include "bindings/kernels/bind_kernels.h"
#include "bindings/kernels/kernel_calls.h"
#include "kernels_src/conv/conv.h"

namespace kernwright::python {
namespace {

/// The geometry by the names that the Python package gives it.
kernels::ConvGeometry conv_geometry(const py::dict& given) {
  const auto extents = [&](const char* name) {
    return given[name].cast<std::array<std::int32_t, 2>>();
  };
  return {extents("in"),
          extents("out"),
          extents("kernel"),
          extents("stride"),
          extents("padding"),
          extents("dilation"),
          given["groups"].cast<std::int32_t>()};
}

Array convolve(py::handle values, py::handle weights, py::handle biases, const py::dict& given,
               bool transposed, const std::optional<std::string>& precision) {
  const Array x = array_operand(values, "x"), weight = array_operand(weights, "weight");
  const std::optional<Array> bias = optional_operand(biases, "bias");
  const kernels::ConvGeometry geometry = conv_geometry(given);
  const bool tf32 = is_tf32(precision);
  return on_current_stream(x, [&](const Stream& on) {
    return transposed ? kernels::convolve_transposed(x, weight, bias, geometry, tf32, on)
                      : kernels::convolve(x, weight, bias, geometry, tf32, on);
  });
}

Array convolve_weight_gradient(py::handle values, py::handle gradient, const py::dict& given,
                               const std::optional<std::string>& precision) {
  const Array x = array_operand(values, "x"), dy = array_operand(gradient, "dy");
  const kernels::ConvGeometry geometry = conv_geometry(given);
  const bool tf32 = is_tf32(precision);
  return on_current_stream(x, [&](const Stream& on) {
    return kernels::convolve_weight_gradient(x, dy, geometry, tf32, on);
  });
}

}  // namespace

void bind_conv(py::module_& m) {
  m.def("_convolve", &convolve);
  m.def("_convolve_weight_gradient", &convolve_weight_gradient);
}

}  // namespace kernwright::python
