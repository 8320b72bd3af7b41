// Gated units: y = activation(gate) * up, and the gradients of both.
#include <kernwright/activations.cuh>
#include <kernwright/edge_packs.cuh>
#include <kernwright/elements.cuh>
#include <kernwright/overlap.cuh>

using namespace kernwright;

constexpr int kThreads = 256;

/// Rows of `cols` elements; strides count elements.
struct GateRows {
  long long rows, cols;
  long long gate_stride, up_stride, grad_stride, gate_grad_stride, up_grad_stride;
};

/// The place of pack `i`; beyond the last pack it is the end of row 0.
template <int N, typename Index>
struct GatePlace {
  long long row;
  Index col;
  __device__ __forceinline__ GatePlace(Index i, Index packs, Index row_packs, Index cols) {
    const Index number = i / row_packs;
    row = i < packs ? number : 0;
    col = i < packs ? (i - number * row_packs) * N : cols;
  }
};

/// Each thread has K packs of N elements, one block apart. All of them are loaded before the first
/// is used, but where rows do not end with a pack, and in the last block.
template <typename Op, typename T, int N, int K, typename Index>
__global__ void __launch_bounds__(kThreads)
    gate_forward(const T* __restrict__ gate, const T* __restrict__ up, T* __restrict__ y,
                 const GateRows rows, Knobs<Compute<T>> knobs) {
  pdl_wait_then_launch();
  const Index cols = static_cast<Index>(rows.cols), row_packs = (cols + N - 1) / N;
  const Index packs = static_cast<Index>(rows.rows) * row_packs;
  const Index begin = static_cast<Index>(blockIdx.x) * (K * kThreads), first = begin + threadIdx.x;
  const auto place = [&](int k) {
    return GatePlace<N, Index>(first + k * kThreads, packs, row_packs, cols);
  };
  Pack<T, N> g[K], u[K];
  const auto compute = [&](Pack<T, N>& gates, const Pack<T, N>& ups) {
#pragma unroll
    for (int j = 0; j < N; ++j) {
      const Compute<T> value = Op::value(to_compute(gates.value[j]), knobs);
      gates.value[j] = from_compute<T>(value * to_compute(ups.value[j]));
    }
  };
  if (cols % N == 0 && begin + K * kThreads <= packs) {
#pragma unroll
    for (int k = 0; k < K; ++k) {
      const GatePlace<N, Index> at = place(k);
      load_whole(gate + at.row * rows.gate_stride + at.col, g[k]);
      load_whole(up + at.row * rows.up_stride + at.col, u[k]);
    }
#pragma unroll
    for (int k = 0; k < K; ++k) {
      const GatePlace<N, Index> at = place(k);
      compute(g[k], u[k]);
      store_whole(y + at.row * rows.cols + at.col, g[k]);
    }
    return;
  }
#pragma unroll 1
  for (int k = 0; k < K; ++k) {
    const GatePlace<N, Index> at = place(k);
    load_pack<N>(gate + at.row * rows.gate_stride, at.col, cols, g[0]);
    load_pack<N>(up + at.row * rows.up_stride, at.col, cols, u[0]);
    compute(g[0], u[0]);
    store_pack<N>(y + at.row * rows.cols, at.col, cols, g[0]);
  }
}

template <typename Op, typename T, int N, int K, typename Index>
__global__ void __launch_bounds__(kThreads)
    gate_backward(const T* __restrict__ dy, const T* __restrict__ gate, const T* __restrict__ up,
                  T* __restrict__ dgate, T* __restrict__ dup, const GateRows rows,
                  Knobs<Compute<T>> knobs) {
  const Index cols = static_cast<Index>(rows.cols), row_packs = (cols + N - 1) / N;
  const Index packs = static_cast<Index>(rows.rows) * row_packs;
  const Index begin = static_cast<Index>(blockIdx.x) * (K * kThreads), first = begin + threadIdx.x;
  const auto place = [&](int k) {
    return GatePlace<N, Index>(first + k * kThreads, packs, row_packs, cols);
  };
  Pack<T, N> d[K], g[K], u[K];
  const auto compute = [&](const Pack<T, N>& grads, Pack<T, N>& gates, Pack<T, N>& ups) {
#pragma unroll
    for (int j = 0; j < N; ++j) {
      const Compute<T> x = to_compute(gates.value[j]), grad = to_compute(grads.value[j]);
      const Compute<T> slope = Op::slope(x, knobs);
      gates.value[j] = from_compute<T>(grad * to_compute(ups.value[j]) * slope);
      ups.value[j] = from_compute<T>(grad * Op::value(x, knobs));
    }
  };
  if (cols % N == 0 && begin + K * kThreads <= packs) {
#pragma unroll
    for (int k = 0; k < K; ++k) {
      const GatePlace<N, Index> at = place(k);
      load_whole(dy + at.row * rows.grad_stride + at.col, d[k]);
      load_whole(gate + at.row * rows.gate_stride + at.col, g[k]);
      load_whole(up + at.row * rows.up_stride + at.col, u[k]);
    }
#pragma unroll
    for (int k = 0; k < K; ++k) {
      const GatePlace<N, Index> at = place(k);
      compute(d[k], g[k], u[k]);
      store_whole(dgate + at.row * rows.gate_grad_stride + at.col, g[k]);
      store_whole(dup + at.row * rows.up_grad_stride + at.col, u[k]);
    }
    return;
  }
#pragma unroll 1
  for (int k = 0; k < K; ++k) {
    const GatePlace<N, Index> at = place(k);
    load_pack<N>(dy + at.row * rows.grad_stride, at.col, cols, d[0]);
    load_pack<N>(gate + at.row * rows.gate_stride, at.col, cols, g[0]);
    load_pack<N>(up + at.row * rows.up_stride, at.col, cols, u[0]);
    compute(d[0], g[0], u[0]);
    store_pack<N>(dgate + at.row * rows.gate_grad_stride, at.col, cols, g[0]);
    store_pack<N>(dup + at.row * rows.up_grad_stride, at.col, cols, u[0]);
  }
}
