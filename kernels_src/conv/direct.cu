// Convolutions of few channels: a thread for each output, a block for the gradients
// of some weights.
#include <kernwright/elements.cuh>

using namespace kernwright;

constexpr int kThreads = 256;
constexpr int kRowOutputs = 4;  // of a thread of convolve_rows()
constexpr int kBlockTaps = 16;  // weights of a block of weight_gradient() at most

/// Strides are in elements; y and x are axes 0 and 1 of the arrays in this struct.
struct Direct {
  Int64 x_n, x_c, x_y, x_x;                         // strides of x, or of dy for gradients of it
  Int64 weight_out, weight_in, weight_y, weight_x;  // strides of the weights
  Int64 weight_group;                               // from group to group
  int in[2], out[2], taps[2], stride[2], padding[2], dilation[2];
  int batch, channels, outputs;  // of a group
  int groups, block_taps;
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

/// The weights and the rows of x that the outputs of a channel and row take.
template <typename T>
struct Window {
  const T *w, *from;
  int y;
  Taps taps;  // along y

  template <typename Index>
  __device__ Window(const Direct& d, const At<Index>& at, const T* x, const T* weight)
      : y(at.y * d.stride[0] - d.padding[0]), taps(y, d.in[0], d.taps[0], d.dilation[0]) {
    const int group = at.channel / d.outputs, output = at.channel - group * d.outputs;
    w = weight + group * d.weight_group + output * d.weight_out;
    from = x + at.n * d.x_n + static_cast<Int64>(group) * d.channels * d.x_c;
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
    const int left = at.x * d.stride[1] - d.padding[1];
    auto [w, from, y, ky] = Window<T>(d, at, x, weight);
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

/// The same for long rows: a warp has kRowOutputs * 32 neighbours along x, which share weights and
/// the arithmetic of indices. `count`: such parts of rows.
template <typename T, typename Index>
__global__ void __launch_bounds__(kThreads)
    convolve_rows(T* out, const T* x, const T* weight, const T* bias, Index count, const Direct d) {
  constexpr int kPart = kRowOutputs * 32, kWarps = kThreads / 32;
  const int extent[2] = {d.out[0], (d.out[1] + kPart - 1) / kPart};
  const int step = 32 * d.stride[1];
  for (Index i = static_cast<Index>(blockIdx.x) * kWarps + threadIdx.x / 32; i < count;
       i += static_cast<Index>(gridDim.x) * kWarps) {
    const At<Index> at(i, d.groups * d.outputs, extent);
    const int first = at.x * kPart + threadIdx.x % 32;
    const int left = first * d.stride[1] - d.padding[1];
    auto [w, from, y, ky] = Window<T>(d, at, x, weight);
    Compute<T> accumulators[kRowOutputs];
#pragma unroll
    for (int j = 0; j < kRowOutputs; ++j) accumulators[j] = channel_bias(bias, at.channel);
    for (int c = 0; c < d.channels; ++c, w += d.weight_in, from += d.x_c) {
      for (int k = ky.begin; k < ky.end; ++k) {
        const T* const row = from + (y + k * d.dilation[0]) * d.x_y;
        const T* factor = w + k * d.weight_y;
#pragma unroll 4
        for (int t = 0; t < d.taps[1]; ++t, factor += d.weight_x) {
          const Compute<T> scale = to_compute(*factor);
          const int begin = left + t * d.dilation[1];
#pragma unroll
          for (int j = 0; j < kRowOutputs; ++j) {
            const int place = begin + j * step;
            if (place >= 0 && place < d.in[1])
              accumulators[j] += to_compute(row[place * d.x_x]) * scale;
          }
        }
      }
    }
    T* const to = out + ((at.n * (d.groups * d.outputs) + at.channel) * d.out[0] + at.y) * d.out[1];
#pragma unroll
    for (int j = 0; j < kRowOutputs; ++j)
      if (first + j * 32 < d.out[1]) to[first + j * 32] = from_compute<T>(accumulators[j]);
  }
}

/// Tap k takes output o of an axis from the input (o + padding - k dilation) / stride, if that is
/// one; below 0 if not.
__device__ __forceinline__ int input_index(const Direct& d, int axis, int o, int k) {
  const int reach = o + d.padding[axis] - k * d.dilation[axis];
  if (reach < 0) return -1;
  const int stride = d.stride[axis], i = stride == 1 ? reach : reach / stride;
  return i * stride == reach && i < d.in[axis] ? i : -1;
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
    const T* const w = weight + group * d.weight_group + output * d.weight_out;
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

/// dweight[output][channel][tap_y][tap_x], contiguous; a block for `d.block_taps` neighbours along
/// x, which share their reads of dy. dy has the strides given for the weights (n, channel, y, x).
template <typename T>
__global__ void __launch_bounds__(kThreads)
    weight_gradient(T* out, const T* x, const T* dy, const Direct d) {
  __shared__ Compute<T> partial[kBlockTaps][kThreads];
  const int parts = (d.taps[1] + d.block_taps - 1) / d.block_taps;
  const int line = blockIdx.x / parts;
  const int first_tap = (blockIdx.x - line * parts) * d.block_taps;
  const int count = min(d.block_taps, d.taps[1] - first_tap);
  const int weights = line / d.taps[0], ky = line - weights * d.taps[0];
  const int output = weights / d.channels, c = weights - output * d.channels;
  const int group = output / d.outputs;
  const T* const from = x + (static_cast<Int64>(group) * d.channels + c) * d.x_c;
  const T* const gradient = dy + output * d.weight_in;
  const Int64 plane = static_cast<Int64>(d.out[0]) * d.out[1], places = plane * d.batch;
  Compute<T> accumulators[kBlockTaps] = {};
  Int64 n = 0, first = 0;  // the image of element i, and the image's first element
  for (Int64 i = threadIdx.x; i < places; i += kThreads) {
    while (i - first >= plane) {
      first += plane;
      ++n;
    }
    const int at = static_cast<int>(i - first);
    const int o_y = at / d.out[1], o_x = at - o_y * d.out[1];
    const int in_y = o_y * d.stride[0] - d.padding[0] + ky * d.dilation[0];
    if (in_y < 0 || in_y >= d.in[0]) continue;
    const int left = o_x * d.stride[1] - d.padding[1] + first_tap * d.dilation[1];
    const T* const row = from + n * d.x_n + in_y * d.x_y;
    const Compute<T> factor =
        to_compute(gradient[n * d.weight_out + o_y * d.weight_y + o_x * d.weight_x]);
#pragma unroll
    for (int k = 0; k < kBlockTaps; ++k) {
      if (k >= count) break;
      const int in_x = left + k * d.dilation[1];
      if (in_x >= 0 && in_x < d.in[1]) accumulators[k] += to_compute(row[in_x * d.x_x]) * factor;
    }
  }
#pragma unroll
  for (int k = 0; k < kBlockTaps; ++k) partial[k][threadIdx.x] = accumulators[k];
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    for (int e = threadIdx.x; e < half * count; e += kThreads) {
      const int k = e / half, lane = e - k * half;
      partial[k][lane] += partial[k][lane + half];
    }
  }
  __syncthreads();
  if (threadIdx.x < count) {
    T* const made = out + static_cast<Int64>(line) * d.taps[1] + first_tap;
    made[threadIdx.x] = from_compute<T>(partial[threadIdx.x][0]);
  }
}
