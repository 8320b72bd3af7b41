// Quantised rows for kernwright.nn.
#include "bindings/kernels/bind_kernels.h"
#include "bindings/kernels/kernel_calls.h"
#include "bindings/values/dtype.h"
#include "kernels_src/quantize/quantize.h"

namespace kernwright::python {

void bind_quantize(py::module_& m) {
  m.def("_quantize_rows", [](const py::object& x, const py::object& dtype, bool per_tensor,
                             const py::object& scale) {
    const Array array = array_operand(x, "x");
    const std::optional<Array> scales = optional_operand(scale, "scale");
    const ScalarType type = scalar_argument(dtype);
    kernels::Quantized made = on_current_stream(array, [&](const Stream& on) {
      return kernels::quantize_rows(
          array, type, per_tensor ? kernels::QuantizeScope::tensor : kernels::QuantizeScope::row,
          scales, on);
    });
    return py::make_tuple(std::move(made.values), std::move(made.scales));
  });
  m.def("_quantize_blocks", [](const py::object& x, std::int64_t block, const py::object& dtype) {
    const Array array = array_operand(x, "x");
    const ScalarType type = scalar_argument(dtype);
    kernels::Quantized made = on_current_stream(
        array, [&](const Stream& on) { return kernels::quantize_blocks(array, block, type, on); });
    return py::make_tuple(std::move(made.values), std::move(made.scales));
  });
  m.def("_dequantize_rows",
        [](const py::object& values, const py::object& scale, const py::object& dtype) {
          const Array array = array_operand(values, "q");
          const Array scales = array_operand(scale, "scale");
          const ScalarType type = scalar_argument(dtype);
          return on_current_stream(array, [&](const Stream& on) {
            return kernels::dequantize_rows(array, scales, type, on);
          });
        });
}

}  // namespace kernwright::python
