// The operands of a convolution as a matrix product, and its result in the layout of arrays.
#include <kernwright/elements.cuh>

using namespace kernwright;

constexpr int kThreads = 256;
constexpr int kTile = 4096;  // elements that a block of unfold() moves at a time

/// Where windows lie in x; see ConvPlan of conv_plan.h. Strides are in elements.
struct Windows {
  Int64 stride_n, stride_c, stride_y, stride_x;  // of x
  Int64 positions, all_positions;                // with windows; of a group's memory
  int groups, channels, padded_channels;         // of a group
  int in_y, in_x, taps_y;
  int first_y, step_y, dilation_y, count_y;
  int first_x, phase_step, step_x, phases, slab;  // a slab: positions of one row and phase
};

/// A position of the memory that unfold() fills, in x. Outside of x: below 0.
struct Place {
  Int64 image;  // offset of the batch's element
  int y, x;

  __device__ Place(const Windows& w, Int64 position, int tap_y) {
    const Int64 line = position / w.slab;
    const int r = static_cast<int>(position - line * w.slab);
    const Int64 plane = line / w.count_y;
    const int row = static_cast<int>(line - plane * w.count_y);
    const Int64 n = plane / w.phases;
    const int phase = static_cast<int>(plane - n * w.phases);
    image = n * w.stride_n;
    y = w.first_y + row * w.step_y + tap_y * w.dilation_y;
    x = w.first_x + phase * w.phase_step + r * w.step_x;
    if (position >= w.positions || y >= w.in_y || x >= w.in_x) y = -1;
  }
  __device__ bool is_inside() const { return y >= 0 && x >= 0; }
};

/// out[group][position][tap_y][channel] from x of any strides, by tiles of kChannels channels.
/// Zeros stand for padding. The grid: tiles of positions, tiles of channels, groups times taps.
template <typename T, int kChannels>
__global__ void __launch_bounds__(kThreads) unfold(T* out, const T* x, const Windows w) {
  constexpr int kPositions = kTile / kChannels;
  constexpr int kLanes = kPositions < kThreads ? kPositions : kThreads;
  __shared__ T tile[kPositions][kChannels + (sizeof(T) < 4 ? 2 : 1)];
  const int group = blockIdx.z / w.taps_y, tap_y = blockIdx.z % w.taps_y;
  const int first_channel = blockIdx.y * kChannels;
  const Int64 first = static_cast<Int64>(blockIdx.x) * kPositions;
  for (int i = threadIdx.x % kLanes; i < kPositions; i += kLanes) {
    const Place place(w, first + i, tap_y);
    const T* const from = x + place.image + place.y * w.stride_y + place.x * w.stride_x;
#pragma unroll 8
    for (int c = threadIdx.x / kLanes; c < kChannels; c += kThreads / kLanes) {
      const int channel = first_channel + c;
      T value = from_compute<T>(0);
      if (place.is_inside() && channel < w.channels) {
        value = from[(static_cast<Int64>(group) * w.channels + channel) * w.stride_c];
      }
      tile[i][c] = value;
    }
  }
  __syncthreads();
  const Int64 of_group = w.all_positions * w.taps_y * w.padded_channels;
  for (int e = threadIdx.x; e < kTile; e += kThreads) {
    const int i = e / kChannels, channel = first_channel + e % kChannels;
    const Int64 position = first + i;
    if (position >= w.all_positions || channel >= w.padded_channels) continue;
    out[group * of_group + (position * w.taps_y + tap_y) * w.padded_channels + channel] =
        tile[i][e % kChannels];
  }
}

/// Where weights lie. Tap t of a window along an axis is tap (residue + shuffle * step * (taps - 1
/// - t)) / dilation of the transposed convolution whose outputs have this residue.
struct WeightAxis {
  int taps, size, shuffle, step, dilation;  // size: taps that the weights have
  bool transposed;

  __device__ int tap(int t, int residue) const {
    if (!transposed) return t;
    const int reach = residue + shuffle * step * (taps - 1 - t);
    return reach % dilation == 0 && reach / dilation < size ? reach / dilation : -1;
  }
};
struct Weights {
  Int64 stride_group, stride_out, stride_in, stride_y, stride_x;
  int outputs, channels, padded_channels;  // of a group
  WeightAxis y, x;
};

