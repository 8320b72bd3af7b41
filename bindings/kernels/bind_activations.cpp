// Activations, gated units, bias and activation, dropout.
#include "bindings/kernels/bind_kernels.h"
#include "bindings/kernels/kernel_calls.h"
#include "kernels_src/activations/activations.h"
#include "kernels_src/activations/dropout.h"

#include <string>

namespace kernwright::python {
namespace {

using kernels::ActivationCall;

ActivationCall make_call(const std::string& name, double a, double b) {
  return {kernels::activation_from_name(name), a, b};
}

Array activate(const std::string& name, py::handle x, double a, double b) {
  const Array operand = array_operand(x, "x");
  const ActivationCall call = make_call(name, a, b);
  return on_current_stream(operand,
                           [&](const Stream& on) { return kernels::activate(call, operand, on); });
}

Array activate_backward(const std::string& name, py::handle grad, py::handle x, double a,
                        double b) {
  const Array dy = array_operand(grad, "grad"), operand = array_operand(x, "x");
  const ActivationCall call = make_call(name, a, b);
  return on_current_stream(
      operand, [&](const Stream& on) { return kernels::activate_backward(call, dy, operand, on); });
}

Array bias_activate(const std::string& name, py::handle x, py::handle bias, double a, double b) {
  const Array operand = array_operand(x, "x"), shift = array_operand(bias, "bias");
  const ActivationCall call = make_call(name, a, b);
  return on_current_stream(
      operand, [&](const Stream& on) { return kernels::bias_activate(call, operand, shift, on); });
}

py::tuple bias_activate_backward(const std::string& name, py::handle grad, py::handle x,
                                 py::handle bias, double a, double b) {
  const Array dy = array_operand(grad, "grad"), operand = array_operand(x, "x");
  const Array shift = array_operand(bias, "bias");
  const ActivationCall call = make_call(name, a, b);
  kernels::BiasGradients made = on_current_stream(operand, [&](const Stream& on) {
    return kernels::bias_activate_backward(call, dy, operand, shift, on);
  });
  return py::make_tuple(std::move(made.x), std::move(made.bias));
}

Array gate(const std::string& name, py::handle gates, py::handle up) {
  const Array operand = array_operand(gates, "gate");
  const std::optional<Array> other = optional_operand(up, "up");
  const ActivationCall call = kernels::product_activation(name);
  return on_current_stream(
      operand, [&](const Stream& on) { return kernels::gate(call, operand, other, on); });
}

py::object gate_backward(const std::string& name, py::handle grad, py::handle gates,
                         py::handle up) {
  const Array dy = array_operand(grad, "grad"), operand = array_operand(gates, "gate");
  const std::optional<Array> other = optional_operand(up, "up");
  const ActivationCall call = kernels::product_activation(name);
  kernels::GateGradients made = on_current_stream(operand, [&](const Stream& on) {
    return kernels::gate_backward(call, dy, operand, other, on);
  });
  if (!made.up) return py::cast(std::move(made.gate));
  return py::make_tuple(std::move(made.gate), std::move(*made.up));
}

Array dropout(py::handle x, double p, std::uint64_t seed, std::uint64_t offset,
              py::handle counter) {
  const Array operand = array_operand(x, "x");
  const kernels::RandomState state{seed, offset, optional_operand(counter, "counter")};
  return on_current_stream(
      operand, [&](const Stream& on) { return kernels::dropout(operand, p, state, on); });
}

/// Each name, with products() of its row.
py::dict activations() {
  py::dict made;
  for (const kernels::ActivationTraits& row : kernels::kActivationTraits)
    made[row.name.data()] = row.products();
  return made;
}

}  // namespace

void bind_activations(py::module_& m) {
  m.def("_activations", &activations);
  m.def("_activate", &activate);
  m.def("_activate_backward", &activate_backward);
  m.def("_bias_activate", &bias_activate);
  m.def("_bias_activate_backward", &bias_activate_backward);
  m.def("_gate", &gate);
  m.def("_gate_backward", &gate_backward);
  m.def("_dropout", &dropout);
}

}  // namespace kernwright::python
