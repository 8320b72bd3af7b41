// The steps of the gradients of LSTM and GRU, from the last one to the first; one more step makes
// the gradient of the first hidden state. The vectors are the gradients of the gates.
#include <kernwright/recurrence.cuh>

using namespace kernwright;

/// Arrays of both directions, as in the forward pass.
template <typename T>
struct BackwardCell {
  using Element = T;
  using C = Compute<T>;
  static constexpr int kGates = 1, kUnits = 2;

  const T* weights[2];  // (hidden, gates * hidden)
  const T* saved[2];
  const T* cells[2];
  T* gate_grads[2];       // laid out as the gates
  T* recurrent_grads[2];  // gradients of the products with h; LSTM: gate_grads
  const T *h0, *c0, *output;
  const T *grad_output, *grad_h_n, *grad_c_n;  // null: zero
  T *grad_h0, *grad_c0;
  C* carry;
  Int64 length, gates_step, gates_row, output_step, output_row, grad_step, grad_row;
  int hidden, batch, packed;

  /// The forward pass's step length - 1 - step.
  __device__ __forceinline__ Int64 time(Int64 step, int direction) const {
    return direction == 0 ? length - 1 - step : step;
  }
  __device__ __forceinline__ Int64 batch_offset(int direction, int b, int u) const {
    return (static_cast<Int64>(direction) * batch + b) * hidden + u;
  }
  __device__ __forceinline__ Int64 gate_offset(Int64 step, int direction, int b, int u) const {
    return time(step, direction) * gates_step + b * gates_row + u;
  }
  __device__ __forceinline__ bool has_inputs(Int64 step) const { return step < length; }

  __device__ __forceinline__ C vector(Int64 step, int direction, int b, int o, int u) const {
    if (step == 0) return 0;
    const Int64 at = gate_offset(step - 1, direction, b, u);
    return to_compute(recurrent_grads[direction][at + o * hidden]);
  }
  __device__ __forceinline__ C value_saved(Int64 step, int direction, int b, int u,
                                           int kind) const {
    const Int64 at = (time(step, direction) * batch + b) * 4 + kind;
    return to_compute(saved[direction][at * hidden + u]);
  }
  __device__ __forceinline__ C output_grad(Int64 step, int direction, int b, int u) const {
    if (grad_output == nullptr) return 0;
    const Int64 at = time(step, direction) * grad_step + b * grad_row + direction * hidden + u;
    return to_compute(grad_output[at]);
  }
  __device__ __forceinline__ static C optional_value(const T* array, Int64 at) {
    return array == nullptr ? C(0) : to_compute(array[at]);
  }
  /// Rounds to the type in memory.
  __device__ __forceinline__ C give(T* to, Int64 at, C value) const {
    const T rounded = from_compute<T>(value);
    to[at] = rounded;
    return to_compute(rounded);
  }
};

/// The state is the gradient of c.
template <typename T>
struct LstmBackward : BackwardCell<T> {
  using C = Compute<T>;
  static constexpr int kOutputs = 4, kInputs = 7;

  __device__ __forceinline__ C input(Int64 step, int direction, int b, int u, int kind) const {
    if (kind < 4) return this->value_saved(step, direction, b, u, kind);
    if (kind == 6) return this->output_grad(step, direction, b, u);
    if (kind == 5 && step + 1 == this->length)
      return this->optional_value(this->c0, this->batch_offset(direction, b, u));
    const Int64 row = this->time(step + (kind == 5), direction) * this->batch + b;
    return to_compute(this->cells[direction][row * this->hidden + u]);
  }
  __device__ __forceinline__ C state(Int64 step, int direction, int b, int u) const {
    const Int64 at = this->batch_offset(direction, b, u);
    return step > 0 ? this->carry[at] : this->optional_value(this->grad_c_n, at);
  }
  __device__ __forceinline__ void compute(Int64 step, int direction, int b, int u,
                                          const C (&product)[1], const C (&input)[7], C& state,
                                          C (&output)[4]) const {
    const Int64 at = this->batch_offset(direction, b, u);
    if (step == this->length) {
      this->grad_h0[at] = from_compute<T>(product[0]);
      this->grad_c0[at] = from_compute<T>(state);
      return;
    }
    const C i = input[0], f = input[1], g = input[2], o = input[3], before = input[5];
    const C last = step == 0 ? this->optional_value(this->grad_h_n, at) : C(0);
    const C dh = product[0] + input[6] + last, t = math_tanh(input[4]);
    const C dc = state + dh * o * (1 - t * t);
    const C made[4] = {dc * g * i * (1 - i), dc * before * f * (1 - f), dc * i * (1 - g * g),
                       dh * t * o * (1 - o)};
    const Int64 first = this->gate_offset(step, direction, b, u);
#pragma unroll
    for (int k = 0; k < 4; ++k)
      output[k] = this->give(this->gate_grads[direction], first + k * this->hidden, made[k]);
    state = dc * f;
    if (this->carry != nullptr) this->carry[at] = state;
  }
};

/// The state is the part of h's gradient that does not go through products.
template <typename T>
struct GruBackward : BackwardCell<T> {
  using C = Compute<T>;
  static constexpr int kOutputs = 3, kInputs = 6;

  __device__ __forceinline__ C input(Int64 step, int direction, int b, int u, int kind) const {
    if (kind < 4) return this->value_saved(step, direction, b, u, kind);
    if (kind == 5) return this->output_grad(step, direction, b, u);
    if (step + 1 == this->length)
      return this->optional_value(this->h0, this->batch_offset(direction, b, u));
    const Int64 at = this->time(step + 1, direction) * this->output_step + b * this->output_row;
    return to_compute(this->output[at + direction * this->hidden + u]);
  }
  __device__ __forceinline__ C state(Int64 step, int direction, int b, int u) const {
    const Int64 at = this->batch_offset(direction, b, u);
    return step > 0 ? this->carry[at] : this->optional_value(this->grad_h_n, at);
  }
  __device__ __forceinline__ void compute(Int64 step, int direction, int b, int u,
                                          const C (&product)[1], const C (&input)[6], C& state,
                                          C (&output)[3]) const {
    const Int64 at = this->batch_offset(direction, b, u);
    if (step == this->length) {
      this->grad_h0[at] = from_compute<T>(product[0] + state);
      return;
    }
    const C r = input[0], z = input[1], n = input[2], hidden_product = input[3];
    const C dh = product[0] + state + input[5];
    const C dn = dh * (1 - z) * (1 - n * n);
    const C made[3] = {dn * hidden_product * r * (1 - r), dh * (input[4] - n) * z * (1 - z), dn};
    const Int64 first = this->gate_offset(step, direction, b, u);
#pragma unroll
    for (int k = 0; k < 3; ++k) {
      const Int64 place = first + k * this->hidden;
      this->give(this->gate_grads[direction], place, made[k]);
      output[k] = this->give(this->recurrent_grads[direction], place, k < 2 ? made[k] : dn * r);
    }
    state = dh * z;
    if (this->carry != nullptr) this->carry[at] = state;
  }
};
