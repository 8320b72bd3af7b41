// Convolutions of few channels: a thread for each output, a block for each weight's gradient.
#include <kernwright/elements.cuh>

using namespace kernwright;

constexpr int kThreads = 256;

/// Strides are in elements; y and x are axes 0 and 1 of the arrays in this struct.
struct Direct {
  Int64 x_n, x_c, x_y, x_x;                         // strides of x, or of dy for gradients of it
  Int64 weight_out, weight_in, weight_y, weight_x;  // strides of the weights
  int in[2], out[2], taps[2], stride[2], padding[2], dilation[2];
  int batch, channels, outputs;  // of a group
  int groups;
};

/// The element number `i` of (batch, channels, y, x).
template <typename Index>
struct At {
  Int64 n;
  int channel, y, x;

  __device__ At(Index i, int channels, const int* extent) {
    const Index line = i / static_cast<Index>(extent[1]);
    x = static_cast<int>(i - line * static_cast<Index>(extent[1]));
    const Index plane = line / static_cast<Index>(extent[0]);
    y = static_cast<int>(line - plane * static_cast<Index>(extent[0]));
    const Index image = plane / static_cast<Index>(channels);
    channel = static_cast<int>(plane - image * static_cast<Index>(channels));
    n = static_cast<Int64>(image);
  }
};

/// The taps of a window from `first` on that lie inside of `extent` elements.
struct Taps {
  int begin, end;

  __device__ Taps(int first, int extent, int taps, int dilation) {
    begin = first >= 0 ? 0 : (-first + dilation - 1) / dilation;
    end = first >= extent ? 0 : min(taps, (extent - first + dilation - 1) / dilation);
  }
};

template <typename T>
__device__ __forceinline__ Compute<T> channel_bias(const T* bias, int channel) {
  return bias == nullptr ? Compute<T>(0) : to_compute(bias[channel]);
}

/// out[n][channel][y][x], contiguous: the convolution of x.
template <typename T, typename Index>
__global__ void __launch_bounds__(kThreads)
    convolve(T* out, const T* x, const T* weight, const T* bias, Index count, const Direct d) {
  for (Index i = static_cast<Index>(blockIdx.x) * kThreads + threadIdx.x; i < count;
       i += static_cast<Index>(gridDim.x) * kThreads) {
    const At<Index> at(i, d.groups * d.outputs, d.out);
    const int group = at.channel / d.outputs;
    const int y = at.y * d.stride[0] - d.padding[0], left = at.x * d.stride[1] - d.padding[1];
    const T* w = weight + at.channel * d.weight_out;
    const T* from = x + at.n * d.x_n + static_cast<Int64>(group) * d.channels * d.x_c;
    const Taps ky(y, d.in[0], d.taps[0], d.dilation[0]);
    const Taps kx(left, d.in[1], d.taps[1], d.dilation[1]);
    const Int64 step = d.dilation[1] * d.x_x;
    Compute<T> sum = channel_bias(bias, at.channel);
    for (int c = 0; c < d.channels; ++c, w += d.weight_in, from += d.x_c) {
      for (int k = ky.begin; k < ky.end; ++k) {
        const T* value =
            from + (y + k * d.dilation[0]) * d.x_y + (left + kx.begin * d.dilation[1]) * d.x_x;
        const T* factor = w + k * d.weight_y + kx.begin * d.weight_x;
        for (int j = kx.begin; j < kx.end; ++j, value += step, factor += d.weight_x)
          sum += to_compute(*value) * to_compute(*factor);
      }
    }
    out[i] = from_compute<T>(sum);
  }
}

/// Tap k takes output o of an axis from the input (o + padding - k dilation) / stride, if that is
/// one; below 0 if not.
__device__ __forceinline__ int input_index(const Direct& d, int axis, int o, int k) {
  const int reach = o + d.padding[axis] - k * d.dilation[axis];
  if (reach < 0 || reach % d.stride[axis] != 0) return -1;
  const int i = reach / d.stride[axis];
  return i < d.in[axis] ? i : -1;
}

/// The transposed convolution; each output gathers, in a fixed order.
template <typename T, typename Index>
__global__ void __launch_bounds__(kThreads)
    convolve_transposed(T* out, const T* x, const T* weight, const T* bias, Index count,
                        const Direct d) {
  for (Index i = static_cast<Index>(blockIdx.x) * kThreads + threadIdx.x; i < count;
       i += static_cast<Index>(gridDim.x) * kThreads) {
    const At<Index> at(i, d.groups * d.outputs, d.out);
    const int group = at.channel / d.outputs, output = at.channel - group * d.outputs;
    const Int64 first = static_cast<Int64>(group) * d.channels;
    const T* const w = weight + first * d.weight_in + output * d.weight_out;
    const T* const from = x + at.n * d.x_n + first * d.x_c;
    Compute<T> sum = channel_bias(bias, at.channel);
    for (int ky = 0; ky < d.taps[0]; ++ky) {
      const int in_y = input_index(d, 0, at.y, ky);
      if (in_y < 0) continue;
      for (int kx = 0; kx < d.taps[1]; ++kx) {
        const int in_x = input_index(d, 1, at.x, kx);
        if (in_x < 0) continue;
        const T* value = from + in_y * d.x_y + in_x * d.x_x;
        const T* factor = w + ky * d.weight_y + kx * d.weight_x;
        for (int c = 0; c < d.channels; ++c, value += d.x_c, factor += d.weight_in)
          sum += to_compute(*value) * to_compute(*factor);
      }
    }
    out[i] = from_compute<T>(sum);
  }
}

/// dweight[output][channel][tap_y][tap_x], contiguous, a block for each. dy has the strides given
/// for the weights (n, channel, y, x).
template <typename T>
__global__ void __launch_bounds__(kThreads)
    weight_gradient(T* out, const T* x, const T* dy, const Direct d) {
  __shared__ Compute<T> sums[kThreads];
  int rest = blockIdx.x;
  const int kx = rest % d.taps[1];
  rest /= d.taps[1];
  const int ky = rest % d.taps[0];
  rest /= d.taps[0];
  const int c = rest % d.channels, output = rest / d.channels;
  const int group = output / d.outputs;
  const T* const from = x + (static_cast<Int64>(group) * d.channels + c) * d.x_c;
  const T* const gradient = dy + output * d.weight_in;
  const Int64 plane = static_cast<Int64>(d.out[0]) * d.out[1], count = plane * d.batch;
  Compute<T> sum = 0;
  Int64 n = 0, first = 0;  // the image of element i, and the image's first element
  for (Int64 i = threadIdx.x; i < count; i += kThreads) {
    while (i - first >= plane) {
      first += plane;
      ++n;
    }
    const int at = static_cast<int>(i - first);
    const int o_y = at / d.out[1], o_x = at % d.out[1];
    const int in_y = o_y * d.stride[0] - d.padding[0] + ky * d.dilation[0];
    const int in_x = o_x * d.stride[1] - d.padding[1] + kx * d.dilation[1];
    if (in_y < 0 || in_y >= d.in[0] || in_x < 0 || in_x >= d.in[1]) continue;
    sum += to_compute(from[n * d.x_n + in_y * d.x_y + in_x * d.x_x]) *
           to_compute(gradient[n * d.weight_out + o_y * d.weight_y + o_x * d.weight_x]);
  }
  sums[threadIdx.x] = sum;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  if (threadIdx.x == 0) out[blockIdx.x] = from_compute<T>(sums[0]);
}
