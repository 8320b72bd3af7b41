// Gated units over rows: gate_halves of one array are views of it, never copies.
#include "base/errors.h"
#include "base/format.h"
#include "base/math.h"
#include "kernels_src/activations/activations.h"
#include "kernels_src/activations/gates.cu.h"
#include "kernels_src/family.h"
#include "kernels_src/operands.h"

#include <string>
#include <utility>

namespace kernwright::kernels {
namespace {

/// GateRows of gates.cu.
struct GateRows {
  std::int64_t rows, cols;
  std::int64_t gate_stride, up_stride, grad_stride, gate_grad_stride, up_grad_stride;
};

const LazyKernel& gate_kernel(bool backward, Activation kind, ScalarType type, int width,
                              const PackGrid& grid) {
  static const auto& family = *new Family("gates.cu", text::gates_cu);
  return family.instance(activation_key(backward, kind, type, width, grid), [&] {
    return activation_instance(backward ? "gate_backward" : "gate_forward", kind, type, width,
                               grid);
  });
}

/// Both gate_halves of the last axis.
std::pair<Array, Array> gate_halves(const Array& array) {
  if (array.ndim() == 0 || array.shape().back() % 2 != 0) {
    throw InvalidArgument(
        format("a {} cannot hold gate and up: its last axis must have an even "
               "number of elements",
               array.identify()));
  }
  const std::int64_t half = array.shape().back() / 2;
  const int last = array.ndim() - 1;
  return {array.slice(last, 0, half, 1), array.slice(last, half, half, 1)};
}

/// Merges all rows into one if the rows follow each other without gaps.
void merge_gate_rows(GateRows& rows) {
  for (const std::int64_t stride : {rows.gate_stride, rows.up_stride, rows.grad_stride,
                                    rows.gate_grad_stride, rows.up_grad_stride}) {
    if (stride != rows.cols) return;
  }
  const std::int64_t all = rows.rows * rows.cols;
  rows = {1, all, all, all, all, all, all};
}

/// The bytes of the strides, which count where there are several rows.
std::uint64_t gate_stride_bits(const GateRows& rows, ScalarType type) {
  if (rows.rows == 1) return 0;
  const std::int64_t all = rows.cols | rows.gate_stride | rows.up_stride | rows.grad_stride |
                           rows.gate_grad_stride | rows.up_grad_stride;
  return static_cast<std::uint64_t>(all) * scalar_size(type);
}

PackGrid gate_grid(const GateRows& rows, int width, const Stream& on) {
  return pack_grid(rows.rows * ceil_div(rows.cols, width), width, on, LaunchChoice::gate_packs, 1);
}

}  // namespace

Array gate(const ActivationCall& call, const Array& gate, const std::optional<Array>& up,
           const Stream& stream) {
  require_floating(gate, "gated unit", "gate");
  const auto [g, u] = up ? std::pair(gate, *up) : gate_halves(gate);
  require_alike(g, "gate", u, "up");
  const Stream on = stream ? stream : Stream::legacy(g.device());
  Array result = Array::empty(g.device(), g.shape(), g.type(), on);
  if (g.size() == 0) return result;
  const RowView gates = row_view(g, on), ups = row_view(u, on);
  const std::int64_t cols = gates.cols;
  GateRows rows = {gates.rows, cols, gates.stride, ups.stride, cols, cols, cols};
  merge_gate_rows(rows);
  const int width = pack_width(g.type(), {gates.array.address(), ups.array.address(),
                                          result.address(), gate_stride_bits(rows, g.type())});
  PackGrid grid = gate_grid(rows, width, on);
  grid.config.programmatic_dependent = overlaps_launches(g.device(), grid.config.grid.x);
  const Kernel& kernel = gate_kernel(false, call.kind, g.type(), width, grid).on(g.device());
  dispatch_compute(g.type(), [&](auto real) {
    launch(kernel, grid.config, gates.array.address(), ups.array.address(), result.address(), rows,
           Knobs<decltype(real)>(call));
  });
  gates.array.use_on(on);
  ups.array.use_on(on);
  result.use_on(on);
  return result;
}

GateGradients gate_backward(const ActivationCall& call, const Array& dy, const Array& gate,
                            const std::optional<Array>& up, const Stream& stream) {
  require_floating(gate, "gated unit", "gate");
  const auto [g, u] = up ? std::pair(gate, *up) : gate_halves(gate);
  require_alike(g, "gate", u, "up");
  require_alike(dy, "the gradient", g, "gate");
  const Stream on = stream ? stream : Stream::legacy(g.device());
  GateGradients made{Array::empty(g.device(), gate.shape(), g.type(), on), std::nullopt};
  if (up) made.up = Array::empty(g.device(), g.shape(), g.type(), on);
  if (g.size() == 0) return made;
  const auto [dg, du] = up ? std::pair(made.gate, *made.up) : gate_halves(made.gate);
  const RowView gates = row_view(g, on), ups = row_view(u, on), grads = row_view(dy, on);
  const std::int64_t cols = gates.cols, out = up ? cols : 2 * cols;
  GateRows rows = {gates.rows, cols, gates.stride, ups.stride, grads.stride, out, out};
  merge_gate_rows(rows);
  const int width =
      pack_width(g.type(), {gates.array.address(), ups.array.address(), grads.array.address(),
                            dg.address(), du.address(), gate_stride_bits(rows, g.type())});
  const PackGrid grid = gate_grid(rows, width, on);
  const Kernel& kernel = gate_kernel(true, call.kind, g.type(), width, grid).on(g.device());
  dispatch_compute(g.type(), [&](auto real) {
    launch(kernel, grid.config, grads.array.address(), gates.array.address(), ups.array.address(),
           dg.address(), du.address(), rows, Knobs<decltype(real)>(call));
  });
  for (const Array* each : {&gates.array, &ups.array, &grads.array, &dg, &du}) each->use_on(on);
  return made;
}

}  // namespace kernwright::kernels
