// Rows as whole numbers or 8-bit floats times a scale, and back.
#include <kernwright/elements.cuh>
#include <kernwright/reduce.cuh>

using namespace kernwright;

constexpr int kThreads = 256;

/// The largest magnitude of a format, and the nearest value of it.
template <typename Q>
struct Target;
template <>
struct Target<Int8> {
  static constexpr float kLimit = 127.0f;
  __device__ static Int8 apply(float x) {
    if (x != x) return 0;
    return static_cast<Int8>(__float2int_rn(fminf(fmaxf(x, -kLimit), kLimit)));
  }
};
template <>
struct Target<Float8E4M3> {
  static constexpr float kLimit = 448.0f;
  __device__ static Float8E4M3 apply(float x) {
    if (x != x) return from_float<Float8E4M3>(x);
    return from_float<Float8E4M3>(fminf(fmaxf(x, -kLimit), kLimit));
  }
};
template <>
struct Target<Float8E5M2> {
  static constexpr float kLimit = 57344.0f;
  __device__ static Float8E5M2 apply(float x) {
    if (x != x) return from_float<Float8E5M2>(x);
    return from_float<Float8E5M2>(fminf(fmaxf(x, -kLimit), kLimit));
  }
};

template <typename T, int Width>
__device__ __forceinline__ Pack<T, Width> load(const T* row, UInt64 at, UInt64 end) {
  Pack<T, Width> pack = {};
  if (at < end) pack = *reinterpret_cast<const Pack<T, Width>*>(row + at);
  return pack;
}

template <typename T, int Width>
__device__ __forceinline__ float largest(const Pack<T, Width>& pack, float before) {
#pragma unroll
  for (int i = 0; i < Width; ++i) before = Maximum()(before, fabsf(to_compute(pack.value[i])));
  return before;
}

/// Divides, as a product with the inverse would round twice; 0 where the scale is.
template <typename Q, typename T, int Width>
__device__ __forceinline__ void write(Q* row, UInt64 at, const Pack<T, Width>& pack, float scale) {
  Pack<Q, Width> result;
  const float divisor = scale == 0 ? 1.0f : scale;
#pragma unroll
  for (int i = 0; i < Width; ++i) {
    result.value[i] = Target<Q>::apply(to_compute(pack.value[i]) / divisor);
  }
  *reinterpret_cast<Pack<Q, Width>*>(row + at) = result;
}

/// A row in the registers of `Lanes` threads, a warp or a block: read once. `columns` is a multiple
/// of Width.
template <typename Q, typename T, int Lanes, int Packs, int Width>
__global__ void __launch_bounds__(Lanes > kThreads ? Lanes : kThreads)
    quantize_short(Q* out, float* scales, const T* in, UInt64 rows, UInt64 columns) {
  constexpr int kRows = Lanes == 32 ? kThreads / 32 : 1;
  const UInt64 row = static_cast<UInt64>(blockIdx.x) * kRows + (kRows > 1 ? threadIdx.x / 32 : 0);
  if (row >= rows) return;  // whole warps
  const unsigned lane = kRows > 1 ? threadIdx.x % 32 : threadIdx.x;
  const T* const from = in + row * columns;
  Pack<T, Width> pack[Packs];
#pragma unroll
  for (int i = 0; i < Packs; ++i) {
    pack[i] = load<T, Width>(from, static_cast<UInt64>(i * Lanes + lane) * Width, columns);
  }
  float most = 0;
#pragma unroll
  for (int i = 0; i < Packs; ++i) most = largest(pack[i], most);
  if (Lanes == 32) {
    most = warp_reduce(most, Maximum());
  } else {
    most = block_reduce<Lanes>(most, Maximum(), 0.0f);
  }
  const float scale = most / Target<Q>::kLimit;
  if (lane == 0) scales[row] = scale;
#pragma unroll
  for (int i = 0; i < Packs; ++i) {
    const UInt64 at = static_cast<UInt64>(i * Lanes + lane) * Width;
    if (at < columns) write(out + row * columns, at, pack[i], scale);
  }
}

