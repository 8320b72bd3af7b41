// Fragments of mma and wmma as plain matrices: element formats, tiles, and the multiplication.
//
// Layout. In every mma shape lane 4 * g + t holds row g (of A), column g (of B), and the element
// pairs of row g (of C and D); one register of all 32 lanes, read as one array of elements, is
// therefore a row-major tile of 8 rows (B: 8 columns) by 4 * kPerRegister steps of k.
//
// Accumulation. Products are exact (the factors have at most 11 significant bits in float, integers
// fit 32 bits) and are added to C one by one, k ascending, each sum rounded to nearest in float (in
// double for f64, with fma). A GPU adds several products at once in wider, truncating arithmetic;
// results agree within the rounding error of K float additions and are not bit-equal in general.
#pragma once

#include "sim/numeric/half.h"
#include "sim/ops/lanes.h"

#include <cstring>

namespace kernwright::sim::KW_SIM_NS {

/// Copies an 8x8 tile of 16-bit elements, rows and columns exchanged if `exchange`. Lane
/// 4 * g + t of a register holds elements 2 * t and 2 * t + 1 of row g: a row-major tile.
inline void copy_tile(const void* in, void* out, bool exchange) {
  std::uint16_t from[64], to[64];
  if (!exchange) return static_cast<void>(std::memcpy(out, in, sizeof to));
  std::memcpy(from, in, sizeof from);
  for (int i = 0; i < 64; ++i) to[i] = from[i % 8 * 8 + i / 8];
  std::memcpy(out, to, sizeof to);
}

/// One element format: how many fit a register and, in unpack(), how a register's 32 lanes become
/// values. `kind` tells apart formats of one size: 1 = signed (integers), 1 = e5m2 (8-bit floats).
template <typename V, int kCount, typename R = std::uint32_t>
struct ElementFormat {
  using Value = V;
  using Register = R;
  static constexpr int kPerRegister = kCount;
};
struct F16 : ElementFormat<float, 2> {
  static void unpack(const Register* reg, Value* out, bool = false) {
    std::uint16_t bits[64];
    std::memcpy(bits, reg, sizeof bits);
#if defined(__F16C__)
    for (int i = 0; i < 64; i += 8)
      _mm256_storeu_ps(
          out + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(bits + i))));
#else
    KW_LANES for (int i = 0; i < 64; ++i) out[i] = numeric::f16_to_f32(bits[i]);
#endif
  }
};
struct BF16 : ElementFormat<float, 2> {
  static void unpack(const Register* reg, Value* out, bool = false) {
    std::uint16_t bits[64];
    std::memcpy(bits, reg, sizeof bits);
    KW_LANES for (int i = 0; i < 64; ++i) out[i] = numeric::bf16_to_f32(bits[i]);
  }
};
/// The low 13 bits of the register are ignored.
struct TF32 : ElementFormat<float, 1> {
  static void unpack(const Register* reg, Value* out, bool = false) {
    KW_LANES for (int i = 0; i < 32; ++i) out[i] = std::bit_cast<float>(reg[i] & 0xffffe000u);
  }
};
struct F64 : ElementFormat<double, 1, double> {
  static void unpack(const Register* reg, Value* out, bool = false) {
    std::memcpy(out, reg, 32 * sizeof *reg);
  }
};
/// e4m3 has no infinities and 0x7f is NaN; e5m2 is the upper byte of an f16.
struct Float8 : ElementFormat<float, 4> {
  static float e5m2(std::uint8_t bits) {
    return numeric::f16_to_f32(static_cast<std::uint16_t>(bits << 8));
  }
  static float e4m3(std::uint8_t bits) {
    const std::uint32_t magnitude = bits & 0x7fu;
    // Moved to the place of an f16's mantissa, the exponent's bias is off by 15 - 7.
    const float scaled = numeric::f16_to_f32(static_cast<std::uint16_t>(magnitude << 7)) * 256.0f;
    const float value = magnitude == 0x7f ? std::bit_cast<float>(0x7fc00000u) : scaled;
    return (bits & 0x80u) != 0 ? -value : value;
  }
  static void unpack(const Register* reg, Value* out, bool is_e5m2 = false) {
    std::uint8_t bits[128];
    std::memcpy(bits, reg, sizeof bits);
    for (int i = 0; i < 128; ++i) out[i] = is_e5m2 ? e5m2(bits[i]) : e4m3(bits[i]);
  }
};
struct Int8 : ElementFormat<std::int32_t, 4> {
  static void unpack(const Register* reg, Value* out, bool is_signed = false) {
    std::uint8_t bits[128];
    std::memcpy(bits, reg, sizeof bits);
    const std::int32_t sign = is_signed ? 0x80 : 0;
    KW_LANES for (int i = 0; i < 128; ++i) out[i] = (bits[i] ^ sign) - sign;
  }
};
struct Int4 : ElementFormat<std::int32_t, 8> {
  static void unpack(const Register* reg, Value* out, bool is_signed = false) {
    const std::int32_t sign = is_signed ? 8 : 0;
    for (int i = 0; i < 32 * 8; ++i) {
      const auto nibble = static_cast<std::int32_t>((reg[i / 8] >> (4 * (i % 8))) & 15u);
      out[i] = (nibble ^ sign) - sign;
    }
  }
};
/// 32 single bits at a time.
struct Bits : ElementFormat<std::uint32_t, 1> {
  static void unpack(const Register* reg, Value* out, bool = false) {
    std::memcpy(out, reg, 32 * sizeof *reg);
  }
};

