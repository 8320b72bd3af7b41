// Products with few rows.
#include "base/errors.h"
#include "bindings/kernels/bind_kernels.h"
#include "bindings/kernels/kernel_calls.h"
#include "kernels_src/gemv/skinny.h"
#include "kernels_src/products/linear.h"

#include <string>

namespace kernwright::python {
namespace {

/// (kernel, warps, rows, unroll, hint, splits, ahead, stages) as benchmarks name it; what it lacks
/// is chosen.
kernels::SkinnyPlan make_skinny_plan(const std::vector<int>& numbers) {
  kernels::SkinnyPlan plan;
  const auto take = [&, at = std::size_t{0}](int& target) mutable {
    if (at < numbers.size()) target = numbers[at++];
  };
  int kernel = 0;
  auto next = take;
  next(kernel);
  if (kernel < 0 || kernel > 11) throw InvalidArgument("a plan's kernel is 0 to 11");
  plan.kernel = static_cast<kernels::SkinnyKernel>(kernel);
  for (int* const each : {&plan.warps, &plan.rows, &plan.unroll, &plan.hint, &plan.splits,
                          &plan.ahead, &plan.stages}) {
    next(*each);
  }
  return plan;
}

Array few_rows(py::handle x, py::handle weights, py::handle scale, py::handle bias,
               py::handle residual, const std::string& activation, double factor,
               const std::vector<int>& plan) {
  kernels::SkinnyCall call{.x = array_operand(x, "x"), .weights = array_operand(weights, "weight")};
  call.epilogue = layer_epilogue(bias, residual, activation);
  call.epilogue.column_scales = optional_operand(scale, "scale");
  call.epilogue.alpha = static_cast<float>(factor);
  call.plan = make_skinny_plan(plan);
  return on_current_stream(call.x,
                           [&](const Stream& on) { return kernels::skinny_product(call, on); });
}

kernels::LinearCall linear_call(py::handle x, py::handle weights, py::handle bias, py::handle scale,
                                py::handle residual, const std::string& activation,
                                const std::optional<std::string>& precision) {
  kernels::LinearCall call{.x = array_operand(x, "x"), .weights = array_operand(weights, "weight")};
  call.scale = optional_operand(scale, "scale");
  call.epilogue = layer_epilogue(bias, residual, activation);
  call.tf32 = is_tf32(precision);
  return call;
}

Array linear_layer(py::handle x, py::handle weights, py::handle bias, py::handle scale,
                   py::handle residual, const std::string& activation,
                   const std::optional<std::string>& precision, py::handle norm, double eps,
                   const std::string& gate) {
  auto call = linear_call(x, weights, bias, scale, residual, activation, precision);
  if (!norm.is_none()) call.norm = kernels::RowNorm{array_operand(norm, "norm"), eps};
  call.epilogue.gate = layer_activation(gate);
  return on_current_stream(call.x, [&](const Stream& on) { return kernels::linear(call, on); });
}

void write_linear(py::handle out, py::handle x, py::handle weights, py::handle bias,
                  py::handle scale, py::handle residual, const std::string& activation,
                  const std::string& gate, const std::optional<std::string>& precision) {
  auto call = linear_call(x, weights, bias, scale, residual, activation, precision);
  call.out = array_operand(out, "out");
  call.epilogue.gate = layer_activation(gate);
  on_current_stream(call.x, [&](const Stream& on) { kernels::linear(call, on); });
}

}  // namespace

void bind_gemv(py::module_& m) {
  m.def("_linear", &linear_layer, py::arg("x"), py::arg("weight"), py::arg("bias"),
        py::arg("scale"), py::arg("residual"), py::arg("activation"),
        py::arg("precision") = py::none(), py::arg("norm") = py::none(), py::arg("eps") = 0.0,
        py::arg("gate") = "");
  m.def("_linear_into", &write_linear);
  m.def("_skinny_product", &few_rows, py::arg("x"), py::arg("weight"),
        py::arg("scale") = py::none(), py::arg("bias") = py::none(),
        py::arg("residual") = py::none(), py::arg("activation") = "", py::arg("factor") = 1.0,
        py::arg("plan") = std::vector<int>());
}

}  // namespace kernwright::python
