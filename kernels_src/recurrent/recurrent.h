// The recurrent part of one layer of LSTM or GRU, in one direction or two.
#pragma once

#include "array/array.h"
#include "core/stream.h"
#include "kernels_src/recurrent/recurrence_plan.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace kernwright::kernels {

enum class RecurrentCell : std::uint8_t { lstm, gru };

/// LSTM has the gates i, f, g, o, GRU r, z, n. One array of a direction; the second direction goes
/// from the last element of the sequence to the first. All are of one of float16, bfloat16,
/// float32, float64 and on one device.
struct RecurrentLayer {
  RecurrentCell cell = RecurrentCell::lstm;
  std::vector<Array> gates;     ///< (length, batch, gates * hidden): products with inputs, biased
  std::vector<Array> weights;   ///< (gates * hidden, hidden)
  std::vector<Array> biases;    ///< (gates * hidden,) of the products with h; or none
  std::optional<Array> h0, c0;  ///< (directions, batch, hidden); nothing: zeros
  Array h_n;                    ///< written, row-major
  std::optional<Array> c_n;     ///< written; of an LSTM
  bool batch_first = false;     ///< gates and output are (batch, length, ...)
  bool keep = false;            ///< makes `saved` and `cells`
  std::optional<RecurrenceRequest> plan{};
};

struct RecurrentResult {
  Array output;                ///< (length, batch, directions * hidden)
  std::vector<Array> saved{};  ///< (length, batch, 4, hidden): gates; of a GRU with W_hn h + b_hn
  std::vector<Array> cells{};  ///< (length, batch, hidden); of an LSTM
};

/// Queued on `stream` (empty: the device's legacy stream). Sums are of float32 (float64 of
/// float64), in an order that shapes and device decide. Throws InvalidArgument for what does not
/// fit.
RecurrentResult recurrent(const RecurrentLayer& layer, const Stream& stream = {});

/// The gradient of a layer's recurrent part.
struct RecurrentGradientCall {
  RecurrentCell cell = RecurrentCell::lstm;
  std::vector<Array> weights;        ///< the layer's weights
  std::vector<Array> saved, cells;   ///< of recurrent()
  Array output;                      ///< of recurrent()
  std::optional<Array> h0, c0;       ///< the layer's initial state
  std::optional<Array> grad_output;  ///< nothing: zeros, as of the next two
  std::optional<Array> grad_h_n, grad_c_n;
  Array grad_h0;                 ///< written, row-major
  std::optional<Array> grad_c0;  ///< written; of an LSTM
  bool batch_first = false;
  std::optional<RecurrenceRequest> plan{};
};

struct RecurrentGradients {
  std::vector<Array> gates;      ///< shaped as the layer's gates
  std::vector<Array> recurrent;  ///< of the products with h: `gates` itself of an LSTM
};

/// The gradient of recurrent().
RecurrentGradients recurrent_backward(const RecurrentGradientCall& call, const Stream& stream = {});

}  // namespace kernwright::kernels
