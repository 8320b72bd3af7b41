// y = activation(x + bias) for rows, and the gradients of x and of the bias.
#include <kernwright/activations.cuh>
#include <kernwright/edge_packs.cuh>
#include <kernwright/elements.cuh>

using namespace kernwright;

constexpr int kThreads = 256;
constexpr int kLanes = 32, kWays = 8;  // packs of a row and rows that a block of the backward has

/// Rows are contiguous; each thread has one pack of N columns of K consecutive rows.
template <typename Op, typename T, int N, int K, typename Index>
__global__ void __launch_bounds__(kThreads)
    bias_activate(const T* __restrict__ x, const T* __restrict__ bias, T* __restrict__ y,
                  Index rows, Index cols, Knobs<Compute<T>> knobs) {
  const Index row_packs = (cols + N - 1) / N;
  const Index i = static_cast<Index>(blockIdx.x) * kThreads + threadIdx.x;
  const Index group = i / row_packs, first = group * K, col = (i - group * row_packs) * N;
  Pack<T, N> value[K], shift;
  const auto activate = [&](Pack<T, N>& pack) {
#pragma unroll
    for (int j = 0; j < N; ++j) {
      const Compute<T> at = to_compute(pack.value[j]) + to_compute(shift.value[j]);
      pack.value[j] = from_compute<T>(Op::value(at, knobs));
    }
  };
  if (cols % N == 0 && first + K <= rows) {
#pragma unroll
    for (int k = 0; k < K; ++k) load_whole(x + (first + k) * cols + col, value[k]);
    load_whole(bias + col, shift);
#pragma unroll
    for (int k = 0; k < K; ++k) {
      activate(value[k]);
      store_whole(y + (first + k) * cols + col, value[k]);
    }
    return;
  }
  if (first < rows) load_pack<N>(bias, col, cols, shift);
#pragma unroll 1
  for (Index row = first; row < rows && row < first + K; ++row) {
    load_pack<N>(x + row * cols, col, cols, value[0]);
    activate(value[0]);
    store_pack<N>(y + row * cols, col, cols, value[0]);
  }
}

/// dx, and the column sums of dx over the rows of a block (blockIdx.y), into a row of `partial`.
template <typename Op, typename T, int N, typename Index>
__global__ void __launch_bounds__(kThreads)
    bias_activate_backward(const T* __restrict__ dy, const T* __restrict__ x,
                           const T* __restrict__ bias, T* __restrict__ dx,
                           Compute<T>* __restrict__ partial, Index rows, Index cols,
                           Index block_rows, Knobs<Compute<T>> knobs) {
  const int lane = threadIdx.x % kLanes, way = threadIdx.x / kLanes;
  const Index col = (static_cast<Index>(blockIdx.x) * kLanes + lane) * N;
  const Index begin = static_cast<Index>(blockIdx.y) * block_rows;
  const Index end = begin + block_rows < rows ? begin + block_rows : rows;
  Pack<T, N> shift;
  load_pack<N>(bias, col < cols ? col : cols, cols, shift);
  Compute<T> sum[N] = {};
  if (col < cols) {
#pragma unroll 4
    for (Index row = begin + way; row < end; row += kWays) {
      Pack<T, N> value, gradient;
      load_pack<N>(x + row * cols, col, cols, value);
      load_pack<N>(dy + row * cols, col, cols, gradient);
#pragma unroll
      for (int j = 0; j < N; ++j) {
        const Compute<T> at = to_compute(value.value[j]) + to_compute(shift.value[j]);
        const Compute<T> grad = to_compute(gradient.value[j]) * Op::slope(at, knobs);
        sum[j] += grad;
        value.value[j] = from_compute<T>(grad);
      }
      store_pack<N>(dx + row * cols, col, cols, value);
    }
  }
  __shared__ Compute<T> shared[kWays][kLanes * N];
#pragma unroll
  for (int j = 0; j < N; ++j) shared[way][j * kLanes + lane] = sum[j];
  __syncthreads();
  if (way != 0) return;
#pragma unroll
  for (int j = 0; j < N; ++j) {
    Compute<T> total = 0;
#pragma unroll
    for (int w = 0; w < kWays; ++w) total += shared[w][j * kLanes + lane];
    if (col + j < cols) partial[blockIdx.y * cols + col + j] = total;
  }
}

/// The sums of the columns of `partial`, in the order of the rows.
template <typename T, typename Index>
__global__ void __launch_bounds__(kThreads)
    bias_gradient(const Compute<T>* __restrict__ partial, T* __restrict__ dbias, Index rows,
                  Index cols) {
  const Index col = static_cast<Index>(blockIdx.x) * kThreads + threadIdx.x;
  if (col >= cols) return;
  Compute<T> total = 0;
#pragma unroll 8
  for (Index row = 0; row < rows; ++row) total += partial[row * cols + col];
  dbias[col] = from_compute<T>(total);
}
