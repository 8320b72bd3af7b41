// Gated units: y = activation(gate) * up, and the gradients of both.
#include <kernwright/activations.cuh>
#include <kernwright/elements.cuh>
#include <kernwright/edge_packs.cuh>

using namespace kernwright;

constexpr int kThreads = 256;

/// Rows of `cols` elements; strides count elements.
struct GateRows {
  long long rows, cols;
  long long gate_stride, up_stride, grad_stride, gate_grad_stride, up_grad_stride;
};

/// Each thread has K packs of N elements, one block apart.
template <typename Op, typename T, int N, int K, typename Index>
__global__ void __launch_bounds__(kThreads)
    gate_forward(const T* __restrict__ gate, const T* __restrict__ up, T* __restrict__ y,
                 const GateRows rows, Knobs<Compute<T>> knobs) {
  const Index cols = static_cast<Index>(rows.cols), row_packs = (cols + N - 1) / N;
  const Index packs = static_cast<Index>(rows.rows) * row_packs;
  const Index first = static_cast<Index>(blockIdx.x) * (K * kThreads) + threadIdx.x;
  Pack<T, N> g[K], u[K];
  long long row[K];
  Index col[K];
#pragma unroll
  for (int k = 0; k < K; ++k) {
    const Index i = first + k * kThreads;
    row[k] = i / row_packs;
    col[k] = i < packs ? (i - static_cast<Index>(row[k]) * row_packs) * N : cols;
    if (i >= packs) row[k] = 0;
    load_pack<N>(gate + row[k] * rows.gate_stride, col[k], cols, g[k]);
    load_pack<N>(up + row[k] * rows.up_stride, col[k], cols, u[k]);
  }
#pragma unroll
  for (int k = 0; k < K; ++k) {
#pragma unroll
    for (int j = 0; j < N; ++j) {
      const Compute<T> value = Op::value(to_compute(g[k].value[j]), knobs);
      g[k].value[j] = from_compute<T>(value * to_compute(u[k].value[j]));
    }
    store_pack<N>(y + row[k] * rows.cols, col[k], cols, g[k]);
  }
}

template <typename Op, typename T, int N, int K, typename Index>
__global__ void __launch_bounds__(kThreads)
    gate_backward(const T* __restrict__ dy, const T* __restrict__ gate, const T* __restrict__ up,
                  T* __restrict__ dgate, T* __restrict__ dup, const GateRows rows,
                  Knobs<Compute<T>> knobs) {
  const Index cols = static_cast<Index>(rows.cols), row_packs = (cols + N - 1) / N;
  const Index packs = static_cast<Index>(rows.rows) * row_packs;
  const Index first = static_cast<Index>(blockIdx.x) * (K * kThreads) + threadIdx.x;
  Pack<T, N> d[K], g[K], u[K];
  long long row[K];
  Index col[K];
#pragma unroll
  for (int k = 0; k < K; ++k) {
    const Index i = first + k * kThreads;
    row[k] = i / row_packs;
    col[k] = i < packs ? (i - static_cast<Index>(row[k]) * row_packs) * N : cols;
    if (i >= packs) row[k] = 0;
    load_pack<N>(dy + row[k] * rows.grad_stride, col[k], cols, d[k]);
    load_pack<N>(gate + row[k] * rows.gate_stride, col[k], cols, g[k]);
    load_pack<N>(up + row[k] * rows.up_stride, col[k], cols, u[k]);
  }
#pragma unroll
  for (int k = 0; k < K; ++k) {
#pragma unroll
    for (int j = 0; j < N; ++j) {
      const Compute<T> x = to_compute(g[k].value[j]), grad = to_compute(d[k].value[j]);
      const Compute<T> slope = Op::slope(x, knobs);
      g[k].value[j] = from_compute<T>(grad * to_compute(u[k].value[j]) * slope);
      u[k].value[j] = from_compute<T>(grad * Op::value(x, knobs));
    }
    store_pack<N>(dgate + row[k] * rows.gate_grad_stride, col[k], cols, g[k]);
    store_pack<N>(dup + row[k] * rows.up_grad_stride, col[k], cols, u[k]);
  }
}
