// Steps of a recurrence: each step multiplies a matrix by the vector of the previous step, and
// computes a few values of every hidden unit from the products. A Cell defines the values.
//
// The blocks of a group share the hidden units of some rows of the batch. kInCluster: a group is a
// cluster; each block keeps rows of the matrix in shared memory through all steps, and sends the
// values of its units to the shared memory of all peers. kInGrid: the values go through global
// memory, and the resident blocks of the whole grid meet after each step. kStepByStep: a launch
// computes one step, reads the matrix from memory, and needs no other block.
#pragma once

#include <kernwright/activations.cuh>
#include <kernwright/mbarrier.cuh>

namespace kernwright {

constexpr int kMostRecurrenceThreads = 512;

enum RecurrenceWay { kStepByStep, kInCluster, kInGrid };

struct RecurrenceShape {
  Int64 first, steps;  ///< of this launch
  unsigned* meetings;  ///< arrival counters, one per group; zero before and after
  int hidden, batch;
  int units;  ///< hidden units of a block
  int rows;   ///< rows of the batch of a block, a multiple of a pass's rows
};

/// Adds each of N values over the lanes of a warp, in a fixed order. Lane l gets the sum of value l
/// / (32 / N). Each round halves the values of a lane; the recursion keeps all values in registers.
template <int N, int kDistance = 16, int kSize, typename C>
__device__ __forceinline__ C spread_sums(C (&value)[kSize], int lane) {
  if constexpr (N == 1) {
    C sum = value[0];
#pragma unroll
    for (int distance = kDistance; distance > 0; distance /= 2)
      sum += __shfl_xor_sync(~0u, sum, distance);
    return sum;
  } else {
    const bool upper = (lane & kDistance) != 0;
#pragma unroll
    for (int j = 0; j < N / 2; ++j) {
      const C sent = upper ? value[j] : value[j + N / 2];
      const C kept = upper ? value[j + N / 2] : value[j];
      value[j] = kept + __shfl_xor_sync(~0u, sent, kDistance);
    }
    return spread_sums<N / 2, kDistance / 2>(value, lane);
  }
}

/// Stores into the shared memory of a block of the cluster; the barrier there counts the bytes.
__device__ __forceinline__ void send_number(unsigned to, float value, unsigned full) {
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(to),
      "r"(__float_as_uint(value)), "r"(full)
      : "memory");
}
__device__ __forceinline__ void send_number(unsigned to, double value, unsigned full) {
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %1, [%2];" ::"r"(to),
      "l"(__double_as_longlong(value)), "r"(full)
      : "memory");
}

/// One thread of each block of a group calls it between two barriers of the block: all blocks have
/// arrived `count` times in all, and all earlier writes of the blocks are visible.
__device__ __forceinline__ void meet_in_grid(unsigned* arrived, unsigned count) {
  asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(arrived) : "memory");
  unsigned found;
  do {
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(found) : "l"(arrived) : "memory");
  } while (found < count);
}
/// The last arrival, where nobody waits: the last block resets the counter.
__device__ __forceinline__ void leave_grid(unsigned* arrived, unsigned count) {
  unsigned before;
  asm volatile("atom.relaxed.gpu.global.add.u32 %0, [%1], 1;"
               : "=r"(before)
               : "l"(arrived)
               : "memory");
  if (before + 1 == count)
    asm volatile("st.relaxed.gpu.global.u32 [%0], 0;" ::"l"(arrived) : "memory");
}

/// A block of a recurrence. A pass of a warp computes kUnits units of kRowsAtOnce rows of the
/// batch.
template <typename Cell, int kRowsAtOnce, RecurrenceWay kWay>
class Recurrence {
  using T = typename Cell::Element;
  using C = Compute<T>;
  static constexpr int kGates = Cell::kGates, kOutputs = Cell::kOutputs, kUnits = Cell::kUnits;
  static constexpr int kPack = 16 / sizeof(T);
  static constexpr int kSlots = kGates * kUnits == 3 ? 4 : kGates * kUnits;
  static constexpr int kAccumulators = kSlots * kRowsAtOnce, kSumLanes = 32 / kAccumulators;
  static constexpr bool kResident = kWay != kStepByStep, kSends = kWay == kInCluster;
  static constexpr int kBuffers = kResident ? 2 : 1, kVectors = kSends ? 2 : 1;
  static constexpr int kAhead = 2;  // inputs of the next step that a thread holds

