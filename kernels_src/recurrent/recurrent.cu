// The steps of LSTM and GRU. The gates already have the inputs' products and the bias of these.
#include <kernwright/recurrence.cuh>

using namespace kernwright;

/// Arrays of both: of each direction, and of all. `carry` has the states between launches of one
/// step; nothing is kept for a gradient where `saved` is null.
template <typename T>
struct ForwardCell {
  using Element = T;
  using C = Compute<T>;
  static constexpr int kOutputs = 1, kUnits = 1;

  const T* gates[2];    // (length, batch, gates * hidden), or the batch first
  const T* weights[2];  // (gates * hidden, hidden)
  const T* bias[2];     // (gates * hidden), or null
  T* saved[2];          // (length, batch, 4, hidden)
  T* cells[2];          // (length, batch, hidden)
  const T *h0, *c0;     // (directions, batch, hidden), or null
  T *output, *h_n, *c_n;
  C* carry;
  Int64 length, gates_step, gates_row, output_step, output_row;
  int hidden, batch, packed;

  __device__ __forceinline__ Int64 time(Int64 step, int direction) const {
    return direction == 0 ? step : length - 1 - step;
  }
  __device__ __forceinline__ Int64 batch_offset(int direction, int b, int u) const {
    return (static_cast<Int64>(direction) * batch + b) * hidden + u;
  }
  __device__ __forceinline__ Int64 output_offset(Int64 step, int direction, int b, int u) const {
    return time(step, direction) * output_step + b * output_row + direction * hidden + u;
  }
  __device__ __forceinline__ static bool has_inputs(Int64) { return true; }

  /// The hidden state before a step.
  __device__ __forceinline__ C vector(Int64 step, int direction, int b, int, int u) const {
    if (step > 0) return to_compute(output[output_offset(step - 1, direction, b, u)]);
    return h0 == nullptr ? C(0) : to_compute(h0[batch_offset(direction, b, u)]);
  }
  __device__ __forceinline__ C gate(Int64 step, int direction, int b, int u, int which) const {
    const Int64 at = time(step, direction) * gates_step + b * gates_row;
    return to_compute(gates[direction][at + which * hidden + u]);
  }
  __device__ __forceinline__ C gate_bias(int direction, int u, int which) const {
    return bias[direction] == nullptr ? C(0) : to_compute(bias[direction][which * hidden + u]);
  }
  __device__ __forceinline__ void save(Int64 step, int direction, int b, int u, C first, C second,
                                       C third, C fourth) const {
    if (saved[direction] == nullptr) return;
    const Int64 at = (time(step, direction) * batch + b) * 4;
    const C value[4] = {first, second, third, fourth};
#pragma unroll
    for (int i = 0; i < 4; ++i) saved[direction][(at + i) * hidden + u] = from_compute<T>(value[i]);
  }
  /// Rounds to the type in memory: the next step and the gradient read the rounded value.
  __device__ __forceinline__ C give(Int64 step, int direction, int b, int u, C h) const {
    const T rounded = from_compute<T>(h);
    output[output_offset(step, direction, b, u)] = rounded;
    if (step + 1 == length) h_n[batch_offset(direction, b, u)] = rounded;
    return to_compute(rounded);
  }
};

/// i, f, g and o; the state is c.
template <typename T>
struct Lstm : ForwardCell<T> {
  using C = Compute<T>;
  static constexpr int kGates = 4, kInputs = 4;

  __device__ __forceinline__ C input(Int64 step, int direction, int b, int u, int kind) const {
    return this->gate(step, direction, b, u, kind) + this->gate_bias(direction, u, kind);
  }
  __device__ __forceinline__ C state(Int64 step, int direction, int b, int u) const {
    const Int64 at = this->batch_offset(direction, b, u);
    if (step > 0) return this->carry[at];
    return this->c0 == nullptr ? C(0) : to_compute(this->c0[at]);
  }
  __device__ __forceinline__ void compute(Int64 step, int direction, int b, int u,
                                          const C (&product)[4], const C (&input)[4], C& state,
                                          C (&output)[1]) const {
    const C i = sigmoid(input[0] + product[0]), f = sigmoid(input[1] + product[1]);
    const C g = math_tanh(input[2] + product[2]), o = sigmoid(input[3] + product[3]);
    const C c = f * state + i * g;
    state = c;
    output[0] = this->give(step, direction, b, u, o * math_tanh(c));
    const Int64 at = this->batch_offset(direction, b, u);
    if (this->carry != nullptr) this->carry[at] = c;
    if (step + 1 == this->length) this->c_n[at] = from_compute<T>(c);
    this->save(step, direction, b, u, i, f, g, o);
    if (this->cells[direction] != nullptr) {
      const Int64 row = this->time(step, direction) * this->batch + b;
      this->cells[direction][row * this->hidden + u] = from_compute<T>(c);
    }
  }
};

/// r, z and n; the state is h. The bias of n's product with h is inside the product with r.
template <typename T>
struct Gru : ForwardCell<T> {
  using C = Compute<T>;
  static constexpr int kGates = 3, kInputs = 4;

  __device__ __forceinline__ C input(Int64 step, int direction, int b, int u, int kind) const {
    if (kind == 3) return this->gate_bias(direction, u, 2);
    const C gate = this->gate(step, direction, b, u, kind);
    return kind == 2 ? gate : gate + this->gate_bias(direction, u, kind);
  }
  __device__ __forceinline__ C state(Int64 step, int direction, int b, int u) const {
    return this->vector(step, direction, b, 0, u);
  }
  __device__ __forceinline__ void compute(Int64 step, int direction, int b, int u,
                                          const C (&product)[3], const C (&input)[4], C& state,
                                          C (&output)[1]) const {
    const C r = sigmoid(input[0] + product[0]), z = sigmoid(input[1] + product[1]);
    const C hidden_product = product[2] + input[3];
    const C n = math_tanh(input[2] + r * hidden_product);
    state = output[0] = this->give(step, direction, b, u, n + z * (state - n));
    this->save(step, direction, b, u, r, z, n, hidden_product);
  }
};
