// Matrix products of 16-bit floats with the steps behind them.
#include "base/errors.h"
#include "base/format.h"
#include "bindings/kernels/bind_kernels.h"
#include "bindings/kernels/kernel_calls.h"
#include "bindings/values/dtype.h"
#include "kernels_src/gemm/gemm.h"
#include "kernels_src/gemm/gemm_layout.h"
#include "kernels_src/products/product_planner.h"
#include "kernels_src/products/scaled_matmul.h"

#include <string>
#include <tuple>
#include <vector>

namespace kernwright::python {
namespace {

/// Rows, columns, stages, groups, whether they take turns, blocks of a cluster, and where it is
/// true whether the cluster splits k.
using TileNumbers = std::vector<int>;

kernels::GemmTile make_tile(const TileNumbers& numbers) {
  if (numbers.size() != 6 && numbers.size() != 7) {
    throw ArgumentError(format("a tile of a product has 6 or 7 numbers, not {}", numbers.size()));
  }
  const bool split_k = numbers.size() > 6 && numbers[6] != 0;
  return {numbers[0], numbers[1], numbers[2], numbers[3], numbers[4] != 0, numbers[5], split_k};
}

/// Rows, columns, stages.
using MmaTileNumbers = std::tuple<int, int, int>;
/// Rows, columns, those of a thread, depth, stages.
using FmaTileNumbers = std::tuple<int, int, int, int, int, int>;

/// The plan that a test or a benchmark asks for; nothing where the planner decides.
std::optional<kernels::GemmPlan> make_plan(const std::string& kernel, int splits,
                                           const std::optional<TileNumbers>& tile,
                                           const std::optional<MmaTileNumbers>& mma_tile,
                                           const std::optional<FmaTileNumbers>& fma_tile) {
  if (kernel == "plain") return kernels::PlainPlan{};
  if (kernel != "auto" && kernel != "mma")
    throw ArgumentError("the kernel of a product is auto, mma or plain, not " + kernel);
  if (mma_tile) {
    const auto& [rows, columns, stages] = *mma_tile;
    return kernels::MmaPlan{kernels::MmaTile{rows, columns, stages}, splits};
  }
  if (kernel == "mma") return kernels::MmaPlan{{}, splits};
  if (fma_tile) {
    const auto& [rows, columns, thread_rows, thread_columns, depth, stages] = *fma_tile;
    return kernels::FmaPlan{
        kernels::FmaTile{rows, columns, thread_rows, thread_columns, depth, stages}, splits};
  }
  if (tile) return kernels::WgmmaPlan{make_tile(*tile), splits};
  if (splits != 0) return kernels::WgmmaPlan{{}, splits};
  return std::nullopt;
}

Array gemm(py::handle a, py::handle b, py::handle bias, py::handle c, float alpha, float beta,
           const std::optional<std::string>& activation, const std::optional<std::string>& gate,
           const py::object& dtype, const std::optional<TileNumbers>& tile, int splits,
           const std::optional<std::string>& precision, const std::string& kernel,
           const std::optional<MmaTileNumbers>& mma_tile,
           const std::optional<std::pair<py::object, py::object>>& line_scales,
           const std::optional<std::pair<py::object, py::object>>& block_scales, bool fast_accum,
           const std::string& expression, const std::optional<FmaTileNumbers>& fma_tile) {
  kernels::Gemm gemm{.a = array_operand(a, "a"), .b = array_operand(b, "b")};
  gemm.epilogue = {.alpha = alpha,
                   .beta = beta,
                   .bias = optional_operand(bias, "bias"),
                   .c = optional_operand(c, "c")};
  if (activation) gemm.epilogue.activation = kernels::product_activation(*activation);
  gemm.epilogue.expression = expression;
  if (gate) gemm.epilogue.gate = kernels::product_activation(*gate);
  if (!dtype.is_none()) gemm.type = scalar_argument(dtype);
  gemm.tf32 = is_tf32(precision);
  gemm.fast_accum = fast_accum;
  if (line_scales) {
    gemm.epilogue.row_scales = array_operand(line_scales->first, "scales of rows");
    gemm.epilogue.column_scales = array_operand(line_scales->second, "scales of columns");
  }
  if (block_scales) {
    gemm.block_scales = {array_operand(block_scales->first, "scales of a"),
                         array_operand(block_scales->second, "scales of b")};
  }
  const auto plan = make_plan(kernel, splits, tile, mma_tile, fma_tile);
  if (plan) gemm.plan = *plan;
  return on_current_stream(gemm.a, [&](const Stream& stream) {
    return plan ? gemm.run(stream) : run_gemm(gemm, stream);
  });
}

Array scaled_matmul(py::handle a, py::handle b, py::handle a_scales, py::handle b_scales,
                    py::handle bias, const py::object& dtype, bool fast_accum) {
  const kernels::ScaledMatmul gemm{.a = array_operand(a, "a"),
                                   .b = array_operand(b, "b"),
                                   .a_scales = array_operand(a_scales, "scale_a"),
                                   .b_scales = array_operand(b_scales, "scale_b"),
                                   .bias = optional_operand(bias, "bias"),
                                   .type = scalar_argument(dtype),
                                   .fast_accum = fast_accum};
  return on_current_stream(
      gemm.a, [&](const Stream& stream) { return kernels::scaled_matmul(gemm, stream); });
}

/// As make_tile() takes them.
py::list tiles(bool promotes, bool block_scales, bool split_k) {
  py::list all;
  if (split_k) {
    for (const kernels::GemmTile& tile : kernels::split_k_tiles(block_scales)) {
      all.append(py::make_tuple(tile.rows, tile.columns, tile.stages, tile.groups, tile.ping_pong,
                                tile.cluster, true));
    }
    return all;
  }
  for (const kernels::GemmTile& tile : kernels::gemm_tiles(promotes, block_scales)) {
    all.append(py::make_tuple(tile.rows, tile.columns, tile.stages, tile.groups, tile.ping_pong,
                              tile.cluster));
  }
  return all;
}

py::list mma_tiles() {
  py::list all;
  for (kernels::MmaTile tile : kernels::mma_tiles()) {
    for (tile.stages = 3; tile.stages <= 4; ++tile.stages) {
      all.append(py::make_tuple(tile.rows, tile.columns, tile.stages));
    }
  }
  return all;
}

py::list fma_tiles(std::size_t element) {
  py::list all;
  for (const kernels::FmaTile& tile : kernels::fma_tiles(element)) {
    all.append(py::make_tuple(tile.rows, tile.columns, tile.thread_rows, tile.thread_columns,
                              tile.depth, tile.stages));
  }
  return all;
}

std::string choice(std::int64_t rows, std::int64_t columns, std::int64_t inner,
                   std::int64_t batches, int multiprocessors, std::size_t in_bytes, bool promotes,
                   bool b_turned, bool block_scales, int bandwidth) {
  const auto pitch = [&](std::int64_t extent) {
    return kernels::operand_pitch(extent * static_cast<std::int64_t>(in_bytes));
  };
  return kernels::describe(kernels::choose_gemm({.rows = rows,
                                                 .columns = columns,
                                                 .inner = inner,
                                                 .batches = batches,
                                                 .multiprocessors = multiprocessors,
                                                 .bandwidth = bandwidth,
                                                 .in_bytes = in_bytes,
                                                 .promotes = promotes,
                                                 .block_scales = block_scales,
                                                 .b_turned = b_turned,
                                                 .a_pitch = pitch(inner),
                                                 .b_pitch = pitch(b_turned ? inner : columns)}));
}

}  // namespace

void bind_gemm(py::module_& m) {
  m.def("_gemm", &gemm, py::arg("a"), py::arg("b"), py::kw_only(), py::arg("bias") = py::none(),
        py::arg("c") = py::none(), py::arg("alpha") = 1.0f, py::arg("beta") = 1.0f,
        py::arg("activation") = py::none(), py::arg("gate") = py::none(),
        py::arg("dtype") = py::none(), py::arg("tile") = py::none(), py::arg("splits") = 0,
        py::arg("precision") = py::none(), py::arg("kernel") = "auto",
        py::arg("mma_tile") = py::none(), py::arg("line_scales") = py::none(),
        py::arg("block_scales") = py::none(), py::arg("fast_accum") = false,
        py::arg("expression") = "", py::arg("fma_tile") = py::none());
  m.def("_scaled_matmul", &scaled_matmul);
  m.def("_gemm_tiles", &tiles, py::arg("promotes") = false, py::arg("block_scales") = false,
        py::arg("split_k") = false);
  m.def("_mma_tiles", &mma_tiles);
  m.def("_fma_tiles", &fma_tiles);
  m.def("_gemm_choice", &choice, py::arg("rows"), py::arg("columns"), py::arg("inner"),
        py::arg("batches") = 1, py::arg("multiprocessors") = 132, py::arg("in_bytes") = 2,
        py::arg("promotes") = false, py::arg("b_turned") = true, py::arg("block_scales") = false,
        py::arg("bandwidth") = kernels::GemmSize{}.bandwidth);
}

}  // namespace kernwright::python
