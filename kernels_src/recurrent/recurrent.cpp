// Checks the arrays of a recurrent layer, and launches its steps.
#include "kernels_src/recurrent/recurrent.h"

#include "base/errors.h"
#include "kernels_src/copy/copy.h"
#include "kernels_src/operands.h"
#include "kernels_src/recurrent/recurrence_launch.h"
#include "kernels_src/recurrent/recurrent.cu.h"
#include "kernels_src/zeroed_words.h"
#include "memory/transfer.h"

#include <limits>

namespace kernwright::kernels {

Array require_recurrent(const Array& array, const char* name, const Shape& shape, const Array& like,
                        const Stream& stream) {
  if (array.shape() != shape || array.type() != like.type() || &array.device() != &like.device()) {
    throw InvalidArgument(format("{} must be {} of {} on the device of the gates, got {}", name,
                                 shape_to_string(shape), scalar_name(like.type()),
                                 array.identify()));
  }
  return contiguous(array, stream);
}

void require_written(const Array& array, const char* name, const Shape& shape, const Array& like) {
  require_recurrent(array, name, shape, like, {});
  if (!array.is_contiguous() || array.read_only())
    throw InvalidArgument(
        format("{} is written and must be row-major, got {}", name, array.identify()));
}

bool has_packed_rows(const std::vector<Array>& weights) {
  for (const Array& each : weights) {
    const auto row = static_cast<std::uint64_t>(each.shape().back()) * scalar_size(each.type());
    if ((each.address() | row) % 16 != 0) return false;
  }
  return true;
}

std::optional<Array> carried_states(const RecurrenceExtent& extent, const RecurrencePlan& plan,
                                    const Array& like, const Stream& stream) {
  if (plan.is_resident()) return std::nullopt;
  const auto type = extent.type == ScalarType::float64 ? ScalarType::float64 : ScalarType::float32;
  return Array::empty(like.device(), {extent.directions, extent.batch, extent.hidden}, type,
                      stream);
}

std::optional<Array> recurrence_meetings(const RecurrenceExtent& extent, const RecurrencePlan& plan,
                                         const Stream& stream) {
  if (plan.way != RecurrenceWay::grid) return std::nullopt;
  const Dim3 grid = plan.config(extent, stream).grid;
  return zeroed_words(std::size_t{grid.y} * grid.z, stream);
}

void hand_over_state(const std::optional<Array>& from, const Array& to, const Stream& stream) {
  if (to.size() == 0) return;
  if (from) return copy_elements(to, *from, stream);
  fill(to.device(), to.address(), 0, 1, to.nbytes(), stream);
  to.use_on(stream);
}

namespace {

/// The arrays in the kernels' layout.
struct ForwardArrays {
  std::array<CUdeviceptr, 2> gates, weights, bias, saved, cells;
  CUdeviceptr h0, c0, output, h_n, c_n, carry;
  std::int64_t length, gates_step, gates_row, output_step, output_row;
  std::int32_t hidden, batch, packed;
};

const Family& forward_family() {
  static const auto& made = *new Family("recurrent.cu", text::recurrent_cu);
  return made;
}

struct LayerExtents {
  std::int64_t length, batch, hidden;
  std::int64_t directions, gates;
};

LayerExtents layer_extents(const RecurrentLayer& layer) {
  const std::size_t directions = layer.gates.size();
  const bool whole = (directions == 1 || directions == 2) && layer.weights.size() == directions &&
                     (layer.biases.empty() || layer.biases.size() == directions);
  if (!whole) throw InvalidArgument("a recurrent layer has gates and weights of 1 or 2 directions");
  const Array& gates = layer.gates.front();
  require_floating(gates, "recurrent", "gates");
  if (scalar_size(gates.type()) == 1)
    throw ArgumentError(
        format("recurrent: gates are {}, and must be float16, bfloat16, float32 or "
               "float64",
               scalar_name(gates.type())));
  const int each = gate_count(layer.cell);
  if (gates.ndim() != 3 || gates.shape()[2] < each || gates.shape()[2] % each != 0)
    throw InvalidArgument(format("gates must have the shape (length, batch, {} * hidden), got {}",
                                 each, gates.identify()));
  const std::size_t first = layer.batch_first ? 1 : 0;
  const LayerExtents made{gates.shape()[first], gates.shape()[1 - first], gates.shape()[2] / each,
                          static_cast<std::int64_t>(directions), each};
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (gates.shape()[2] > most / 4 || made.batch > most || made.length > most)
    throw InvalidArgument(format("a recurrent layer cannot be as large as {}", gates.identify()));
  return made;
}

/// The layer with row-major arrays; throws for what does not fit.
RecurrentLayer checked_layer(const RecurrentLayer& layer, const LayerExtents& e,
                             const Stream& stream) {
  RecurrentLayer made = layer;
  const Array& like = layer.gates.front();
  const Shape states{e.directions, e.batch, e.hidden};
  for (std::size_t d = 0; d < layer.gates.size(); ++d) {
    made.gates[d] = require_recurrent(layer.gates[d], "gates", like.shape(), like, stream);
    made.weights[d] = require_recurrent(layer.weights[d], "weight_hh",
                                        {e.gates * e.hidden, e.hidden}, like, stream);
    if (!layer.biases.empty())
      made.biases[d] =
          require_recurrent(layer.biases[d], "bias_hh", {e.gates * e.hidden}, like, stream);
  }
  if (layer.h0) made.h0 = require_recurrent(*layer.h0, "h_0", states, like, stream);
  if (layer.c0) made.c0 = require_recurrent(*layer.c0, "c_0", states, like, stream);
  require_written(layer.h_n, "h_n", states, like);
  const bool lstm = layer.cell == RecurrentCell::lstm;
  if (lstm != layer.c_n.has_value()) throw InvalidArgument("an LSTM has c_n, and a GRU has none");
  if (lstm) require_written(*layer.c_n, "c_n", states, like);
  return made;
}

RecurrentResult empty_results(const RecurrentLayer& layer, const LayerExtents& e,
                              const Stream& stream) {
  const Array& like = layer.gates.front();
  const auto made = [&](Shape shape) {
    return Array::empty(like.device(), std::move(shape), like.type(), stream);
  };
  const std::int64_t wide = e.directions * e.hidden;
  RecurrentResult result{.output = made(layer.batch_first ? Shape{e.batch, e.length, wide}
                                                          : Shape{e.length, e.batch, wide})};
  for (std::int64_t d = 0; layer.keep && d < e.directions; ++d) {
    result.saved.push_back(made({e.length, e.batch, 4, e.hidden}));
    if (layer.cell == RecurrentCell::lstm)
      result.cells.push_back(made({e.length, e.batch, e.hidden}));
  }
  return result;
}

ForwardArrays forward_arrays(const RecurrentLayer& layer, const LayerExtents& e,
                             const RecurrentResult& result, const std::optional<Array>& carry) {
  const std::int64_t step = e.gates * e.hidden, wide = e.directions * e.hidden;
  const bool first = layer.batch_first;
  return {.gates = array_addresses(layer.gates),
          .weights = array_addresses(layer.weights),
          .bias = array_addresses(layer.biases),
          .saved = array_addresses(result.saved),
          .cells = array_addresses(result.cells),
          .h0 = address_or_null(layer.h0),
          .c0 = address_or_null(layer.c0),
          .output = result.output.address(),
          .h_n = layer.h_n.address(),
          .c_n = address_or_null(layer.c_n),
          .carry = address_or_null(carry),
          .length = e.length,
          .gates_step = first ? step : e.batch * step,
          .gates_row = first ? e.length * step : step,
          .output_step = first ? wide : e.batch * wide,
          .output_row = first ? e.length * wide : wide,
          .hidden = static_cast<std::int32_t>(e.hidden),
          .batch = static_cast<std::int32_t>(e.batch),
          .packed = has_packed_rows(layer.weights)};
}

}  // namespace

RecurrentResult recurrent(const RecurrentLayer& given, const Stream& stream) {
  const LayerExtents e = layer_extents(given);
  const Stream on = stream ? stream : Stream::legacy(given.gates.front().device());
  const RecurrentLayer layer = checked_layer(given, e, on);
  const Array& like = layer.gates.front();
  const bool lstm = layer.cell == RecurrentCell::lstm;
  RecurrentResult result = empty_results(layer, e, on);
  if (e.length == 0 || e.batch == 0) {
    hand_over_state(layer.h0, layer.h_n, on);
    if (lstm) hand_over_state(layer.c0, *layer.c_n, on);
    return result;
  }
  const RecurrenceExtent extent{.type = like.type(),
                                .hidden = e.hidden,
                                .batch = e.batch,
                                .steps = e.length,
                                .directions = static_cast<int>(e.directions),
                                .gates = static_cast<int>(e.gates),
                                .units = 1,
                                .outputs = 1,
                                .inputs = 4};
  const RecurrencePlan plan =
      plan_recurrence(recurrence_device(like.device(), on), extent, layer.plan);
  const std::optional<Array> carry = lstm ? carried_states(extent, plan, like, on) : std::nullopt;
  launch_recurrence(forward_family(), lstm ? "Lstm" : "Gru", static_cast<int>(layer.cell),
                    forward_arrays(layer, e, result, carry), extent, plan, like, on);
  use_all(on, layer.gates, layer.weights, layer.biases, layer.h0, layer.c0, layer.h_n, layer.c_n,
          result.output, result.saved, result.cells, carry);
  return result;
}

}  // namespace kernwright::kernels
