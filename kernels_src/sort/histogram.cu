// Histograms: lowest and highest element, counts by value and by bin, sums of weights in a fixed
// order.
#include <kernwright/order.cuh>

using namespace kernwright;

constexpr int kThreads = 256;
constexpr int kSharedBins = 4096;

/// The lowest and the highest element of each block's chunk (NaN is above all), side by side.
template <typename Bits>
__global__ void find_extremes(const Bits* __restrict__ x, Int64 size, Int64 chunk,
                              Bits* __restrict__ extremes, const Order order) {
  __shared__ alignas(16) unsigned char memory[2 * kThreads * sizeof(Bits)];
  Bits* const lows = reinterpret_cast<Bits*>(memory);
  Bits* const highs = lows + kThreads;
  const Int64 begin = blockIdx.x * chunk;
  const Int64 end = begin + chunk < size ? begin + chunk : size;
  Bits low = x[begin], high = low;
#pragma unroll 4
  for (Int64 at = begin + threadIdx.x; at < end; at += kThreads) {
    const Bits value = x[at];
    if (order_key(value, order) < order_key(low, order)) low = value;
    if (order_key(high, order) < order_key(value, order)) high = value;
  }
  lows[threadIdx.x] = low;
  highs[threadIdx.x] = high;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x >= half) continue;
    const Bits lower = lows[threadIdx.x + half], higher = highs[threadIdx.x + half];
    if (order_key(lower, order) < order_key(lows[threadIdx.x], order)) lows[threadIdx.x] = lower;
    if (order_key(highs[threadIdx.x], order) < order_key(higher, order))
      highs[threadIdx.x] = higher;
  }
  if (threadIdx.x > 0) return;
  extremes[2 * blockIdx.x] = lows[0];
  extremes[2 * blockIdx.x + 1] = highs[0];
}

/// The bin of an integer is the integer.
struct ValueBins {
  Int64 count;
  template <typename T>
  __device__ Int64 operator()(T x) const {
    const Int64 value = static_cast<Int64>(widen(x));
    return value >= 0 && value < count ? value : -1;
  }
};

/// Bin i holds edges[i] <= x < edges[i + 1], the last one also x = edges[count]. With a `scale`
/// above 0 the bins are of equal width, `scale` of them in 1, and the edges decide near a border.
struct EdgeBins {
  Int64 count;
  const double* edges;
  double scale;
  template <typename T>
  __device__ Int64 operator()(T x) const {
    const double value = static_cast<double>(widen(x));
    if (!(value >= edges[0] && value <= edges[count])) return -1;
    if (scale > 0) {
      const double guess = (value - edges[0]) * scale;
      Int64 bin = guess < static_cast<double>(count - 1) ? static_cast<Int64>(guess) : count - 1;
      while (bin > 0 && value < edges[bin]) --bin;
      while (bin < count - 1 && value >= edges[bin + 1]) ++bin;
      return bin;
    }
    Int64 low = 0, high = count - 1;  // the last edge that is not above the value
    while (low < high) {
      const Int64 middle = low + (high - low + 1) / 2;
      const bool below = edges[middle] <= value;
      low = below ? middle : low;
      high = below ? high : middle - 1;
    }
    return low;
  }
};

