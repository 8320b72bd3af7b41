// Checks the arrays of the gradient of a recurrent layer, and launches its steps.
#include "base/errors.h"
#include "kernels_src/operands.h"
#include "kernels_src/recurrent/recurrence_launch.h"
#include "kernels_src/recurrent/recurrent_backward.cu.h"

namespace kernwright::kernels {
namespace {

/// The arrays in the kernels' layout.
struct BackwardArrays {
  std::array<CUdeviceptr, 2> weights, saved, cells, gate_grads, recurrent_grads;
  CUdeviceptr h0, c0, output, grad_output, grad_h_n, grad_c_n, grad_h0, grad_c0, carry;
  std::int64_t length, gates_step, gates_row, output_step, output_row, grad_step, grad_row;
  std::int32_t hidden, batch, packed;
};

const Family& backward_family() {
  static const auto& made = *new Family("recurrent_backward.cu", text::recurrent_backward_cu);
  return made;
}

struct GradientExtents {
  std::int64_t length, batch, hidden, gates;
  std::size_t directions;

  std::int64_t step() const { return gates * hidden; }
  std::int64_t wide() const { return static_cast<std::int64_t>(directions) * hidden; }
};

GradientExtents call_extents(const RecurrentGradientCall& call) {
  const std::size_t directions = call.weights.size();
  if (directions < 1 || directions > 2 || call.saved.size() != directions ||
      (call.cell == RecurrentCell::lstm && call.cells.size() != directions) ||
      call.output.ndim() != 3)
    throw InvalidArgument("a recurrent layer has weights and saved gates of 1 or 2 directions");
  const Shape& shape = call.output.shape();
  const std::size_t first = call.batch_first ? 1 : 0;
  return {shape[first], shape[1 - first], shape[2] / static_cast<std::int64_t>(directions),
          gate_count(call.cell), directions};
}

/// The call with row-major arrays, and each matrix turned; throws for what does not fit.
RecurrentGradientCall checked_call(const RecurrentGradientCall& call, const GradientExtents& e,
                                   const Stream& stream) {
  RecurrentGradientCall made = call;
  const Array& like = call.output;
  const bool lstm = call.cell == RecurrentCell::lstm;
  const Shape states{static_cast<std::int64_t>(e.directions), e.batch, e.hidden};
  const auto require = [&](Array& array, const char* name, const Shape& shape) {
    array = require_recurrent(array, name, shape, like, stream);
  };
  const auto require_any = [&](std::optional<Array>& array, const char* name, const Shape& shape) {
    if (array) require(*array, name, shape);
  };
  for (std::size_t d = 0; d < e.directions; ++d) {
    require(made.weights[d], "weight_hh", {e.step(), e.hidden});
    made.weights[d] = contiguous(made.weights[d].transpose(), stream);
    require(made.saved[d], "saved", {e.length, e.batch, 4, e.hidden});
    if (lstm) require(made.cells[d], "cells", {e.length, e.batch, e.hidden});
  }
  require(made.output, "output", like.shape());
  require_any(made.h0, "h_0", states);
  require_any(made.c0, "c_0", states);
  require_any(made.grad_output, "the gradient of output", like.shape());
  require_any(made.grad_h_n, "the gradient of h_n", states);
  require_any(made.grad_c_n, "the gradient of c_n", states);
  require_written(call.grad_h0, "the gradient of h_0", states, like);
  if (lstm != call.grad_c0.has_value())
    throw InvalidArgument("an LSTM has a gradient of c_0, and a GRU has none");
  if (lstm) require_written(*call.grad_c0, "the gradient of c_0", states, like);
  return made;
}

BackwardArrays backward_arrays(const RecurrentGradientCall& call, const GradientExtents& e,
                               const RecurrentGradients& result,
                               const std::optional<Array>& carry) {
  const bool first = call.batch_first;
  const std::int64_t step = first ? 1 : e.batch, row = first ? e.length : 1;
  return {.weights = array_addresses(call.weights),
          .saved = array_addresses(call.saved),
          .cells = array_addresses(call.cells),
          .gate_grads = array_addresses(result.gates),
          .recurrent_grads = array_addresses(result.recurrent),
          .h0 = address_or_null(call.h0),
          .c0 = address_or_null(call.c0),
          .output = call.output.address(),
          .grad_output = address_or_null(call.grad_output),
          .grad_h_n = address_or_null(call.grad_h_n),
          .grad_c_n = address_or_null(call.grad_c_n),
          .grad_h0 = call.grad_h0.address(),
          .grad_c0 = address_or_null(call.grad_c0),
          .carry = address_or_null(carry),
          .length = e.length,
          .gates_step = step * e.step(),
          .gates_row = row * e.step(),
          .output_step = step * e.wide(),
          .output_row = row * e.wide(),
          .grad_step = step * e.wide(),
          .grad_row = row * e.wide(),
          .hidden = static_cast<std::int32_t>(e.hidden),
          .batch = static_cast<std::int32_t>(e.batch),
          .packed = has_packed_rows(call.weights)};
}

}  // namespace

RecurrentGradients recurrent_backward(const RecurrentGradientCall& given, const Stream& stream) {
  const GradientExtents e = call_extents(given);
  const Stream on = stream ? stream : Stream::legacy(given.output.device());
  const RecurrentGradientCall call = checked_call(given, e, on);
  const Array& like = call.output;
  const bool lstm = call.cell == RecurrentCell::lstm;
  RecurrentGradients result;
  const Shape gates =
      call.batch_first ? Shape{e.batch, e.length, e.step()} : Shape{e.length, e.batch, e.step()};
  const auto made = [&] { return Array::empty(like.device(), gates, like.type(), on); };
  for (std::size_t d = 0; d < e.directions; ++d) {
    result.gates.push_back(made());
    result.recurrent.push_back(lstm ? result.gates.back() : made());
  }
  if (e.length == 0 || e.batch == 0) {
    hand_over_state(call.grad_h_n, call.grad_h0, on);
    if (lstm) hand_over_state(call.grad_c_n, *call.grad_c0, on);
    return result;
  }
  const RecurrenceExtent extent{.type = like.type(),
                                .hidden = e.hidden,
                                .batch = e.batch,
                                .steps = e.length + 1,
                                .directions = static_cast<int>(e.directions),
                                .gates = 1,
                                .units = 2,
                                .outputs = static_cast<int>(e.gates),
                                .inputs = lstm ? 7 : 6};
  const RecurrencePlan plan =
      plan_recurrence(recurrence_device(like.device(), on), extent, call.plan);
  const std::optional<Array> carry = carried_states(extent, plan, like, on);
  launch_recurrence(backward_family(), lstm ? "LstmBackward" : "GruBackward",
                    static_cast<int>(call.cell), backward_arrays(call, e, result, carry), extent,
                    plan, like, on);
  use_all(on, call.weights, call.saved, call.cells, call.output, call.h0, call.c0, call.grad_output,
          call.grad_h_n, call.grad_c_n, call.grad_h0, call.grad_c0, result.gates, result.recurrent,
          carry);
  return result;
}

}  // namespace kernwright::kernels
