// The operands of a convolution as a matrix product, and its result in the layout of arrays.
#include <kernwright/elements.cuh>
#include <kernwright/overlap.cuh>

using namespace kernwright;

constexpr int kThreads = 256;
constexpr int kTile = 4096;    // elements that a block of unfold() moves
constexpr int kChannels = 16;  // that a thread of fold() and spread() moves
constexpr int kWeightTile = 2048;  // elements that a block of lay_weights() moves at once

/// a / b: 64-bit divisions take some five times as long.
__device__ __forceinline__ Int64 divided(Int64 a, int b) {
  if (a >> 32 == 0) return static_cast<unsigned>(a) / static_cast<unsigned>(b);
  return a / b;
}

/// Where windows lie in x; see ConvPlan of conv_plan.h. Strides are in elements.
struct Windows {
  Int64 stride_n, stride_c, stride_y, stride_x;  // of x
  Int64 positions, all_positions;                // with windows; of a group's memory
  int channels, padded_channels;                 // of a group
  bool has_ones;                                 // the channel behind the last one is of ones
  int in_y, in_x, taps_y;
  int first_y, step_y, dilation_y, count_y;
  int first_x, phase_step, step_x, phases, slab;  // a slab: positions of one row and phase
};

/// A position of the memory that unfold() fills, in x.
struct Place {
  Int64 offset;
  bool inside;

  __device__ Place(const Windows& w, Int64 position, int tap_y) {
    const Int64 line = divided(position, w.slab);
    const int r = static_cast<int>(position - line * w.slab);
    const Int64 plane = divided(line, w.count_y);
    const int row = static_cast<int>(line - plane * w.count_y);
    const Int64 n = divided(plane, w.phases);
    const int phase = static_cast<int>(plane - n * w.phases);
    const int y = w.first_y + row * w.step_y + tap_y * w.dilation_y;
    const int x = w.first_x + phase * w.phase_step + r * w.step_x;
    inside = position < w.positions && y >= 0 && y < w.in_y && x >= 0 && x < w.in_x;
    offset = n * w.stride_n + y * w.stride_y + x * w.stride_x;
  }
};

/// out[group][position][tap_y][channel] from x of any strides, by tiles of kTileChannels channels.
/// Zeros stand for padding. The grid: tiles of positions, tiles of channels, groups times taps.
template <typename T, int kTileChannels>
__global__ void __launch_bounds__(kThreads) unfold(T* out, const T* x, const Windows w) {
  constexpr int kPositions = kTile / kTileChannels;
  constexpr int kLanes = kPositions < kThreads ? kPositions : kThreads;
  __shared__ T tile[kPositions][kTileChannels + (sizeof(T) < 4 ? 2 : 1)];
  pdl_launch_then_wait();
  const int group = blockIdx.z / w.taps_y, tap_y = blockIdx.z % w.taps_y;
  const int first_channel = blockIdx.y * kTileChannels;
  const Int64 first = static_cast<Int64>(blockIdx.x) * kPositions;
  for (int i = threadIdx.x % kLanes; i < kPositions; i += kLanes) {
    const Place place(w, first + i, tap_y);
    const T* const from = x + place.offset + static_cast<Int64>(group) * w.channels * w.stride_c;
#pragma unroll 8
    for (int c = threadIdx.x / kLanes; c < kTileChannels; c += kThreads / kLanes) {
      const int channel = first_channel + c;
      T value = from_compute<T>(w.has_ones && channel == w.channels ? 1 : 0);
      if (place.inside && channel < w.channels) value = from[channel * w.stride_c];
      tile[i][c] = value;
    }
  }
  __syncthreads();
  T* const to = out + group * (w.all_positions * w.taps_y * w.padded_channels);
  for (int e = threadIdx.x; e < kTile; e += kThreads) {
    const int i = e / kTileChannels, channel = first_channel + e % kTileChannels;
    const Int64 position = first + i;
    if (position >= w.all_positions || channel >= w.padded_channels) continue;
    to[(position * w.taps_y + tap_y) * w.padded_channels + channel] = tile[i][e % kTileChannels];
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
  int tile_shift;                          // log2 of the channels of a tile
  WeightAxis y, x;
};

/// out[group][output][residue_y][residue_x][tap_x][tap_y][channel] from weights of any strides; a
/// bias that is not null belongs to the channel of ones. The grid: groups times outputs, tiles of
/// channels. The taps of a channel are neighbours in memory: threads read them together, and write
/// channels together.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    lay_weights(T* out, const T* weight, const T* bias, const Weights w) {
  __shared__ T tile[kWeightTile + kWeightTile / 8];
  pdl_launch_then_wait();
  const int group = blockIdx.x / w.outputs, output = blockIdx.x % w.outputs;
  const int first_channel = blockIdx.y << w.tile_shift;
  const int tile_channels = 1 << w.tile_shift, pitch = tile_channels + (sizeof(T) < 4 ? 2 : 1);
  const int taps = w.x.taps * w.y.taps, lines = w.y.shuffle * w.x.shuffle * taps;
  const T* const from = weight + group * w.stride_group + output * w.stride_out;
  T* const to = out + static_cast<Int64>(blockIdx.x) * lines * w.padded_channels;
  const int most = kWeightTile >> w.tile_shift, lane_shift = lines > 4 ? 3 : 2;
  const int lane = threadIdx.x & ((1 << lane_shift) - 1);
  for (int first = 0; first < lines; first += most) {
    const int count = min(most, lines - first);
    for (int i = lane; i < count; i += 1 << lane_shift) {
      const int line = first + i;
      const int residue = line / taps, tap = line - residue * taps;
      const int t_x = tap / w.y.taps, t_y = tap - t_x * w.y.taps;
      const int residue_y = residue / w.x.shuffle;
      const int tap_y = w.y.tap(t_y, residue_y);
      const int tap_x = w.x.tap(t_x, residue - residue_y * w.x.shuffle);
      const bool is_tap = tap_y >= 0 && tap_x >= 0;
      const T* const source = from + tap_y * w.stride_y + tap_x * w.stride_x;
#pragma unroll 4
      for (int c = threadIdx.x >> lane_shift; c < tile_channels; c += kThreads >> lane_shift) {
        const int channel = first_channel + c;
        T value = from_compute<T>(0);
        if (channel < w.channels) {
          if (is_tap) value = source[channel * w.stride_in];
        } else if (bias != nullptr && channel == w.channels && line == 0) {
          value = bias[blockIdx.x];
        }
        tile[i * pitch + c] = value;
      }
    }
    __syncthreads();
    for (int e = threadIdx.x; e < count << w.tile_shift; e += kThreads) {
      const int i = e >> w.tile_shift, c = e & (tile_channels - 1);
      if (first_channel + c >= w.padded_channels) continue;
      to[static_cast<Int64>(first + i) * w.padded_channels + first_channel + c] =
          tile[i * pitch + c];
    }
    __syncthreads();
  }
}

