// Weights as the products with few rows read them: 16 bytes of a row at a time, decoded in
// registers to pairs of the type that the tensor cores take.
//
// A format is a struct that a kernel takes by value; T is Float16 or BFloat16:
//   static constexpr int kValues   values along k of one load: 8, 16 or 32
//   using Row                      where a row begins: an address, or what load() needs beside it
//   struct Raw                     what a load gives, in registers (scales of a group too)
//   Row row(UInt64 batch, UInt64 n) const
//   static Raw load<Hint>(Row row, unsigned k)   k is a multiple of kValues, all inside the row
//   static void fetch(Row row, unsigned k)       the same to the second level of cache
//   static Raw none()                            decodes to zeros
//   static const void* at(Row row, unsigned k)   what load() reads, where Raw is its 16 bytes: such
//                                                formats may also pass through shared memory
//   static void decode(const Raw& raw, unsigned (&pairs)[kValues / 2])
// decode() writes the values in the order of k, the lower k in the lower half of a word. A scale of
// a whole row is not the format's: the kernel multiplies accumulators with it.
#pragma once

#include <kernwright/skinny.cuh>

namespace kernwright {

struct alignas(16) Words {
  unsigned word[4];
};

/// 16 bytes that are read once: past the first level, with more of the line fetched into the
/// second for a hint of 1 (128 bytes) or 2 (256).
template <int Hint>
__device__ __forceinline__ Words load_once(const void* from) {
  Words w;
#define KW_LOAD_ONCE(level)                                                           \
  asm volatile("ld.global.nc.L1::no_allocate" level ".v4.u32 {%0, %1, %2, %3}, [%4];" \
               : "=r"(w.word[0]), "=r"(w.word[1]), "=r"(w.word[2]), "=r"(w.word[3])   \
               : "l"(from))
  if constexpr (Hint == 2) {
    KW_LOAD_ONCE(".L2::256B");
  } else if constexpr (Hint == 1) {
    KW_LOAD_ONCE(".L2::128B");
  } else {
    KW_LOAD_ONCE("");
  }
#undef KW_LOAD_ONCE
  return w;
}

/// Weights as elements of any width, for the kernels without tensor cores. Distances are in
/// elements; `row` is the distance of the second last dimension in memory.
template <typename W>
struct WeightRows {
  const W* data;
  Int64 row, batch;
};

/// `Width` neighbours, past the first level where 16 bytes are loaded.
template <typename W, int Width, int Hint>
__device__ __forceinline__ Pack<W, Width> load_weights(const W* from) {
  if constexpr (sizeof(W) * Width == 16) {
    union Bits {
      Words words;
      Pack<W, Width> pack;
      __device__ Bits() {}
    } bits;
    bits.words = load_once<Hint>(from);
    return bits.pack;
  } else {
    return *reinterpret_cast<const Pack<W, Width>*>(from);
  }
}

__device__ __forceinline__ float to_float_value(Int8 x) { return static_cast<float>(x); }
template <typename T>
__device__ __forceinline__ float to_float_value(T x) {
  return to_compute(x);
}

/// Shared by formats of plain rows of bytes: 16 bytes of `Element`s.
template <typename Element>
struct ByteRows {
  static constexpr int kValues = 16 / static_cast<int>(sizeof(Element));
  using Row = const char*;
  using Raw = Words;
  const char* data;
  Int64 row_bytes, batch_bytes;

