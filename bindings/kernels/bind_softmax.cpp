// Softmax for Python.
#include "bindings/kernels/bind_kernels.h"
#include "bindings/kernels/kernel_calls.h"
#include "bindings/values/array_support.h"
#include "bindings/values/dtype.h"
#include "kernels_src/softmax/softmax.h"
#include "kernels_src/softmax/softmax_backward.h"

namespace kernwright::python {
namespace {

py::object call_softmax(const py::object& x, int axis, double scale, const py::object& mask,
                        const py::object& dtype, const py::object& out, bool log) {
  const Array input = array_operand(x, "x");
  kernels::SoftmaxOptions options{
      .log = log, .scale = scale, .mask = optional_operand(mask, "mask")};
  if (options.mask) {
    require_same_device({&input, &*options.mask});
    options.mask = options.mask->broadcast(input.shape());
  }
  if (!dtype.is_none()) options.type = scalar_argument(dtype);
  options.out = optional_operand(out, "out");
  Array result = on_current_stream(
      input, [&](const Stream& stream) { return kernels::softmax(input, axis, options, stream); });
  return options.out ? out : py::cast(std::move(result));
}

Array call_softmax_backward(const py::object& dy, const py::object& y, int axis, double scale,
                            bool log) {
  const Array gradient = array_operand(dy, "dy"), output = array_operand(y, "y");
  require_same_device({&gradient, &output});
  return on_current_stream(output, [&](const Stream& stream) {
    return kernels::softmax_backward(gradient, output, axis, scale, log, stream);
  });
}

}  // namespace

void bind_softmax(py::module_& m) {
  m.def("_softmax", &call_softmax);
  m.def("_softmax_backward", &call_softmax_backward);
}

}  // namespace kernwright::python