 public:
  __device__ Recurrence(const Cell& cell, const RecurrenceShape& shape, unsigned char* memory,
                        Mbarrier* full, Mbarrier* empty)
      : cell_(cell), shape_(shape), full_(full), empty_(empty) {
    direction_ = static_cast<int>(blockIdx.z);
    first_unit_ = static_cast<int>(blockIdx.x) * shape.units;
    units_ = max(0, min(shape.units, shape.hidden - first_unit_));
    first_row_ = static_cast<int>(blockIdx.y) * shape.rows;
    rows_ = min(shape.rows, shape.batch - first_row_);
    extent_ = kOutputs * shape.hidden;
    pitch_ = (extent_ + kPack - 1) / kPack * kPack;
    lane_ = static_cast<int>(threadIdx.x % 32);
    warp_ = static_cast<int>(threadIdx.x / 32);
    warps_ = static_cast<int>(blockDim.x / 32);
    weights_ = reinterpret_cast<T*>(memory);
    const long long held = kResident ? 1LL * kGates * shape.units * pitch_ : 0;
    vectors_ = reinterpret_cast<C*>(weights_ + held);
    inputs_ = vectors_ + kVectors * shape.rows * pitch_;
    states_ = inputs_ + kBuffers * Cell::kInputs * shape.rows * shape.units;
  }

  __device__ __forceinline__ void run() {
    begin();
    const int steps = static_cast<int>(shape_.steps);
    for (int i = 0; i < steps; ++i) {
      const Int64 step = shape_.first + i;
      const int now = kResident ? i % 2 : 0;
      if (i > 0) receive(i, now);
      __syncthreads();
      const bool more = i + 1 < steps;
      if (kSends && i > 0 && more) release(1 - now);
      C ahead[kAhead];
      if (more) load_inputs(step + 1, ahead);
      for (int u = warp_ * kUnits; u < units_; u += warps_ * kUnits) {
        for (int row = 0; row < rows_; row += kRowsAtOnce) pass(i, now, u, row, more);
      }
      if (more) store_inputs(step + 1, 1 - now, ahead);
    }
    if (kWay == kInGrid && threadIdx.x == 0) leave_grid(meetings(), steps * gridDim.x);
  }

 private:
  /// The position of value `o` of unit `u` in a vector: of memory, or beside the unit's further
  /// values, which are then sent together.
  __device__ __forceinline__ int place(int o, int u) const {
    return kSends ? u * kOutputs + o : o * shape_.hidden + u;
  }
  __device__ __forceinline__ const T* matrix_row(int gate, int unit) const {
    return cell_.weights[direction_] +
           (static_cast<long long>(gate) * shape_.hidden + first_unit_ + unit) * extent_;
  }
  __device__ __forceinline__ int peers() const { return kSends ? gridDim.x : 1; }
  __device__ __forceinline__ unsigned* meetings() const {
    return shape_.meetings + blockIdx.z * gridDim.y + blockIdx.y;
  }

  __device__ __forceinline__ void begin() {
    if (peers() > 1) begin_cluster();
    if constexpr (kResident) load_weights();
    load_vectors(shape_.first);
    for (int row = warp_; row < shape_.rows; row += warps_) {
      for (int k = lane_; k < pitch_; k += 32) {
        if (k >= extent_) vectors_[row * pitch_ + k] = 0;
        if (kSends && (k >= extent_ || row >= rows_))
          vectors_[(shape_.rows + row) * pitch_ + k] = 0;
      }
      for (int u = lane_; row < rows_ && u < units_; u += 32) {
        states_[row * shape_.units + u] =
            cell_.state(shape_.first, direction_, first_row_ + row, first_unit_ + u);
      }
    }
    find_inputs();
    C ahead[kAhead];
    load_inputs(shape_.first, ahead);
    store_inputs(shape_.first, 0, ahead);
  }