  __device__ __forceinline__ Row row(UInt64 batch, UInt64 n) const {
    return data + static_cast<Int64>(batch) * batch_bytes + static_cast<Int64>(n) * row_bytes;
  }
  __device__ __forceinline__ static const void* at(Row row, unsigned k) {
    return row + static_cast<UInt64>(k) * sizeof(Element);
  }
  template <int Hint>
  __device__ __forceinline__ static Raw load(Row row, unsigned k) {
    return load_once<Hint>(at(row, k));
  }
  __device__ __forceinline__ static void fetch(Row row, unsigned k) { fetch_ahead(at(row, k)); }
  __device__ __forceinline__ static Raw none() { return {}; }
};

/// The values themselves.
template <typename T>
struct PlainWeights : ByteRows<T> {
  __device__ __forceinline__ static void decode(const Words& raw, unsigned (&pairs)[4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) pairs[i] = raw.word[i];
  }
};

/// a * b + c of pairs.
__device__ __forceinline__ unsigned fma_pair(BFloat16, unsigned a, unsigned b, unsigned c) {
  unsigned d;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}
__device__ __forceinline__ unsigned fma_pair(Float16, unsigned a, unsigned b, unsigned c) {
  unsigned d;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}

/// Whole numbers of 8 bits, exactly. pair(): of two bytes of a word, kLower or kUpper.
struct Int8Halves {
  static constexpr unsigned kLower = 0x4140, kUpper = 0x4342;  ///< selectors of __byte_perm()
};
template <typename T>
struct Int8Weights;
/// 0x43 above 7 bits of v is 128 + the bits; v's sign doubles the 128, which is subtracted at the
/// end.
template <>
struct Int8Weights<BFloat16> : ByteRows<Int8>, Int8Halves {
  __device__ __forceinline__ static unsigned pair(unsigned word, unsigned half) {
    const unsigned v = __byte_perm(word, 0x43434343u, half);
    return fma_pair(BFloat16(), v & 0xff80ff80u, 0xbf80bf80u, v & 0xff7fff7fu);
  }
  __device__ __forceinline__ static void decode(const Words& raw, unsigned (&pairs)[8]) {
#pragma unroll
    for (int i = 0; i < 8; ++i) pairs[i] = pair(raw.word[i / 2], i % 2 ? kUpper : kLower);
  }
};
/// 0x64 above the 8 bits of v + 128 is 1152 + v.
template <>
struct Int8Weights<Float16> : ByteRows<Int8>, Int8Halves {
  __device__ __forceinline__ static unsigned pair(unsigned word, unsigned half) {
    const unsigned v = __byte_perm(word ^ 0x80808080u, 0x64646464u, half);
    return fma_pair(Float16(), v, 0x3c003c00u, 0xe480e480u);
  }
  __device__ __forceinline__ static void decode(const Words& raw, unsigned (&pairs)[8]) {
#pragma unroll
    for (int i = 0; i < 8; ++i) pairs[i] = pair(raw.word[i / 2], i % 2 ? kUpper : kLower);
  }
};

/// Two numbers of float8_e4m3fn in the upper bytes of the halves, as pairs of T; `Shift` is the
/// difference of the exponents' lengths. A NaN gets all bits of the exponent.
template <typename T, int Shift, unsigned Power, unsigned Last, unsigned Fill>
__device__ __forceinline__ unsigned e4m3_pair(unsigned upper) {
  const unsigned magnitude = (upper & 0x7f007f00u) >> Shift;
  const unsigned nan = (magnitude + Last) & (Last << 7);
  const unsigned bits = (magnitude | nan * Fill) | (upper & 0x80008000u);
  return fma_pair(T(), bits, Power, 0x80008000u);
}

/// Two numbers of float8, lower byte first, as a pair.
__device__ __forceinline__ unsigned round_pair(Float16, Float8E4M3, unsigned short bytes) {
#if __CUDA_ARCH__ >= 890
  unsigned pair;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"(bytes));
  return pair;
#else
  // Times 2^8, as the biases are 15 and 7.
  const unsigned upper = __byte_perm(bytes, 0, 0x1404);
  return e4m3_pair<Float16, 1, 0x5c005c00u, 0x00800080u, 1u>(upper);
#endif
}
/// A number of float8_e5m2 is the upper byte of the float16.
__device__ __forceinline__ unsigned round_pair(Float16, Float8E5M2, unsigned short bytes) {
  return __byte_perm(bytes, 0, 0x1404);
}
/// The bfloat16 of two float16 that have no more bits.
__device__ __forceinline__ unsigned bfloat16_pair(unsigned halves) {
  const float lower = to_compute(Float16{static_cast<unsigned short>(halves)});
  const float upper = to_compute(Float16{static_cast<unsigned short>(halves >> 16)});
  unsigned pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(upper), "f"(lower));
  return pair;
}
__device__ __forceinline__ unsigned round_pair(BFloat16, Float8E5M2, unsigned short bytes) {
  return bfloat16_pair(round_pair(Float16(), Float8E5M2(), bytes));
}
__device__ __forceinline__ unsigned round_pair(BFloat16, Float8E4M3, unsigned short bytes) {
#if __CUDA_ARCH__ >= 890
  return bfloat16_pair(round_pair(Float16(), Float8E4M3(), bytes));
#else
  // Times 2^120, as the biases are 127 and 7.
  const unsigned upper = __byte_perm(bytes, 0, 0x1404);
  return e4m3_pair<BFloat16, 4, 0x7b807b80u, 0x00100010u, 15u>(upper);
#endif
}

template <typename T>
__device__ __forceinline__ unsigned round_pair(T, Int8, unsigned short bytes) {
  return Int8Weights<T>::pair(bytes, Int8Weights<T>::kLower);
}

/// float8_e4m3fn or float8_e5m2, exactly.
template <typename T, typename Element = Float8E4M3>
struct Float8Weights : ByteRows<Element> {
  __device__ __forceinline__ static void decode(const Words& raw, unsigned (&pairs)[8]) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const auto bytes = static_cast<unsigned short>(raw.word[i / 2] >> i % 2 * 16);
      pairs[i] = round_pair(T(), Element(), bytes);
    }
  }
};

}  // namespace kernwright