/// Tile of 8 columns by kSteps steps of k, column-major, to rows of k.
template <typename V, int kSteps>
[[gnu::always_inline]] inline void transpose_tile(const V* in, V* out) {
  for (int n = 0; n < 8; ++n)
    for (int k = 0; k < kSteps; ++k) out[k * 8 + n] = in[n * kSteps + k];
}

/// B's register as rows of k with 8 columns each.
template <typename Format>
[[gnu::always_inline]] inline void unpack_rows(const typename Format::Register* reg,
                                               typename Format::Value* out, bool kind) {
#if defined(__AVX512BW__)
  if constexpr (Format::kPerRegister == 2) {
    alignas(64) std::uint16_t order[32];
    for (int i = 0; i < 32; ++i) order[i] = static_cast<std::uint16_t>((i % 8) * 8 + i / 8);
    const __m512i first = _mm512_load_si512(order);
    const __m512i second = _mm512_add_epi16(first, _mm512_set1_epi16(4));
    const __m512i low = _mm512_loadu_si512(reg), high = _mm512_loadu_si512(reg + 16);
    alignas(64) std::uint32_t turned[32];
    _mm512_store_si512(turned, _mm512_permutex2var_epi16(low, first, high));
    _mm512_store_si512(turned + 16, _mm512_permutex2var_epi16(low, second, high));
    Format::unpack(turned, out, kind);
    return;
  }
#endif
  constexpr int kSteps = 4 * Format::kPerRegister;
  alignas(64) typename Format::Value tile[8 * kSteps];
  Format::unpack(reg, tile, kind);
  transpose_tile<typename Format::Value, kSteps>(tile, out);
}

/// Eight columns of one row.
template <typename V>
struct TileRow {
  typedef V Vector __attribute__((vector_size(8 * sizeof(V))));
};
using FloatRow = TileRow<float>::Vector;
using IntRow = TileRow<std::uint32_t>::Vector;

/// sum = a * b + sum for one row; by reference, since passing wide vectors depends on the target.
[[gnu::always_inline]] inline void accumulate_row(float a, const FloatRow& b, FloatRow& sum) {
#if defined(__FMA__)
  sum = reinterpret_cast<FloatRow>(_mm256_fmadd_ps(_mm256_set1_ps(a), reinterpret_cast<__m256>(b),
                                                   reinterpret_cast<__m256>(sum)));
#else
  sum = a * b + sum;
#endif
}
[[gnu::always_inline]] inline void accumulate_row(std::uint32_t a, const IntRow& b, IntRow& sum) {
  sum = a * b + sum;
}

/// sum[8][8] += a * b for one row block, eight sums in registers. `a` in tiles a_stride apart, each
/// [8][kSteps]; `b` as rows [k][8].
template <typename V, int kSteps>
[[gnu::always_inline]] inline void multiply_block(const V* a, std::size_t a_stride, const V* b,
                                                  V* sum, int blocks) {
  typename TileRow<V>::Vector acc[8];
  std::memcpy(acc, sum, sizeof acc);
  for (int block = 0; block < blocks; ++block) {
    const V* from = a + static_cast<std::size_t>(block) * a_stride;
    for (int k = 0; k < kSteps; ++k) {
      typename TileRow<V>::Vector line;
      std::memcpy(&line, b + (block * kSteps + k) * 8, sizeof line);
#pragma GCC unroll 8
      for (int r = 0; r < 8; ++r) accumulate_row(from[r * kSteps + k], line, acc[r]);
    }
  }
  std::memcpy(sum, acc, sizeof acc);
}

/// One element at a time: double with fma, single bits with popc.
template <typename V, int kSteps, typename F>
[[gnu::always_inline]] inline void multiply_block_steps(const V* a, std::size_t a_stride,
                                                        const V* b, V* sum, int blocks, F step) {
  for (int r = 0; r < 8; ++r)
    for (int block = 0; block < blocks; ++block)
      for (int k = 0; k < kSteps; ++k)
        for (int n = 0; n < 8; ++n)
          sum[r * 8 + n] = step(a[static_cast<std::size_t>(block) * a_stride +
                                  static_cast<std::size_t>(r * kSteps + k)],
                                b[(block * kSteps + k) * 8 + n], sum[r * 8 + n]);
}

}  // namespace kernwright::sim::KW_SIM_NS
