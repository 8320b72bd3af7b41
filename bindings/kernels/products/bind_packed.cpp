// Packed weights of nn.quant and their products.
#include "base/errors.h"
#include "bindings/kernels/bind_kernels.h"
#include "bindings/kernels/kernel_calls.h"
#include "bindings/values/dtype.h"
#include "kernels_src/packed/packed.h"
#include "kernels_src/products/packed_linear.h"

#include <string>
#include <tuple>

namespace kernwright::python {
namespace {

/// (format, n, k, group, rows and columns of a tile).
using PackedShape =
    std::tuple<std::string, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t>;

kernels::PackedWeights packed_operand(const PackedShape& shape, const py::tuple& parts) {
  kernels::PackedWeights made;
  std::string name;
  std::tie(name, made.n, made.k, made.group, made.tile[0], made.tile[1]) = shape;
  made.format = kernels::packed_format(name);
  if (parts.size() != made.parts.size())
    throw InvalidArgument("packed weights have eight parts, None where the format lacks one");
  for (std::size_t i = 0; i < made.parts.size(); ++i)
    made.parts[i] = optional_operand(parts[i], "weight");
  kernels::check_packed(made);
  return made;
}

py::tuple pack_weights(const PackedShape& shape, int source, const py::tuple& blocks,
                       int zero_offset, py::handle groups) {
  kernels::PackCall call;
  std::string name;
  std::tie(name, call.n, call.k, call.group, call.tile[0], call.tile[1]) = shape;
  call.format = kernels::packed_format(name);
  call.source = static_cast<kernels::PackedSource>(source);
  call.zero_offset = zero_offset;
  for (const py::handle each : blocks) call.blocks.push_back(array_operand(each, "blocks"));
  call.groups = optional_operand(groups, "groups");
  if (call.blocks.empty()) throw InvalidArgument("there are no arrays to pack");
  const kernels::PackedWeights made = on_current_stream(
      call.blocks[0], [&](const Stream& on) { return kernels::pack_weights(call, on); });
  py::tuple parts(made.parts.size());
  for (std::size_t i = 0; i < made.parts.size(); ++i) parts[i] = py::cast(made.parts[i]);
  return parts;
}

Array unpack_weights(const PackedShape& shape, const py::tuple& parts, const py::object& dtype) {
  const kernels::PackedWeights weights = packed_operand(shape, parts);
  const ScalarType type = scalar_argument(dtype);
  return on_current_stream(*weights.parts[0], [&](const Stream& on) {
    return kernels::unpack_weights(weights, 0, weights.n, type, on);
  });
}

/// `plan` is (warps, rows, columns, unroll, splits, stages, kernel) as benchmarks name it; missing
/// ones are chosen.
Array packed_linear(py::handle x, const PackedShape& shape, const py::tuple& parts, py::handle bias,
                    py::handle residual, const std::string& activation,
                    const std::vector<int>& plan, py::handle out, py::handle norm, double eps,
                    const std::string& gate) {
  kernels::PackedLinearCall call{.x = array_operand(x, "x"),
                                 .weights = packed_operand(shape, parts)};
  call.epilogue = layer_epilogue(bias, residual, activation);
  call.out = optional_operand(out, "out");
  if (!norm.is_none()) call.norm = kernels::RowNorm{array_operand(norm, "norm"), eps};
  call.epilogue.gate = layer_activation(gate);
  std::size_t at = 0;
  for (int* const each : {&call.plan.warps, &call.plan.rows, &call.plan.columns, &call.plan.unroll,
                          &call.plan.splits, &call.plan.stages}) {
    if (at < plan.size()) *each = plan[at++];
  }
  if (at < plan.size()) {
    if (plan[at] < 0 || plan[at] > 8) throw InvalidArgument("a plan's kernel is 0 to 8");
    call.plan.kernel = static_cast<kernels::SkinnyKernel>(plan[at]);
  }
  return on_current_stream(call.x,
                           [&](const Stream& on) { return kernels::packed_linear(call, on); });
}

}  // namespace

void bind_packed(py::module_& m) {
  m.def("_pack_weights", &pack_weights);
  m.def("_unpack_weights", &unpack_weights);
  m.def("_packed_linear", &packed_linear, py::arg("x"), py::arg("shape"), py::arg("parts"),
        py::arg("bias"), py::arg("residual"), py::arg("activation"), py::arg("plan"),
        py::arg("out") = py::none(), py::arg("norm") = py::none(), py::arg("eps") = 0.0,
        py::arg("gate") = "");
}

}  // namespace kernwright::python
