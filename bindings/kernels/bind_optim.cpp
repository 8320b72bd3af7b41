// Steps of optimisers for kernwright.optim.
#include "base/errors.h"
#include "base/format.h"
#include "bindings/kernels/bind_kernels.h"
#include "bindings/kernels/kernel_calls.h"
#include "kernels_src/optim/optimizer.h"

#include <string>

namespace kernwright::python {
namespace {

std::vector<Array> array_operands(const py::list& values, const char* name) {
  std::vector<Array> arrays;
  arrays.reserve(values.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    arrays.push_back(array_operand(values[i], format("{}[{}]", name, i).c_str()));
  return arrays;
}

kernels::OptimizerRule optimizer_rule(const std::string& name) {
  if (name == "adamw") return kernels::OptimizerRule::adamw;
  if (name == "adam") return kernels::OptimizerRule::adam;
  if (name == "lion") return kernels::OptimizerRule::lion;
  if (name == "sgd") return kernels::OptimizerRule::sgd;
  throw InvalidArgument(format("no optimiser is called {}", name));
}

/// The options by their names; others keep their defaults.
kernels::OptimizerOptions optimizer_options(const std::string& rule, const py::dict& given) {
  kernels::OptimizerOptions options;
  options.rule = optimizer_rule(rule);
  const auto real = [&](const char* name, double& to) {
    if (given.contains(name)) to = given[name].cast<double>();
  };
  const auto flag = [&](const char* name, bool& to) {
    if (given.contains(name)) to = given[name].cast<bool>();
  };
  const auto array = [&](const char* name, std::optional<Array>& to) {
    if (given.contains(name)) to = optional_operand(given[name], name);
  };
  real("rate", options.rate);
  real("beta1", options.beta1);
  real("beta2", options.beta2);
  real("epsilon", options.epsilon);
  real("decay", options.decay);
  real("momentum", options.momentum);
  real("dampening", options.dampening);
  flag("nesterov", options.nesterov);
  flag("maximize", options.maximize);
  flag("amsgrad", options.amsgrad);
  flag("stochastic_rounding", options.stochastic_rounding);
  array("steps", options.steps);
  array("rates", options.rates);
  array("scale", options.scale);
  if (given.contains("step")) options.step = given["step"].cast<std::int64_t>();
  if (given.contains("seed")) options.seed = given["seed"].cast<std::uint64_t>();
  return options;
}

}  // namespace

void bind_optim(py::module_& m) {
  m.def(
      "_optimizer_step", [](const std::string& rule, const py::list& params, const py::list& grads,
                            const py::list& first, const py::list& second, const py::list& third,
                            const py::list& masters, const py::dict& options) {
        const kernels::OptimizerTensors tensors = {
            array_operands(params, "params"),         array_operands(grads, "grads"),
            array_operands(first, "states"),          array_operands(second, "exp_avg_sqs"),
            array_operands(third, "max_exp_avg_sqs"), array_operands(masters, "masters")};
        const kernels::OptimizerOptions chosen = optimizer_options(rule, options);
        if (tensors.params.empty()) return;
        on_current_stream(tensors.params[0],
                          [&](const Stream& on) { kernels::optimizer_step(tensors, chosen, on); });
      });
  m.def("_gradient_norm", [](const py::list& grads, double limit, double order) {
    const std::vector<Array> arrays = array_operands(grads, "grads");
    if (arrays.empty()) throw InvalidArgument("no gradients are given: pass at least one array");
    kernels::GradientNorm made = on_current_stream(arrays[0], [&](const Stream& on) {
      return kernels::gradient_norm(arrays, limit, order, on);
    });
    return py::make_tuple(std::move(made.norm), std::move(made.scale));
  });
  m.def("_scale_tensors", [](const py::list& tensors, const py::object& scale) {
    const std::vector<Array> arrays = array_operands(tensors, "grads");
    const Array factor = array_operand(scale, "scale");
    on_current_stream(factor,
                      [&](const Stream& on) { kernels::scale_tensors(arrays, factor, on); });
  });
}

}  // namespace kernwright::python
