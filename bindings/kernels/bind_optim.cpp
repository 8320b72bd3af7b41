// Steps of optimisers for kernwright.optim.
#include "base/errors.h"
#include "base/format.h"
#include "bindings/kernels/bind_kernels.h"
#include "bindings/kernels/kernel_calls.h"
#include "kernels_src/optim/gradients.h"
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
  if (name == "direction") return kernels::OptimizerRule::direction;
  if (name == "average") return kernels::OptimizerRule::average;
  if (name == "decoupled") return kernels::OptimizerRule::decoupled;
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
  real("gain", options.gain);
  flag("nesterov", options.nesterov);
  flag("maximize", options.maximize);
  flag("amsgrad", options.amsgrad);
  flag("stochastic_rounding", options.stochastic_rounding);
  array("steps", options.steps);
  array("rates", options.rates);
  array("scale", options.scale);
  array("words", options.words);
  array("skip", options.skip);
  if (given.contains("step")) options.step = given["step"].cast<std::int64_t>();
  if (given.contains("seed")) options.seed = given["seed"].cast<std::uint64_t>();
  return options;
}

kernels::OptimizerTensors optimizer_tensors(const py::list& params, const py::list& grads,
                                            const py::list& first, const py::list& second,
                                            const py::list& third, const py::list& masters) {
  return {array_operands(params, "params"),         array_operands(grads, "grads"),
          array_operands(first, "states"),          array_operands(second, "exp_avg_sqs"),
          array_operands(third, "max_exp_avg_sqs"), array_operands(masters, "masters")};
}

/// As _optimizer_step() takes them.
kernels::OptimizerPart optimizer_part(const py::tuple& given) {
  const auto list = [&](std::size_t i) { return given[i].cast<py::list>(); };
  return {optimizer_tensors(list(1), list(2), list(3), list(4), list(5), list(6)),
          optimizer_options(given[0].cast<std::string>(), given[7].cast<py::dict>())};
}

kernels::AdvanceWords advance_words(const py::dict& given) {
  const auto word = [&](const char* name) { return optional_operand(given[name], name); };
  kernels::AdvanceWords words = {array_operand(given["steps"], "steps")};
  words.skip = word("skip");
  words.tokens = word("tokens");
  words.loss_scale = word("loss_scale");
  words.good = word("good");
  if (words.loss_scale) {
    words.growth = given["growth"].cast<double>();
    words.backoff = given["backoff"].cast<double>();
    words.interval = given["interval"].cast<std::int64_t>();
  }
  words.groups = array_operands(given["groups"].cast<py::list>(), "groups");
  return words;
}

py::tuple call_gradient_factor(const Array& near, const kernels::FactorWords& words) {
  kernels::GradientFactor made = on_current_stream(
      near, [&](const Stream& on) { return kernels::gradient_factor(words, near.device(), on); });
  return py::make_tuple(std::move(made.factor), std::move(made.norm), std::move(made.skip));
}

}  // namespace

void bind_optim(py::module_& m) {
  m.def(
      "_optimizer_step", [](const std::string& rule, const py::list& params, const py::list& grads,
                            const py::list& first, const py::list& second, const py::list& third,
                            const py::list& masters, const py::dict& options) {
        const kernels::OptimizerTensors tensors =
            optimizer_tensors(params, grads, first, second, third, masters);
        const kernels::OptimizerOptions chosen = optimizer_options(rule, options);
        if (tensors.params.empty()) return;
        on_current_stream(tensors.params[0],
                          [&](const Stream& on) { kernels::optimizer_step(tensors, chosen, on); });
      });
  m.def("_optimizer_steps", [](const py::list& given, const py::dict& advance) {
    std::vector<kernels::OptimizerPart> parts;
    parts.reserve(given.size());
    for (const py::handle each : given) parts.push_back(optimizer_part(each.cast<py::tuple>()));
    const kernels::AdvanceWords words = advance_words(advance);
    on_current_stream(words.steps,
                      [&](const Stream& on) { kernels::optimizer_steps(parts, words, on); });
  });
  m.def("_gradient_factor",
        [](const py::object& near, const py::object& norm, const py::object& loss_scale,
           const py::object& given, const py::object& tokens, double limit) {
          return call_gradient_factor(
              array_operand(near, "near"),
              {optional_operand(norm, "norm"), optional_operand(loss_scale, "loss_scale"),
               optional_operand(given, "grad_scale"), optional_operand(tokens, "tokens"), limit});
        });
  m.def("_blend_tensors",
        [](const py::list& to, const py::list& from, double alpha, double beta,
           const py::object& total, const py::object& weight, std::int64_t number, bool is_factor) {
          const std::vector<Array> targets = array_operands(to, "sums");
          const std::vector<Array> sources = array_operands(from, "grads");
          if (targets.empty()) return;
          std::optional<kernels::BlendCount> count;
          if (!total.is_none())
            count = {array_operand(total, "tokens"), optional_operand(weight, "tokens"), number,
                     is_factor};
          on_current_stream(targets[0], [&](const Stream& on) {
            kernels::blend_tensors(targets, sources, alpha, beta, count, on);
          });
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
