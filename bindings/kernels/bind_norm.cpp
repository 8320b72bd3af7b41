// Norms for Python.
#include "base/errors.h"
#include "base/format.h"
#include "bindings/kernels/bind_kernels.h"
#include "bindings/kernels/kernel_calls.h"
#include "bindings/values/dtype.h"
#include "kernels_src/norm/l2_norm.h"
#include "kernels_src/norm/norm.h"
#include "kernels_src/norm/norm_backward.h"

#include <pybind11/stl.h>
#include <array>
#include <optional>
#include <string>

namespace kernwright::python {
namespace {

kernels::NormKind norm_kind(const std::string& name) {
  if (name == "rms") return kernels::NormKind::rms;
  if (name == "layer") return kernels::NormKind::layer;
  throw InvalidArgument(format("no norm is called {}", name));
}

/// None: no groups; otherwise one or more, or -1.
std::int64_t group_argument(const std::optional<std::int64_t>& groups) {
  if (!groups) return 0;
  if (*groups >= 1 || *groups == -1) return *groups;
  throw InvalidArgument(format("the number of groups must be at least 1, got {}", *groups));
}

template <typename Value>
py::object or_none(std::optional<Value>& value) {
  return value ? py::cast(std::move(*value)) : py::none();
}

/// The targets of the result, its scales and the sum with the residual; each may be None.
using NormTargets = std::array<py::object, 3>;

py::tuple call_norm(const std::string& kind, const py::object& x, const py::object& weight,
                    const py::object& bias, double eps, const py::object& residual,
                    const py::object& quantize, const std::optional<std::int64_t>& groups,
                    const std::optional<NormTargets>& out) {
  const Array input = array_operand(x, "x");
  kernels::NormOptions options{.kind = norm_kind(kind),
                               .eps = eps,
                               .weight = optional_operand(weight, "weight"),
                               .bias = optional_operand(bias, "bias"),
                               .residual = optional_operand(residual, "residual"),
                               .groups = group_argument(groups)};
  if (!quantize.is_none()) options.quantized = scalar_argument(quantize);
  for (const auto* const each : {&options.weight, &options.bias, &options.residual})
    if (*each) require_same_device({&input, &**each});
  if (out) {
    options.out = optional_operand((*out)[0], "out");
    options.scales = optional_operand((*out)[1], "the out of scales");
    options.sum = optional_operand((*out)[2], "the out of the sum");
  }
  kernels::NormResult result = on_current_stream(
      input, [&](const Stream& stream) { return kernels::norm(input, options, stream); });
  return py::make_tuple(std::move(result.out), or_none(result.scales), or_none(result.sum));
}

/// (dx, dweight, dbias), and the sums of dx last.
py::tuple call_norm_backward(const std::string& kind, const py::object& dy, const py::object& x,
                             const py::object& weight, double eps, bool bias,
                             const std::optional<std::int64_t>& groups, const py::object& added,
                             bool columns) {
  const Array gradient = array_operand(dy, "dy"), input = array_operand(x, "x");
  const kernels::NormOptions options{.kind = norm_kind(kind),
                                     .eps = eps,
                                     .weight = optional_operand(weight, "weight"),
                                     .groups = group_argument(groups)};
  const kernels::NormGradientOptions wanted{
      .bias = bias, .columns = columns, .added = optional_operand(added, "added")};
  require_same_device({&input, &gradient});
  for (const auto* const each : {&options.weight, &wanted.added})
    if (*each) require_same_device({&input, &**each});
  kernels::NormGradients result = on_current_stream(input, [&](const Stream& stream) {
    return kernels::norm_backward(gradient, input, options, wanted, stream);
  });
  return py::make_tuple(std::move(result.dx), or_none(result.weight), or_none(result.bias),
                        or_none(result.columns));
}

Array call_l2_norm(const py::object& x, int axis, double eps, const py::object& out) {
  const Array input = array_operand(x, "x");
  const std::optional<Array> target = optional_operand(out, "out");
  return on_current_stream(input, [&](const Stream& stream) {
    return kernels::l2_norm(input, axis, eps, target, stream);
  });
}

Array call_l2_norm_backward(const py::object& dy, const py::object& x, int axis, double eps) {
  const Array gradient = array_operand(dy, "dy"), input = array_operand(x, "x");
  require_same_device({&input, &gradient});
  return on_current_stream(input, [&](const Stream& stream) {
    return kernels::l2_norm_backward(gradient, input, axis, eps, stream);
  });
}

}  // namespace

void bind_norm(py::module_& m) {
  m.def("_norm", &call_norm, py::arg("kind"), py::arg("x"), py::arg("weight"), py::arg("bias"),
        py::arg("eps"), py::arg("residual"), py::arg("quantize"), py::arg("groups"),
        py::arg("out") = py::none());
  m.def("_norm_backward", &call_norm_backward, py::arg("kind"), py::arg("dy"), py::arg("x"),
        py::arg("weight"), py::arg("eps"), py::arg("bias"), py::arg("groups"),
        py::arg("added") = py::none(), py::arg("columns") = false);
  m.def("_l2_norm", &call_l2_norm, py::arg("x"), py::arg("axis"), py::arg("eps"),
        py::arg("out") = py::none());
  m.def("_l2_norm_backward", &call_l2_norm_backward);
}

}  // namespace kernwright::python
