// Pooling over up to three axes: largest values and averages of windows, and their gradients.
#include <kernwright/elements.cuh>

using namespace kernwright;

constexpr int kAxes = 3;

/// The windows of the outputs along each axis; see WindowGeometry of pool.h.
struct Windows {
  int in[kAxes], out[kAxes], size[kAxes], stride[kAxes], padding[kAxes], dilation[kAxes];
  int divisor;  // of an average; 0 counts elements
  bool adaptive, count_padding;

  /// The begin of the window of output `o`, and one behind the end, on the padded input.
  __device__ int begin(int axis, int o) const {
    if (adaptive) return static_cast<int>(static_cast<Int64>(o) * in[axis] / out[axis]);
    return o * stride[axis] - padding[axis];
  }
  __device__ int end(int axis, int o) const {
    if (adaptive)
      return static_cast<int>((static_cast<Int64>(o + 1) * in[axis] + out[axis] - 1) / out[axis]);
    return begin(axis, o) + (size[axis] - 1) * dilation[axis] + 1;
  }
  /// The first and one behind the last output whose window may hold input `i`.
  __device__ int first_output(int axis, int i) const {
    if (adaptive) return static_cast<int>(static_cast<Int64>(i) * out[axis] / in[axis]);
    const int reach = (size[axis] - 1) * dilation[axis];
    return max((i + padding[axis] - reach + stride[axis] - 1) / stride[axis], 0);
  }
  __device__ int last_output(int axis, int i) const {
    if (adaptive)
      return static_cast<int>((static_cast<Int64>(i + 1) * out[axis] + in[axis] - 1) / in[axis]);
    return min((i + padding[axis]) / stride[axis] + 1, out[axis]);
  }
  __device__ bool holds(int axis, int o, int i) const {
    return (i - begin(axis, o)) % dilation[axis] == 0;
  }
  /// What an average over the window of an output is divided by.
  __device__ int window_divisor(const int* o) const {
    if (divisor != 0) return divisor;
    int count = 1;
#pragma unroll
    for (int axis = 0; axis < kAxes; ++axis) {
      int first = begin(axis, o[axis]), last = end(axis, o[axis]);
      if (count_padding && !adaptive) {
        last = min(last, in[axis] + padding[axis]);
      } else {
        first = max(first, 0);
        last = min(last, in[axis]);
      }
      count *= last - first;
    }
    return count;
  }
};

/// The positions along the axes of element number `i` of planes of these extents, and the plane.
template <typename Index>
struct Split {
  Index plane;
  int at[kAxes];

  __device__ Split(Index i, const int* extent) {
#pragma unroll
    for (int axis = kAxes - 1; axis >= 0; --axis) {
      const Index above = i / static_cast<Index>(extent[axis]);
      at[axis] = static_cast<int>(i - above * static_cast<Index>(extent[axis]));
      i = above;
    }
    plane = i;
  }
};

__device__ __forceinline__ Int64 place_in_plane(const int* extent, int z, int y, int x) {
  return (static_cast<Int64>(z) * extent[1] + y) * extent[2] + x;
}

/// Calls visit(place in the plane) for each element of the window inside the input, in order.
template <typename Visit>
__device__ __forceinline__ void visit_window(const Windows& w, const int* o, const Visit& visit) {
  const int z0 = w.begin(0, o[0]), z1 = min(w.end(0, o[0]), w.in[0]);
  const int y0 = w.begin(1, o[1]), y1 = min(w.end(1, o[1]), w.in[1]);
  const int x0 = w.begin(2, o[2]), x1 = min(w.end(2, o[2]), w.in[2]);
  for (int z = z0; z < z1; z += w.dilation[0]) {
    if (z < 0) continue;
    for (int y = y0; y < y1; y += w.dilation[1]) {
      if (y < 0) continue;
      for (int x = x0; x < x1; x += w.dilation[2])
        if (x >= 0) visit(place_in_plane(w.in, z, y, x));
    }
  }
}

/// The first of the largest values of each window, or a NaN; `places` may be null.
template <typename T, typename Index>
__global__ void __launch_bounds__(256)
    pool_largest(T* out, Int64* places, const T* in, Index count, const Windows w) {
  const Int64 plane_size = static_cast<Int64>(w.in[0]) * w.in[1] * w.in[2];
  for (Index i = static_cast<Index>(blockIdx.x) * 256 + threadIdx.x; i < count;
       i += static_cast<Index>(gridDim.x) * 256) {
    const Split<Index> o(i, w.out);
    const T* const plane = in + static_cast<Int64>(o.plane) * plane_size;
    Compute<T> best = 0;
    Int64 found = -1;
    visit_window(w, o.at, [&](Int64 place) {
      const Compute<T> value = to_compute(plane[place]);
      if (found < 0 || value > best || value != value) {
        best = value;
        found = place;
      }
    });
    out[i] = from_compute<T>(best);
    if (places != nullptr) places[i] = found;
  }
}

template <typename T, typename Index>
__global__ void __launch_bounds__(256)
    pool_average(T* out, const T* in, Index count, const Windows w) {
  const Int64 plane_size = static_cast<Int64>(w.in[0]) * w.in[1] * w.in[2];
  for (Index i = static_cast<Index>(blockIdx.x) * 256 + threadIdx.x; i < count;
       i += static_cast<Index>(gridDim.x) * 256) {
    const Split<Index> o(i, w.out);
    const T* const plane = in + static_cast<Int64>(o.plane) * plane_size;
    Compute<T> sum = 0;
    visit_window(w, o.at, [&](Int64 place) { sum += to_compute(plane[place]); });
    out[i] = from_compute<T>(sum / static_cast<Compute<T>>(w.window_divisor(o.at)));
  }
}

/// The gradient of the input: each element gathers from the windows that contain it, in a fixed
/// order. `places` come from pool_largest, null for averages.
template <typename T, typename Index>
__global__ void __launch_bounds__(256)
    pool_backward(T* dx, const T* dy, const Int64* places, Index count, const Windows w) {
  const Int64 plane_size = static_cast<Int64>(w.out[0]) * w.out[1] * w.out[2];
  for (Index i = static_cast<Index>(blockIdx.x) * 256 + threadIdx.x; i < count;
       i += static_cast<Index>(gridDim.x) * 256) {
    const Split<Index> x(i, w.in);
    const Int64 first = static_cast<Int64>(x.plane) * plane_size;
    const Int64 here = place_in_plane(w.in, x.at[0], x.at[1], x.at[2]);
    Compute<T> sum = 0;
    int o[kAxes];
    for (o[0] = w.first_output(0, x.at[0]); o[0] < w.last_output(0, x.at[0]); ++o[0]) {
      if (!w.holds(0, o[0], x.at[0])) continue;
      for (o[1] = w.first_output(1, x.at[1]); o[1] < w.last_output(1, x.at[1]); ++o[1]) {
        if (!w.holds(1, o[1], x.at[1])) continue;
        for (o[2] = w.first_output(2, x.at[2]); o[2] < w.last_output(2, x.at[2]); ++o[2]) {
          if (!w.holds(2, o[2], x.at[2])) continue;
          const Int64 from = first + place_in_plane(w.out, o[0], o[1], o[2]);
          const Compute<T> gradient = to_compute(dy[from]);
          if (places == nullptr) {
            sum += gradient / static_cast<Compute<T>>(w.window_divisor(o));
          } else if (places[from] == here) {
            sum += gradient;
          }
        }
      }
    }
    dx[i] = from_compute<T>(sum);
  }
}