/// Blocks of `Block` numbers of a row, each held by neighbouring threads: read once. A thread block
/// has one position in several rows, whose scales are contiguous: the scales of the next position
/// are `scale_stride` behind. `columns` is a multiple of Width.
template <typename Q, typename T, int Block, int Width>
__global__ void __launch_bounds__(kThreads)
    quantize_blocks(Q* out, float* scales, const T* in, UInt64 rows, UInt64 columns,
                    UInt64 scale_stride) {
  constexpr int kLanes = Block / Width < 32 ? Block / Width : 32;
  constexpr int kPacks = Block / Width / kLanes, kRows = kThreads / kLanes;
  const UInt64 place = blockIdx.y;
  const unsigned lane = threadIdx.x % kLanes;
  const UInt64 step = static_cast<UInt64>(gridDim.x) * kRows;
  for (UInt64 first = static_cast<UInt64>(blockIdx.x) * kRows; first < rows; first += step) {
    const UInt64 row = first + threadIdx.x / kLanes;
    const UInt64 end = row < rows ? columns : 0;
    Pack<T, Width> pack[kPacks];
    float most = 0;
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      const UInt64 at = place * Block + static_cast<UInt64>(i * kLanes + lane) * Width;
      pack[i] = load<T, Width>(in + row * columns, at, end);
      most = largest(pack[i], most);
    }
#pragma unroll
    for (int apart = kLanes / 2; apart > 0; apart /= 2) {
      most = Maximum()(most, __shfl_xor_sync(~0u, most, apart));
    }
    const float scale = most / Target<Q>::kLimit;
    if (lane == 0 && row < rows) scales[place * scale_stride + row] = scale;
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      const UInt64 at = place * Block + static_cast<UInt64>(i * kLanes + lane) * Width;
      if (at < end) write(out + row * columns, at, pack[i], scale);
    }
  }
}

/// The largest magnitude of each part of each row; a block a part, blockIdx.y and .z the row.
template <typename T, int Width>
__global__ void __launch_bounds__(kThreads)
    part_maxima(float* partial, const T* in, UInt64 rows, UInt64 columns, UInt64 part) {
  const UInt64 row = static_cast<UInt64>(blockIdx.z) * gridDim.y + blockIdx.y;
  if (row >= rows) return;
  const UInt64 begin = blockIdx.x * part, end = min(begin + part, columns);
  float most = 0;
#pragma unroll 4
  for (UInt64 at = begin + threadIdx.x * Width; at < end; at += kThreads * Width) {
    most = largest(load<T, Width>(in + row * columns, at, end), most);
  }
  most = block_reduce<kThreads>(most, Maximum(), 0.0f);
  if (threadIdx.x == 0) partial[row * gridDim.x + blockIdx.x] = most;
}

/// Parts of rows: by `partial` of part_maxima, or where there is none, by the given scales,
/// one for every `scale_stride`-th row.
template <typename Q, typename T, int Width>
__global__ void __launch_bounds__(kThreads)
    quantize_parts(Q* out, float* scales, const T* in, const float* partial, UInt64 rows,
                   UInt64 columns, UInt64 part, UInt64 scale_stride) {
  const UInt64 row = static_cast<UInt64>(blockIdx.z) * gridDim.y + blockIdx.y;
  if (row >= rows) return;
  float scale;
  if (partial != nullptr) {
    float most = 0;
    for (unsigned i = threadIdx.x; i < gridDim.x; i += kThreads) {
      most = Maximum()(most, partial[row * gridDim.x + i]);
    }
    scale = block_reduce<kThreads>(most, Maximum(), 0.0f) / Target<Q>::kLimit;
    if (blockIdx.x == 0 && threadIdx.x == 0) scales[row] = scale;
  } else {
    scale = scales[row * scale_stride];
  }
  const UInt64 begin = blockIdx.x * part, end = min(begin + part, columns);
#pragma unroll 2
  for (UInt64 at = begin + threadIdx.x * Width; at < end; at += kThreads * Width) {
    write(out + row * columns, at, load<T, Width>(in + row * columns, at, end), scale);
  }
}

/// value * the scale of the row; `columns` is a multiple of Width.
template <typename T, typename Q, int Width, typename Index>
__global__ void __launch_bounds__(kThreads)
    dequantize(T* out, const Q* in, const float* scales, Index count, Index columns,
               Index scale_stride) {
  const Index step = static_cast<Index>(gridDim.x) * kThreads * Width;
  for (Index at = (static_cast<Index>(blockIdx.x) * kThreads + threadIdx.x) * Width; at < count;
       at += step) {
    const auto pack = *reinterpret_cast<const Pack<Q, Width>*>(in + at);
    const float scale = scales[at / columns * scale_stride];
    Pack<T, Width> result;
#pragma unroll
    for (int i = 0; i < Width; ++i) {
      result.value[i] = from_compute<T>(static_cast<float>(to_compute(pack.value[i])) * scale);
    }
    *reinterpret_cast<Pack<T, Width>*>(out + at) = result;
  }
}