  /// From memory; zeros where there are no rows.
  __device__ __forceinline__ void load_vectors(Int64 step) {
    for (int row = warp_; row < shape_.rows; row += warps_) {
      for (int o = 0; o < kOutputs; ++o) {
#pragma unroll 4
        for (int u = lane_; u < shape_.hidden; u += 32) {
          vectors_[row * pitch_ + place(o, u)] =
              row < rows_ ? C(cell_.vector(step, direction_, first_row_ + row, o, u)) : C(0);
        }
      }
    }
  }

  __device__ __forceinline__ void begin_cluster() {
#if __CUDA_ARCH__ >= 900
    if (threadIdx.x == 0) {
      for (int i = 0; i < 2; ++i) {
        full_[i].init(1);
        empty_[i].init(gridDim.x);
      }
      Mbarrier::publish();
      for (int i = 1; i < 3; ++i) expect(i);
    }
    __syncthreads();
    arrive_in_cluster();
    wait_for_cluster();
    const unsigned rank = lane_ / kRowsAtOnce;
    if (rank < gridDim.x) {
      vectors_there_ = address_in_block(shared_address(vectors_), rank);
      full_there_ = address_in_block(shared_address(full_), rank);
    }
#endif
  }

  /// By one thread: the vector of that step of the launch will come.
  __device__ __forceinline__ void expect(int i) {
#if __CUDA_ARCH__ >= 900
    if (i < shape_.steps) full_[i % 2].arrive_expecting(rows_ * extent_ * sizeof(C));
#endif
  }

  /// The vector of step i of the launch; by all threads.
  __device__ __forceinline__ void receive(int i, int now) {
    if constexpr (kWay == kInGrid) {
      __syncthreads();
      if (threadIdx.x == 0) meet_in_grid(meetings(), i * gridDim.x);
      __syncthreads();
      load_vectors(shape_.first + i);
    }
#if __CUDA_ARCH__ >= 900
    if (peers() == 1) return;
    full_[now].wait((i - 1) / 2 % 2);
    if (threadIdx.x == 0) expect(i + 2);
#endif
  }

  /// Tells all blocks that this one has read a vector, which may be written then.
  __device__ __forceinline__ void release(int buffer) {
#if __CUDA_ARCH__ >= 900
    if (peers() > 1 && threadIdx.x < gridDim.x) empty_[buffer].arrive_at(threadIdx.x);
#endif
  }

  __device__ __forceinline__ void load_weights() {
    for (int r = warp_; r < kGates * units_; r += warps_) {
      const int gate = r / units_, unit = r % units_;
      const T* const from = matrix_row(gate, unit);
      T* const to = weights_ + (gate * shape_.units + unit) * pitch_;
      for (int o = 0; o < kOutputs; ++o) {
#pragma unroll 8
        for (int u = lane_; u < shape_.hidden; u += 32)
          to[place(o, u)] = from[o * shape_.hidden + u];
      }
      for (int k = extent_ + lane_; k < pitch_; k += 32) to[k] = from_compute<T>(C(0));
    }
  }

