// LSTM and GRU for kernwright.nn: the recurrent part of a layer.
#include "bindings/kernels/bind_kernels.h"
#include "bindings/kernels/kernel_calls.h"
#include "kernels_src/recurrent/recurrent.h"

#include <string>

namespace kernwright::python {
namespace {

using kernels::RecurrentCell;

RecurrentCell recurrent_cell(const std::string& name) {
  return name == "lstm" ? RecurrentCell::lstm : RecurrentCell::gru;
}

std::vector<Array> array_operands(const py::sequence& values, const char* name) {
  std::vector<Array> made;
  for (const py::handle each : values) made.push_back(array_operand(each, name));
  return made;
}

/// A way by its number, and the blocks; None for the rule.
using PlanRequest = std::optional<std::pair<int, int>>;

std::optional<kernels::RecurrenceRequest> requested_plan(const PlanRequest& plan) {
  if (!plan) return std::nullopt;
  return kernels::RecurrenceRequest{static_cast<kernels::RecurrenceWay>(plan->first), plan->second};
}

/// The layer and its gradient take two arrays of a state: (h, c), where a GRU's c is None.
using StatePair = std::pair<py::object, py::object>;

py::tuple recurrent(const std::string& cell, const py::sequence& gates, const py::sequence& weights,
                    const py::sequence& biases, const StatePair& first, const StatePair& last,
                    bool batch_first, bool keep, const PlanRequest& plan) {
  const kernels::RecurrentLayer layer{.cell = recurrent_cell(cell),
                                      .gates = array_operands(gates, "gates"),
                                      .weights = array_operands(weights, "weight_hh"),
                                      .biases = array_operands(biases, "bias_hh"),
                                      .h0 = optional_operand(first.first, "h_0"),
                                      .c0 = optional_operand(first.second, "c_0"),
                                      .h_n = array_operand(last.first, "h_n"),
                                      .c_n = optional_operand(last.second, "c_n"),
                                      .batch_first = batch_first,
                                      .keep = keep,
                                      .plan = requested_plan(plan)};
  kernels::RecurrentResult made =
      on_current_stream(layer.h_n, [&](const Stream& on) { return kernels::recurrent(layer, on); });
  return py::make_tuple(std::move(made.output), std::move(made.saved), std::move(made.cells));
}

py::tuple recurrent_backward(const std::string& cell, py::handle grad_output,
                             const StatePair& grad_last, const py::sequence& weights,
                             const py::sequence& saved, const py::sequence& cells,
                             py::handle output, const StatePair& first, const StatePair& grad_first,
                             bool batch_first, const PlanRequest& plan) {
  const kernels::RecurrentGradientCall call{
      .cell = recurrent_cell(cell),
      .weights = array_operands(weights, "weight_hh"),
      .saved = array_operands(saved, "saved"),
      .cells = array_operands(cells, "cells"),
      .output = array_operand(output, "output"),
      .h0 = optional_operand(first.first, "h_0"),
      .c0 = optional_operand(first.second, "c_0"),
      .grad_output = optional_operand(grad_output, "the gradient of output"),
      .grad_h_n = optional_operand(grad_last.first, "the gradient of h_n"),
      .grad_c_n = optional_operand(grad_last.second, "the gradient of c_n"),
      .grad_h0 = array_operand(grad_first.first, "the gradient of h_0"),
      .grad_c0 = optional_operand(grad_first.second, "the gradient of c_0"),
      .batch_first = batch_first,
      .plan = requested_plan(plan)};
  kernels::RecurrentGradients made = on_current_stream(
      call.output, [&](const Stream& on) { return kernels::recurrent_backward(call, on); });
  return py::make_tuple(std::move(made.gates), std::move(made.recurrent));
}

}  // namespace

void bind_recurrent(py::module_& m) {
  m.def("_recurrent", &recurrent);
  m.def("_recurrent_backward", &recurrent_backward);
}

}  // namespace kernwright::python