/// Adds the number of elements in each bin to `counts`. Integer additions give one result in any
/// order.
template <typename T, typename Bins>
__global__ void count_bins(const T* __restrict__ x, Int64 size, Int64 chunk, const Bins bins,
                           unsigned long long* __restrict__ counts) {
  __shared__ unsigned local[kSharedBins];
  const bool shared = bins.count <= kSharedBins;
  const int shared_bins = shared ? static_cast<int>(bins.count) : 0;
  for (int i = threadIdx.x; i < shared_bins; i += kThreads) local[i] = 0;
  __syncthreads();
  const Int64 begin = blockIdx.x * chunk;
  const Int64 end = begin + chunk < size ? begin + chunk : size;
#pragma unroll 4
  for (Int64 at = begin + threadIdx.x; at < end; at += kThreads) {
    const Int64 bin = bins(x[at]);
    if (bin < 0) continue;
    if (shared) {
      atomicAdd(&local[bin], 1u);
    } else {
      atomicAdd(&counts[bin], 1ull);
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < shared_bins; i += kThreads) {
    if (local[i] != 0) atomicAdd(&counts[i], static_cast<unsigned long long>(local[i]));
  }
}

/// The bin of each element; bins.count for what lies outside.
template <typename T, typename Bins>
__global__ void write_bins(const T* __restrict__ x, Int64 size, const Bins bins,
                           Int64* __restrict__ to) {
  const Int64 step = static_cast<Int64>(gridDim.x) * kThreads;
  for (Int64 i = static_cast<Int64>(blockIdx.x) * kThreads + threadIdx.x; i < size; i += step) {
    const Int64 bin = bins(x[i]);
    to[i] = bin < 0 ? bins.count : bin;
  }
}

/// The first of the sorted elements that is not below `value`.
template <typename T>
__device__ __forceinline__ Int64 first_token(const T* sorted, Int64 size, Int64 value) {
  Int64 low = 0, high = size;
  while (low < high) {
    const Int64 middle = low + (high - low) / 2;
    const bool below = static_cast<Int64>(widen(sorted[middle])) < value;
    low = below ? middle + 1 : low;
    high = below ? high : middle;
  }
  return low;
}

/// sums[bin][part]: the weights of one part of a bin's elements. `sorted` are the bins in order,
/// `order` tells where each element was. One warp for each part.
template <typename T>
__global__ void sum_weights(const T* __restrict__ sorted, const Int64* __restrict__ order,
                            const double* __restrict__ weights, Int64 size, Int64 bins, int parts,
                            double* __restrict__ sums) {
  const int lane = threadIdx.x % 32;
  const Int64 warps = static_cast<Int64>(gridDim.x) * (kThreads / 32);
  Int64 line = (static_cast<Int64>(blockIdx.x) * kThreads + threadIdx.x) / 32;
  for (; line < bins * parts; line += warps) {
    const Int64 bin = line / parts, part = line - bin * parts;
    const Int64 first = first_token(sorted, size, bin);
    const Int64 each = (first_token(sorted, size, bin + 1) - first + parts - 1) / parts;
    const Int64 begin = first + part * each;
    double sum = 0;
    for (Int64 i = begin + lane; i < begin + each && i < size; i += 32) {
      if (static_cast<Int64>(widen(sorted[i])) != bin) break;
      sum += weights[order[i]];
    }
#pragma unroll
    for (int mask = 16; mask > 0; mask /= 2) sum += __shfl_xor_sync(~0u, sum, mask);
    if (lane == 0) sums[line] = sum;
  }
}

__global__ void sum_parts(const double* __restrict__ partial_sums, double* __restrict__ sums,
                          Int64 bins, int parts) {
  const Int64 step = static_cast<Int64>(gridDim.x) * kThreads;
  for (Int64 bin = static_cast<Int64>(blockIdx.x) * kThreads + threadIdx.x; bin < bins;
       bin += step) {
    double sum = 0;
    for (int i = 0; i < parts; ++i) sum += partial_sums[bin * parts + i];
    sums[bin] = sum;
  }
}

/// counts / (their sum * width of the bin). One block.
template <typename T>
__global__ void scale_to_density(const T* __restrict__ counts, const double* __restrict__ edges,
                                 double* __restrict__ density, Int64 bins) {
  __shared__ double sums[kThreads];
  double sum = 0;
  for (Int64 i = threadIdx.x; i < bins; i += kThreads) sum += static_cast<double>(counts[i]);
  sums[threadIdx.x] = sum;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  __syncthreads();
  for (Int64 i = threadIdx.x; i < bins; i += kThreads) {
    density[i] = static_cast<double>(counts[i]) / (edges[i + 1] - edges[i]) / sums[0];
  }
}