  /// Input n of a step, in the order: kind, row, unit.
  struct InputPlace {
    int kind, row, unit;
  };
  __device__ __forceinline__ InputPlace input_place(int n) const {
    return {n / units_ / rows_, n / units_ % rows_, n % units_};
  }
  __device__ __forceinline__ C input(Int64 step, const InputPlace& at) const {
    return cell_.input(step, direction_, first_row_ + at.row, first_unit_ + at.unit, at.kind);
  }
  __device__ __forceinline__ void keep_input(int buffer, const InputPlace& at, C value) {
    const int row = (buffer * Cell::kInputs + at.kind) * shape_.rows + at.row;
    inputs_[row * shape_.units + at.unit] = value;
  }
  __device__ __forceinline__ int step_inputs(Int64 step) const {
    return cell_.has_inputs(step) ? Cell::kInputs * rows_ * units_ : 0;
  }
  /// Divisions take long: each thread makes them once for the inputs that it holds.
  __device__ __forceinline__ void find_inputs() {
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const int n = i * blockDim.x + threadIdx.x;
      if (units_ > 0) ahead_[i] = input_place(n);
    }
  }
  __device__ __forceinline__ void load_inputs(Int64 step, C (&ahead)[kAhead]) const {
    const int count = step_inputs(step);
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const int n = i * blockDim.x + threadIdx.x;
      if (n < count) ahead[i] = input(step, ahead_[i]);
    }
  }
  __device__ __forceinline__ void store_inputs(Int64 step, int buffer, const C (&ahead)[kAhead]) {
    const int count = step_inputs(step);
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const int n = i * blockDim.x + threadIdx.x;
      if (n < count) keep_input(buffer, ahead_[i], ahead[i]);
    }
    for (int n = kAhead * blockDim.x + threadIdx.x; n < count; n += blockDim.x) {
      const InputPlace at = input_place(n);
      keep_input(buffer, at, input(step, at));
    }
  }

  /// Adds the products of some elements of the matrix's rows with the elements of the vectors.
  template <int N>
  __device__ __forceinline__ void add_products(const T* const (&matrix)[kSlots], const C* vector,
                                               int k, C (&accumulators)[kAccumulators]) const {
    constexpr int kPart = N * sizeof(C) < 16 ? N : 16 / sizeof(C);
    C x[kRowsAtOnce][N];
#pragma unroll
    for (int b = 0; b < kRowsAtOnce; ++b) {
#pragma unroll
      for (int j = 0; j < N; j += kPart) {
        const auto part = *reinterpret_cast<const Pack<C, kPart>*>(vector + b * pitch_ + k + j);
#pragma unroll
        for (int i = 0; i < kPart; ++i) x[b][j + i] = part.value[i];
      }
    }
#pragma unroll
    for (int g = 0; g < kGates * kUnits; ++g) {
      const Pack<T, N> pack = *reinterpret_cast<const Pack<T, N>*>(matrix[g] + k);
#pragma unroll
      for (int j = 0; j < N; ++j) {
        const C weight = computed(pack.value, j);
#pragma unroll
        for (int b = 0; b < kRowsAtOnce; ++b) accumulators[b * kSlots + g] += weight * x[b][j];
      }
    }
  }

  __device__ __forceinline__ void multiply(int now, int u, int row,
                                           C (&accumulators)[kAccumulators]) const {
    const T* matrix[kSlots];
#pragma unroll
    for (int g = 0; g < kGates * kUnits; ++g) {
      const int gate = g % kGates, unit = min(u + g / kGates, units_ - 1);
      matrix[g] =
          kResident ? weights_ + (gate * shape_.units + unit) * pitch_ : matrix_row(gate, unit);
    }
    const C* const vector = vectors_ + ((kSends ? now : 0) * shape_.rows + row) * pitch_;
    if (kResident || cell_.packed) {
#pragma unroll 2
      for (int k = lane_ * kPack; k < pitch_; k += 32 * kPack)
        add_products<kPack>(matrix, vector, k, accumulators);
    } else {
      for (int k = lane_; k < extent_; k += 32) add_products<1>(matrix, vector, k, accumulators);
    }
  }

  /// kUnits units from `u` on and kRowsAtOnce rows from `row` on, of this block's.
  __device__ __forceinline__ void pass(int i, int now, int u, int row, bool more) {
    const Int64 step = shape_.first + i;
    C accumulators[kAccumulators];
#pragma unroll
    for (int i = 0; i < kAccumulators; ++i) accumulators[i] = 0;
    multiply(now, u, row, accumulators);
    const C spread = spread_sums<kAccumulators>(accumulators, lane_);
    const int b = lane_ % kRowsAtOnce, part = lane_ / kRowsAtOnce % kUnits;
    C product[kGates], output[kOutputs];
#pragma unroll
    for (int g = 0; g < kGates; ++g) {
      const int slot = b * kSlots + part * kGates + g;
      product[g] = __shfl_sync(~0u, spread, slot * kSumLanes);
    }
#pragma unroll
    for (int o = 0; o < kOutputs; ++o) output[o] = 0;
    const int unit = u + part;
    if (lane_ < kRowsAtOnce * kUnits && row + b < rows_ && unit < units_) {
      C input[Cell::kInputs];
#pragma unroll
      for (int k = 0; k < Cell::kInputs; ++k) {
        const int at = (now * Cell::kInputs + k) * shape_.rows + row + b;
        input[k] = cell_.has_inputs(step) ? inputs_[at * shape_.units + unit] : C(0);
      }
      cell_.compute(step, direction_, first_row_ + row + b, first_unit_ + unit, product, input,
                    states_[(row + b) * shape_.units + unit], output);
    }
    if (kSends && more) hand_on(i, 1 - now, u, row, output);
  }

  /// The outputs of a pass go into the next vector of all blocks.
  __device__ __forceinline__ void hand_on(int i, int next, int u, int row,
                                          const C (&output)[kOutputs]) {
#if __CUDA_ARCH__ >= 900
    if (i > 0 && peers() > 1) empty_[next].wait((i - 1) / 2 % 2);
#endif
    const int b = lane_ % kRowsAtOnce, rank = lane_ / kRowsAtOnce;
    const bool known = row + b < rows_ && rank < peers();
#pragma unroll
    for (int part = 0; part < kUnits; ++part) {
      C value[kOutputs];
#pragma unroll
      for (int o = 0; o < kOutputs; ++o)
        value[o] = __shfl_sync(~0u, output[o], part * kRowsAtOnce + b);
      if (!known || u + part >= units_) continue;
      const int at = (next * shape_.rows + row + b) * pitch_ + place(0, first_unit_ + u + part);
      if (peers() == 1) {
#pragma unroll
        for (int o = 0; o < kOutputs; ++o) vectors_[at + o] = value[o];
      } else {
        send(at, next, value);
      }
    }
  }

  __device__ __forceinline__ void send(int at, int next, const C (&value)[kOutputs]) const {
#if __CUDA_ARCH__ >= 900
    const unsigned to = vectors_there_ + at * sizeof(C);
    const unsigned full = full_there_ + next * sizeof(Mbarrier);
    if constexpr (kOutputs == 4 && sizeof(C) == 4) {
      unsigned four[4];
#pragma unroll
      for (int o = 0; o < 4; ++o) four[o] = __float_as_uint(value[o]);
      send_four(to, four, full);
    } else {
#pragma unroll
      for (int o = 0; o < kOutputs; ++o) send_number(to + o * sizeof(C), value[o], full);
    }
#endif
  }

  const Cell& cell_;
  const RecurrenceShape& shape_;
  Mbarrier *full_, *empty_;  // of either vector: it has come, it may be written
  T* weights_;
  C *vectors_, *inputs_, *states_;
  InputPlace ahead_[kAhead] = {};  // of the inputs that this thread loads a step ahead
  unsigned vectors_there_ = 0, full_there_ = 0;  // in the block that this lane sends to
  int direction_, first_unit_, units_, first_row_, rows_, extent_, pitch_, lane_, warp_, warps_;
};

/// Grid: blocks of hidden units, rows of the batch, directions.
template <typename Cell, int kRowsAtOnce, RecurrenceWay kWay>
__global__ void __launch_bounds__(kMostRecurrenceThreads, 1)
    recurrence(const __grid_constant__ Cell cell, const __grid_constant__ RecurrenceShape shape) {
  extern __shared__ __align__(16) unsigned char recurrence_memory[];
  __shared__ Mbarrier full[2], empty[2];
  Recurrence<Cell, kRowsAtOnce, kWay>(cell, shape, recurrence_memory, full, empty).run();
}

}  // namespace kernwright