/// out[group][output][residue_y][residue_x][tap_x][tap_y][channel] from weights of any strides.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    lay_weights(T* out, const T* weight, Int64 count, const Weights w) {
  for (Int64 e = static_cast<Int64>(blockIdx.x) * kThreads + threadIdx.x; e < count;
       e += static_cast<Int64>(gridDim.x) * kThreads) {
    Int64 rest = e;
    const auto next = [&](int extent) {
      const Int64 above = rest / extent;
      const int at = static_cast<int>(rest - above * extent);
      rest = above;
      return at;
    };
    const int channel = next(w.padded_channels);
    const int t_y = next(w.y.taps), t_x = next(w.x.taps);
    const int residue_x = next(w.x.shuffle), residue_y = next(w.y.shuffle);
    const int output = next(w.outputs);
    const int tap_y = w.y.tap(t_y, residue_y), tap_x = w.x.tap(t_x, residue_x);
    T value = from_compute<T>(0);
    if (channel < w.channels && tap_y >= 0 && tap_x >= 0) {
      value = weight[rest * w.stride_group + output * w.stride_out + channel * w.stride_in +
                     tap_y * w.stride_y + tap_x * w.stride_x];
    }
    out[e] = value;
  }
}

/// The rows of a product along one axis: output o is row (o + offset) / shuffle, of the channel
/// with the residue.
struct RowAxis {
  int out, shuffle, offset;
};
/// Rows ((n * phases + phase) * count_y + row_y) * columns + j, where row_x = j * period + phase.
struct Rows {
  Int64 all;                // rows of the product
  int channels, per_group;  // of the result, and of a group
  int phases, period, count_y, columns;
  RowAxis y, x;

  __device__ Int64 row(Int64 n, int row_y, int row_x) const {
    const int j = period == 1 ? row_x : row_x / period;
    return ((n * phases + (row_x - j * period)) * count_y + row_y) * columns + j;
  }
};

/// out[n][channel][y][x], contiguous, from product[channel, residue_y, residue_x][row] plus the
/// channel's bias. 1 << lanes_log2 threads make 8 times as many neighbours of a line.
template <typename T, typename Index>
__global__ void __launch_bounds__(kThreads)
    fold(T* out, const T* product, const T* bias, Index parts, int parts_of_line, int lanes_log2,
         const Rows rows) {
  constexpr int kEach = 8;
  const int lanes = 1 << lanes_log2;
  const int lane = threadIdx.x & (lanes - 1);
  const Index step = static_cast<Index>(gridDim.x) * (kThreads >> lanes_log2);
  for (Index part =
           static_cast<Index>(blockIdx.x) * (kThreads >> lanes_log2) + (threadIdx.x >> lanes_log2);
       part < parts; part += step) {
    const Index line = part / parts_of_line;
    const int begin = static_cast<int>(part - line * parts_of_line) * kEach * lanes + lane;
    const Index plane = line / rows.y.out;
    const int v_y = static_cast<int>(line - plane * rows.y.out) + rows.y.offset;
    const Index n = plane / rows.channels;
    const int channel = static_cast<int>(plane - n * rows.channels);
    const int row_y = v_y / rows.y.shuffle;
    const Int64 first =
        (static_cast<Int64>(channel) * rows.y.shuffle + (v_y - row_y * rows.y.shuffle)) *
        rows.x.shuffle;
    const Compute<T> added = bias == nullptr ? Compute<T>(0) : to_compute(bias[channel]);
    T* const to = out + static_cast<Int64>(line) * rows.x.out;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int o = begin + i * lanes;
      if (o >= rows.x.out) break;
      const int v = o + rows.x.offset;
      const int row_x = rows.x.shuffle == 1 ? v : v / rows.x.shuffle;
      const T sum = product[(first + (v - row_x * rows.x.shuffle)) * rows.all +
                            rows.row(static_cast<Int64>(n), row_y, row_x)];
      to[o] = bias == nullptr ? sum : from_compute<T>(to_compute(sum) + added);
    }
  }
}

/// rows[channel][row] of dy[n][channel][y][x] with any strides: fold() undone, without residues.
/// Zeros stand for rows without an output.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    spread(T* out, const T* dy, Int64 count, Int64 batch, Int64 stride_n, Int64 stride_c,
           Int64 stride_y, Int64 stride_x, const Rows rows) {
  for (Int64 e = static_cast<Int64>(blockIdx.x) * kThreads + threadIdx.x; e < count;
       e += static_cast<Int64>(gridDim.x) * kThreads) {
    const Int64 channel = e / rows.all, row = e - channel * rows.all;
    const Int64 line = row / rows.columns;
    const Int64 plane = line / rows.count_y;
    const Int64 n = plane / rows.phases;
    const Int64 y = line - plane * rows.count_y;
    const Int64 x = (row - line * rows.columns) * rows.period + (plane - n * rows.phases);
    T value = from_compute<T>(0);
    if (n < batch && x < rows.x.out) {
      value = dy[n * stride_n + channel * stride_c + y * stride_y + x * stride_x];
    }
    out[e] = value;
  }
}
