// Products of groups of rows and the routing of a mixture of experts, for kernwright.nn.
#include "base/errors.h"
#include "base/format.h"
#include "bindings/kernels/bind_kernels.h"
#include "bindings/kernels/kernel_calls.h"
#include "bindings/values/dtype.h"
#include "kernels_src/experts/permute.h"
#include "kernels_src/experts/route.h"
#include "kernels_src/gemm/grouped/grouped_gemm.h"

#include <string>
#include <tuple>

namespace kernwright::python {
namespace {

kernels::RowGroups make_row_groups(py::handle numbers, const std::string& kind) {
  using Kind = kernels::RowGroups::Kind;
  const Kind parsed = kind == "ends" ? Kind::ends : kind == "counts" ? Kind::counts : Kind::offsets;
  return {array_operand(numbers, kind == "counts" ? "counts" : "offsets"), parsed};
}

std::optional<kernels::GroupedScales> make_grouped_scales(py::handle scale_a, py::handle scale_b) {
  if (scale_a.is_none() != scale_b.is_none()) {
    throw ArgumentError(format("scale_a and scale_b are given together, and {} is None",
                               scale_a.is_none() ? "scale_a" : "scale_b"));
  }
  if (scale_a.is_none()) return std::nullopt;
  return kernels::GroupedScales{array_operand(scale_a, "scale_a"),
                                array_operand(scale_b, "scale_b")};
}

Array grouped_product(py::handle x, py::handle weights, py::handle numbers, const std::string& kind,
                      py::handle bias, const std::optional<std::string>& activation,
                      const std::optional<std::string>& gate,
                      const std::optional<std::tuple<int, int, int, int, bool, int>>& tile,
                      const std::optional<std::tuple<int, int, int>>& mma_tile, bool by_mma,
                      py::handle scale_a, py::handle scale_b, const py::object& dtype,
                      bool fast_accum,
                      const std::optional<std::tuple<int, int, int, int, int, int>>& fma_tile,
                      py::handle out) {
  kernels::GroupedGemm call{.x = array_operand(x, "x"),
                            .weights = array_operand(weights, "weights"),
                            .groups = make_row_groups(numbers, kind),
                            .scales = make_grouped_scales(scale_a, scale_b),
                            .bias = optional_operand(bias, "bias"),
                            .by_mma = by_mma,
                            .fast_accum = fast_accum,
                            .out = optional_operand(out, "out")};
  if (!dtype.is_none()) call.type = scalar_argument(dtype);
  if (activation) call.activation = kernels::product_activation(*activation, true);
  if (gate) call.gate = kernels::product_activation(*gate, true);
  if (tile) {
    const auto& [rows, columns, stages, groups, ping_pong, cluster] = *tile;
    call.tile = kernels::GemmTile{rows, columns, stages, groups, ping_pong, cluster};
  }
  if (mma_tile) {
    const auto& [rows, columns, stages] = *mma_tile;
    call.mma_tile = kernels::MmaTile{rows, columns, stages};
  }
  if (fma_tile) {
    const auto& [rows, columns, thread_rows, thread_columns, depth, stages] = *fma_tile;
    call.fma_tile = kernels::FmaTile{rows, columns, thread_rows, thread_columns, depth, stages};
  }
  return on_current_stream(call.x, [&](const Stream& stream) { return call.run(stream); });
}

Array grouped_gradient(py::handle grad, py::handle x, py::handle numbers, const std::string& kind,
                       const py::object& dtype,
                       const std::optional<std::tuple<int, int, int, int, bool, int>>& tile,
                       bool by_mma) {
  kernels::GroupedGradient call{.grad = array_operand(grad, "grad"),
                                .x = array_operand(x, "x"),
                                .groups = make_row_groups(numbers, kind),
                                .by_mma = by_mma};
  if (!dtype.is_none()) call.type = scalar_argument(dtype);
  if (tile) {
    const auto& [rows, columns, stages, groups, ping_pong, cluster] = *tile;
    call.tile = kernels::GemmTile{rows, columns, stages, groups, ping_pong, cluster};
  }
  return on_current_stream(call.x, [&](const Stream& stream) { return call.run(stream); });
}

std::string grouped_choice(std::int64_t rows, std::int64_t columns, std::int64_t inner,
                           std::int64_t groups, bool gated, int multiprocessors, bool blockwise,
                           std::int64_t capacity) {
  return kernels::describe(kernels::choose_gemm({.rows = rows,
                                                 .columns = columns,
                                                 .inner = inner,
                                                 .multiprocessors = multiprocessors,
                                                 .in_bytes = blockwise ? 1u : 2u,
                                                 .promotes = blockwise,
                                                 .block_scales = blockwise,
                                                 .b_turned = true,
                                                 .gated = gated,
                                                 .groups = groups,
                                                 .capacity = capacity}));
}

py::tuple route_tokens(py::handle logits, int chosen, bool sigmoid, bool renormalize,
                       py::handle bias, int groups, int groups_kept, float scale) {
  const Array input = array_operand(logits, "logits");
  const kernels::RouteOptions options{.chosen = chosen,
                                      .sigmoid = sigmoid,
                                      .renormalize = renormalize,
                                      .bias = optional_operand(bias, "bias"),
                                      .groups = groups,
                                      .groups_kept = groups_kept,
                                      .scale = scale};
  const kernels::Routes made = on_current_stream(
      input, [&](const Stream& stream) { return kernels::route(input, options, stream); });
  return py::make_tuple(made.weights, made.experts);
}

py::tuple permute_tokens(py::handle x, py::handle experts, std::int64_t count) {
  const Array input = array_operand(x, "x"), chosen = array_operand(experts, "experts");
  const kernels::Permuted made = on_current_stream(
      input, [&](const Stream& stream) { return kernels::permute(input, chosen, count, stream); });
  return py::make_tuple(made.rows, made.offsets, made.positions, made.sources);
}

Array unpermute_tokens(py::handle rows, py::handle positions, py::handle weights, py::handle out) {
  const Array source = array_operand(rows, "rows"), places = array_operand(positions, "positions");
  const std::optional<Array> factors = optional_operand(weights, "weights");
  const std::optional<Array> target = optional_operand(out, "out");
  return on_current_stream(source, [&](const Stream& stream) {
    return kernels::unpermute(source, places, factors, target, stream);
  });
}

}  // namespace

void bind_experts(py::module_& m) {
  m.def("_grouped_product", &grouped_product, py::arg("x"), py::arg("weights"), py::arg("numbers"),
        py::arg("kind"), py::arg("bias") = py::none(), py::arg("activation") = py::none(),
        py::arg("gate") = py::none(), py::arg("tile") = py::none(),
        py::arg("mma_tile") = py::none(), py::arg("by_mma") = false,
        py::arg("scale_a") = py::none(), py::arg("scale_b") = py::none(),
        py::arg("dtype") = py::none(), py::arg("fast_accum") = false,
        py::arg("fma_tile") = py::none(), py::arg("out") = py::none());
  m.def("_grouped_gradient", &grouped_gradient, py::arg("grad"), py::arg("x"), py::arg("numbers"),
        py::arg("kind"), py::arg("dtype") = py::none(), py::arg("tile") = py::none(),
        py::arg("by_mma") = false);
  m.def("_grouped_choice", &grouped_choice, py::arg("rows"), py::arg("columns"), py::arg("inner"),
        py::arg("groups"), py::arg("gated") = false, py::arg("multiprocessors") = 132,
        py::arg("of_blocks") = false, py::arg("capacity") = 0);
  m.def("_route", &route_tokens);
  m.def("_permute", &permute_tokens);
  m.def("_unpermute", &unpermute_tokens, py::arg("rows"), py::arg("positions"), py::arg("weights"),
        py::arg("out") = py::none());
}

}  // namespace kernwright::python