/// The rows of a product along one axis: output o is row (o + offset) / shuffle, of the channel
/// with the residue.
struct RowAxis {
  int out, shuffle, offset;
};
/// Rows ((n * phases + phase) * count_y + row_y) * columns + j, where row_x = j * period + phase.
struct Rows {
  Int64 all;  // rows of the product
  int channels, batch;
  int phases, period, count_y, columns;
  RowAxis y, x;
};

/// An output of the result's planes, and the row of the output.
struct Output {
  Int64 n;
  Int64 row;
  int residue, place;

  __device__ Output(const Rows& rows, Int64 position) {
    const Int64 line = divided(position, rows.x.out);
    n = divided(line, rows.y.out);
    const int y = static_cast<int>(line - n * rows.y.out);
    const int x = static_cast<int>(position - line * rows.x.out);
    place = y * rows.x.out + x;
    const int v_y = y + rows.y.offset, v_x = x + rows.x.offset;
    const int row_y = v_y / rows.y.shuffle, row_x = v_x / rows.x.shuffle;
    residue = (v_y - row_y * rows.y.shuffle) * rows.x.shuffle + v_x - row_x * rows.x.shuffle;
    const int j = row_x / rows.period;
    row = ((n * rows.phases + (row_x - j * rows.period)) * rows.count_y + row_y) * rows.columns + j;
  }
};

/// out[n][channel][y][x], contiguous, from product[channel, residue_y, residue_x][row] plus the
/// channel's bias. A thread has kChannels channels at a place.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    fold(T* out, const T* product, const T* bias, const Rows rows) {
  pdl_launch_then_wait();
  const Int64 position = static_cast<Int64>(blockIdx.x) * kThreads + threadIdx.x;
  const Int64 plane = static_cast<Int64>(rows.y.out) * rows.x.out;
  if (position >= plane * rows.batch) return;
  const Output o(rows, position);
  const int first = blockIdx.y * kChannels;
  const Int64 step = rows.all * rows.y.shuffle * rows.x.shuffle;
  const T* const from = product + first * step + o.residue * rows.all + o.row;
  T* const to = out + (o.n * rows.channels + first) * plane + o.place;
  T sums[kChannels];
#pragma unroll
  for (int c = 0; c < kChannels; ++c)
    if (first + c < rows.channels) sums[c] = from[c * step];
#pragma unroll
  for (int c = 0; c < kChannels; ++c) {
    if (first + c >= rows.channels) break;
    to[c * plane] = bias == nullptr
                        ? sums[c]
                        : from_compute<T>(to_compute(sums[c]) + to_compute(bias[first + c]));
  }
}

/// out[channel][row] of dy[n][channel][y][x] with any strides: fold() undone, without residues.
/// Zeros stand for rows without an output.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    spread(T* out, const T* dy, Int64 stride_n, Int64 stride_c, Int64 stride_y, Int64 stride_x,
           const Rows rows) {
  pdl_launch_then_wait();
  const Int64 row = static_cast<Int64>(blockIdx.x) * kThreads + threadIdx.x;
  if (row >= rows.all) return;
  const Int64 line = divided(row, rows.columns), plane = divided(line, rows.count_y);
  const Int64 n = divided(plane, rows.phases);
  const Int64 y = line - plane * rows.count_y;
  const Int64 x = (row - line * rows.columns) * rows.period + (plane - n * rows.phases);
  const bool inside = n < rows.batch && x < rows.x.out;
  const int first = blockIdx.y * kChannels;
  const T* const from = dy + n * stride_n + first * stride_c + y * stride_y + x * stride_x;
  T* const to = out + first * rows.all + row;
#pragma unroll 8
  for (int c = 0; c < kChannels; ++c) {
    if (first + c >= rows.channels) break;
    to[c * rows.all] = inside ? from[c * stride_c] : from_compute<T>(0);
  }
}
