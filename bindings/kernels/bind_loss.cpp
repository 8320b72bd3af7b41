// Losses and their gradients.
#include "bindings/kernels/bind_kernels.h"
#include "bindings/kernels/kernel_calls.h"
#include "kernels_src/loss/loss.h"

#include <string>

namespace kernwright::python {
namespace {

py::tuple loss_and_gradient(kernels::Loss made) {
  py::object gradient = py::none();
  if (made.gradient) gradient = py::cast(std::move(*made.gradient));
  return py::make_tuple(std::move(made.value), std::move(gradient));
}

py::tuple cross_entropy(py::handle logits, py::handle target, const std::string& reduction,
                        double label_smoothing, double z_loss, std::int64_t ignore_index,
                        bool gradient, bool in_place, py::handle upstream, py::handle weight) {
  const Array x = array_operand(logits, "logits"), ids = array_operand(target, "target");
  const std::optional<Array> above = optional_operand(upstream, "grad");
  const kernels::CrossEntropyOptions options{kernels::loss_reduction_from_name(reduction),
                                             label_smoothing,
                                             z_loss,
                                             ignore_index,
                                             gradient,
                                             in_place,
                                             optional_operand(weight, "weight")};
  return loss_and_gradient(on_current_stream(
      x, [&](const Stream& on) { return kernels::cross_entropy(x, ids, options, above, on); }));
}

py::tuple pointwise_loss(const std::string& name, py::handle values, py::handle target,
                         const std::string& reduction, double knob, bool value, bool gradient,
                         py::handle upstream) {
  const Array x = array_operand(values, "x"), t = array_operand(target, "target");
  const std::optional<Array> above = optional_operand(upstream, "grad");
  const kernels::PointwiseOptions options{kernels::pointwise_loss_from_name(name),
                                          kernels::loss_reduction_from_name(reduction), knob, value,
                                          gradient};
  return loss_and_gradient(on_current_stream(
      x, [&](const Stream& on) { return kernels::pointwise_loss(x, t, options, above, on); }));
}

}  // namespace

void bind_loss(py::module_& m) {
  m.def("_cross_entropy", &cross_entropy, py::arg("logits"), py::arg("target"),
        py::arg("reduction"), py::arg("label_smoothing"), py::arg("z_loss"),
        py::arg("ignore_index"), py::arg("gradient"), py::arg("in_place"), py::arg("upstream"),
        py::arg("weight") = py::none());
  m.def("_pointwise_loss", &pointwise_loss);
}

}  // namespace kernwright::python
