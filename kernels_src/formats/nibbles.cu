// Integers of 4 bits, two in a byte, the first in its low half.
#include <kernwright/elements.cuh>

using namespace kernwright;

constexpr int kThreads = 256;

/// `bytes` bytes hold the rows of `x`. Each row has `length` bytes, of which the low halves count;
/// where that is odd the last half is 0. Threads make `Width` bytes: 1, or 8 of rows of whole bytes
/// as one.
template <int Width>
__global__ void __launch_bounds__(kThreads)
    pack_nibbles(const UInt8* __restrict__ x, UInt8* __restrict__ out, UInt64 bytes,
                 UInt64 length) {
  const UInt64 row_bytes = (length + 1) / 2, step = static_cast<UInt64>(gridDim.x) * kThreads;
  for (UInt64 i = static_cast<UInt64>(blockIdx.x) * kThreads + threadIdx.x; i < bytes / Width;
       i += step) {
    if constexpr (Width == 1) {
      const UInt64 row = i / row_bytes, at = row * length + (i - row * row_bytes) * 2;
      const unsigned high = at + 1 < (row + 1) * length ? x[at + 1] : 0;
      out[i] = static_cast<UInt8>((x[at] & 15u) | high << 4);
    } else {
      const Pack<UInt8, 2 * Width> from = reinterpret_cast<const Pack<UInt8, 2 * Width>*>(x)[i];
      Pack<UInt8, Width> to;
#pragma unroll
      for (int j = 0; j < Width; ++j) {
        const unsigned high = from.value[2 * j + 1];
        to.value[j] = static_cast<UInt8>((from.value[2 * j] & 15u) | high << 4);
      }
      reinterpret_cast<Pack<UInt8, Width>*>(out)[i] = to;
    }
  }
}

/// The number of a half, as a byte.
template <bool Signed>
__device__ __forceinline__ UInt8 signed_nibble(unsigned half) {
  return static_cast<UInt8>(Signed ? (half ^ 8u) - 8u : half);
}

/// The other way round: rows of `length` numbers, `count` of them in all.
template <bool Signed, int Width>
__global__ void __launch_bounds__(kThreads)
    unpack_nibbles(const UInt8* __restrict__ packed, UInt8* __restrict__ out, UInt64 count,
                   UInt64 length) {
  const UInt64 row_bytes = (length + 1) / 2, step = static_cast<UInt64>(gridDim.x) * kThreads;
  for (UInt64 i = static_cast<UInt64>(blockIdx.x) * kThreads + threadIdx.x;
       i < (Width == 1 ? count : count / (2 * Width)); i += step) {
    if constexpr (Width == 1) {
      const UInt64 row = i / length, at = i - row * length;
      const unsigned both = packed[row * row_bytes + at / 2];
      out[i] = signed_nibble<Signed>(at % 2 == 0 ? both & 15u : both >> 4);
    } else {
      const Pack<UInt8, Width> from = reinterpret_cast<const Pack<UInt8, Width>*>(packed)[i];
      Pack<UInt8, 2 * Width> to;
#pragma unroll
      for (int j = 0; j < Width; ++j) {
        to.value[2 * j] = signed_nibble<Signed>(from.value[j] & 15u);
        to.value[2 * j + 1] = signed_nibble<Signed>(static_cast<unsigned>(from.value[j]) >> 4);
      }
      reinterpret_cast<Pack<UInt8, 2 * Width>*>(out)[i] = to;
    }
  }
}
