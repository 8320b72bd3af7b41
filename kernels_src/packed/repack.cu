// Quantised weights from the layouts of their formats to that of packed_weights.cuh, and from there
// to numbers.
#include <kernwright/packed_weights.cuh>

using namespace kernwright;

constexpr int kThreads = 256;

// ---- where the code of a number is, by format: row n of the weights, column k

/// Rows of bytes or of units in blocks: `bytes` of a block of `values`, from `offset` on, one for
/// each `step` values. With `columns` groups of k are rows, and each column is of one n; `order`
/// and `lines`, if not null, have the place of each k and the row of each group.
constexpr UInt32 kNoLine = 0xffffffffu;
struct Field {
  const UInt8* in;
  UInt64 k;
  UInt32 values, bytes, offset, step;
  UInt64 columns;
  const UInt32 *order, *lines;
  __device__ UInt32 line(UInt64 at) const {
    const auto group = static_cast<UInt32>(at / values);
    return lines == nullptr ? group : lines[group];
  }
  /// All ones, a NaN, where a group has no row.
  template <typename Unit>
  __device__ Unit unit(UInt64 row, UInt64 at) const {
    const UInt64 number = row * k + at;
    const UInt8* from =
        in + number / values * bytes + offset + number % values / step * sizeof(Unit);
    bool found = true;
    if (columns != 0) {
      const UInt32 group = line(at);
      found = group != kNoLine;
      from = in + (group * columns + row) * sizeof(Unit);
    }
    Unit made;
    auto* const to = reinterpret_cast<UInt8*>(&made);
#pragma unroll
    for (int i = 0; i < static_cast<int>(sizeof(Unit)); ++i) to[i] = found ? from[i] : 255;
    return made;
  }
  __device__ unsigned code(UInt64 row, UInt64 at) const { return unit<UInt8>(row, at); }
};

/// Two a byte, the first of them in the high half if `High`.
template <bool High>
struct Nibbles {
  Field from;
  __device__ unsigned code(UInt64 row, UInt64 at) const {
    const UInt64 number = row * from.k + at;
    return from.in[number / 2] >> ((number % 2 != 0) == High ? 0 : 4) & 15;
  }
};

/// int32 words of GPTQ: eight of k; of AWQ: eight columns, the even ones first.
struct GptqWords {
  Field from;
  __device__ unsigned code(UInt64 row, UInt64 at) const {
    if (from.order != nullptr) at = from.order[at];
    const UInt32 word = reinterpret_cast<const UInt32*>(from.in)[at / 8 * from.columns + row];
    return word >> (at % 8 * 4) & 15;
  }
};
__device__ __forceinline__ unsigned awq_nibble(const UInt8* in, UInt64 columns, UInt64 line,
                                               UInt64 column) {
  const UInt32 word = reinterpret_cast<const UInt32*>(in)[line * (columns / 8) + column / 8];
  const unsigned i = static_cast<unsigned>(column % 8);
  return word >> ((i % 2 * 4 + i / 2) * 4) & 15;
}
struct AwqWords {
  Field from;
  __device__ unsigned code(UInt64 row, UInt64 at) const {
    return awq_nibble(from.in, from.columns, at, row);
  }
};

/// Blocks of GGUF files.
/// Of 32 values in Bytes bytes, of which the last 16 have four bits of each; fifth bits are the
/// four bytes in front.
template <int Bytes, bool Fifth>
struct ShortBlocks {
  Field from;
  __device__ unsigned code(UInt64 row, UInt64 at) const {
    const UInt8* const codes = from.in + (row * from.k + at) / 32 * Bytes + (Bytes - 16);
    const unsigned place = at % 32, low = codes[place % 16] >> (place < 16 ? 0 : 4) & 15;
    return low | (Fifth ? (codes[static_cast<int>(place / 8) - 4] >> (place % 8) & 1u) << 4 : 0u);
  }
};
template <bool Fifth>
struct KBlocks {
  Field from;
  __device__ unsigned code(UInt64 row, UInt64 at) const {
    const UInt8* const block = from.in + (row * from.k + at) / 256 * (Fifth ? 176 : 144);
    const unsigned group = static_cast<unsigned>(at % 256 / 32), place = at % 32;
    const unsigned low = block[(Fifth ? 48 : 16) + group / 2 * 32 + place] >> (group % 2 * 4) & 15;
    return low | (Fifth ? (block[16 + place] >> group & 1u) << 4 : 0u);
  }
};
/// Codes of two bits from `First` on; third bits are the first 32 bytes.
template <int Bytes, int First, bool Third>
struct FewBlocks {
  Field from;
  __device__ unsigned code(UInt64 row, UInt64 at) const {
    const UInt8* const block = from.in + (row * from.k + at) / 256 * Bytes;
    const unsigned half = at % 256 / 128, quarter = at / 32 % 4, place = at % 32;
    const unsigned low = block[First + half * 32 + place] >> (2 * quarter) & 3;
    return low | (Third ? (block[place] >> (half * 4 + quarter) & 1u) << 2 : 0u);
  }
};
struct UnevenBlocks {
  Field from;
  __device__ unsigned code(UInt64 row, UInt64 at) const {
    const UInt8* const block = from.in + (row * from.k + at) / 256 * 136 + 8;
    return block[at % 256 / 32 * 16 + at % 16] >> (at % 32 < 16 ? 0 : 4) & 15;
  }
};
struct SixBlocks {
  Field from;
  __device__ unsigned code(UInt64 row, UInt64 at) const {
    const UInt8* const block = from.in + (row * from.k + at) / 256 * 210;
    const unsigned half = at % 256 / 128, quarter = at / 32 % 4, place = at % 32;
    const unsigned low = block[half * 64 + quarter % 2 * 32 + place] >> (quarter / 2 * 4) & 15;
    return low | (block[128 + half * 32 + place] >> (2 * quarter) & 3u) << 4;
  }
};

/// A record of 12 bytes.
struct Twelve {
  UInt32 word[3];
};

// ---- to the layout. What is beyond the last row or number is 0.

/// A thread has the 32 codes of a lane; `pieces` is their count. `Straight`: nibbles in the order
/// of the values.
template <typename Source, int Bits, int Run, bool Straight>
__global__ void __launch_bounds__(kThreads)
    pack_codes(UInt8* codes, UInt8* high, Source source, UInt32 rows, UInt32 k, UInt32 blocks,
               UInt64 pieces) {
  const UInt64 step = static_cast<UInt64>(gridDim.x) * kThreads;
  for (UInt64 piece = static_cast<UInt64>(blockIdx.x) * kThreads + threadIdx.x; piece < pieces;
       piece += step) {
    const unsigned lane = piece % 32, half = piece / 32 % 2;
    const UInt64 block = piece / 64;
    const UInt64 row = block / blocks * 16 + half * 8 + lane / 4;
    const UInt64 first = block % blocks * 128;
    UInt32 words[8] = {}, upper[2] = {};
#pragma unroll
    for (int i = 0; i < 32; ++i) {
      const int part = i / 8, v = i % 8, pair = v / 2;
      const UInt64 at = first + part * 32 + v / Run * 16 + lane % 4 * Run + v % Run;
      const unsigned code = row < rows && at < k ? source.code(row, at) : 0;
      if constexpr (Bits == 8) {
        words[i / 4] |= code << (8 * (i % 4));
      } else if constexpr (Bits < 4) {
        words[pair / 2] |= (code & 3) << (pair % 2 * 8 + v % 2 * 16 + 2 * part);
      } else {
        words[part] |= (code & 15) << (4 * (Straight ? v : pair + v % 2 * 4));
      }
      if constexpr (Bits == 6)
        upper[part / 2] |= code >> 4 << (2 * (part % 2 * 4 + pair) + v % 2 * 16);
      if constexpr (Bits == 5) upper[0] |= code >> 4 << (part * 4 + pair + v % 2 * 16);
      if constexpr (Bits == 3)
        upper[0] |= code >> 2 << (pair % 2 * 8 + v % 2 * 16 + pair / 2 * 4 + part);
    }
    const UInt64 to = Bits == 8 ? piece / 32 * 64 + lane : piece;
    if constexpr (Bits < 4) {
      reinterpret_cast<Pack<UInt32, 2>*>(codes)[to] = {{words[0], words[1]}};
    } else {
      reinterpret_cast<Words*>(codes)[to] = {{words[0], words[1], words[2], words[3]}};
    }
    if constexpr (Bits == 8) {
      reinterpret_cast<Words*>(codes)[to + 32] = {{words[4], words[5], words[6], words[7]}};
    }
    if constexpr (Bits == 6) {
      reinterpret_cast<Pack<UInt32, 2>*>(high)[piece] = {{upper[0], upper[1]}};
    }
    if constexpr (Bits == 5 || Bits == 3) reinterpret_cast<UInt32*>(high)[piece] = upper[0];
  }
}

/// Units of the rows of tiles: `each` of a span of k, `Span` numbers; `count` in all.
template <typename Unit, int Span>
__global__ void __launch_bounds__(kThreads)
    pack_units(Unit* out, Field source, UInt32 rows, UInt32 k, UInt32 spans, UInt32 each,
               UInt64 count) {
  const UInt64 step = static_cast<UInt64>(gridDim.x) * kThreads;
  for (UInt64 i = static_cast<UInt64>(blockIdx.x) * kThreads + threadIdx.x; i < count; i += step) {
    const UInt64 row = i / each / 16 / spans * 16 + i / each % 16;
    const UInt64 at = i / each / 16 % spans * Span + i % each * (Span / each);
    out[i] = row < rows && at < k ? source.unit<Unit>(row, at) : Unit{};
  }
}

/// Zeros of groups, four bits in words of columns, as bytes, `offset` added.
template <bool Awq>
__global__ void __launch_bounds__(kThreads)
    pack_zeros(UInt8* out, Field source, UInt32 rows, UInt32 k, UInt32 blocks, UInt32 each,
               UInt32 offset, UInt64 count) {
  const UInt64 step = static_cast<UInt64>(gridDim.x) * kThreads;
  for (UInt64 i = static_cast<UInt64>(blockIdx.x) * kThreads + threadIdx.x; i < count; i += step) {
    const UInt64 row = i / each / 16 / blocks * 16 + i / each % 16;
    const UInt64 at = i / each / 16 % blocks * 128 + i % each * (128 / each);
    unsigned zero = 0;
    if (row < rows && at < k) {
      const UInt32 found = source.line(at);
      const UInt64 line = found == kNoLine ? 0 : found;
      if constexpr (Awq) {
        zero = awq_nibble(source.in, source.columns, line, row);
      } else {
        const auto* const words = reinterpret_cast<const UInt32*>(source.in);
        zero = words[line * (source.columns / 8) + row / 8] >> (row % 8 * 4) & 15;
      }
      zero += offset;
    }
    out[i] = static_cast<UInt8>(zero);
  }
}

/// The row of each group of `size` columns put together by `order`. All entries of `groups` must
/// agree and there must be as many rows; otherwise none. Line is UInt32: compiles of other kernels
/// of this text leave a template out.
template <typename Line>
__global__ void __launch_bounds__(kThreads)
    find_lines(Line* lines, const Int32* groups, const UInt32* order, UInt32 size, UInt32 count) {
  const UInt32 group = blockIdx.x * kThreads + threadIdx.x;
  if (group >= count) return;
  const UInt32* const columns = order + static_cast<UInt64>(group) * size;
  const Int32 line = groups[columns[0]];
  bool found = line >= 0 && static_cast<UInt32>(line) < count;
  for (UInt32 i = 1; i < size; ++i) found = found && groups[columns[i]] == line;
  lines[group] = found ? static_cast<Line>(line) : kNoLine;
}

// ---- to numbers

/// The numbers that the pairs stand for, in float32.
template <typename Codes>
struct Numbers {
  __device__ static void convert(const typename Codes::Raw& raw, int part, float (&values)[8]) {
    unsigned pairs[4];
    Codes::decode(raw, part, pairs);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      values[i] = to_compute(BFloat16{static_cast<UInt16>(pairs[i / 2] >> (i % 2 * 16))});
    }
  }
};
template <typename Table>
struct Numbers<TableCodes<BFloat16, Table>> {
  __device__ static void convert(const FourBits& raw, int part, float (&values)[8]) {
#pragma unroll
    for (int i = 0; i < 8; ++i) values[i] = Table::number(raw.low.word[part] >> (4 * i) & 15);
  }
};

/// The scale and the minimum of a group. A product of zero gets its sign here.
template <typename Ready>
__device__ __forceinline__ float group_scale(const Ready& scales, int group) {
  return scales.scale_at(group);
}
template <typename Ready>
__device__ __forceinline__ float group_minimum(const Ready& scales, int group) {
  return scales.minimum(group);
}
__device__ __forceinline__ float group_scale(const BlockScales::Ready& scales, int group) {
  return __fmul_rn(static_cast<float>(scales.scales >> (8 * group) & 255), scales.unit);
}
__device__ __forceinline__ float group_minimum(const BlockScales::Ready& scales, int group) {
  return __fmul_rn(static_cast<float>(scales.minima >> (8 * group) & 255), scales.minimum_unit);
}
__device__ __forceinline__ float group_scale(const TwoScales::Ready& scales, int group) {
  return __fmul_rn(byte_number(scales.scales[group / 4], group % 4), scales.unit);
}
__device__ __forceinline__ float group_minimum(const TwoScales::Ready& scales, int group) {
  return __fmul_rn(byte_number(scales.minima[group / 4], group % 4), scales.minimum_unit);
}

/// A thread has the 32 numbers of a lane. The result has rows `first` to `last`; Format is of
/// bfloat16, which has all codes exactly.
template <typename Format, typename T>
__global__ void __launch_bounds__(kThreads)
    unpack(T* out, PackedArrays weights, UInt32 first, UInt32 last, UInt64 pieces) {
  const UInt64 step = static_cast<UInt64>(gridDim.x) * kThreads;
  constexpr int kRun = Format::kRun, kGroup = Format::kGroup;
  for (UInt64 piece = static_cast<UInt64>(blockIdx.x) * kThreads + threadIdx.x; piece < pieces;
       piece += step) {
    const unsigned lane = piece % 32, half = piece / 32 % 2;
    const UInt64 block = piece / 64 + static_cast<UInt64>(first / 16) * weights.blocks;
    const PackedPlace place = {block,
                               block / 2,
                               static_cast<UInt32>(block % weights.blocks),
                               static_cast<UInt32>(block / weights.blocks),
                               lane / 4,
                               half};
    const UInt64 row = static_cast<UInt64>(place.tile) * 16 + half * 8 + lane / 4;
    if (row < first || row >= last) continue;
    const Format raw = Format::load(weights, place, lane);
    const typename Format::Scales::Ready scales = raw.scales.ready();
    T* const line = out + (row - first) * weights.k;
#pragma unroll
    for (int part = 0; part < 4; ++part) {
      float values[8];
      Numbers<typename Format::Codes>::convert(raw.codes, part, values);
      constexpr int kWidth = kRun * sizeof(T) > 16 ? 16 / sizeof(T) : kRun;
#pragma unroll
      for (int first_value = 0; first_value < 8; first_value += kWidth) {
        const int half_part = first_value / kRun * 16;
        const UInt32 at =
            place.at * 128 + part * 32 + half_part + lane % 4 * kRun + first_value % kRun;
        const int group = (part * 32 + half_part) / kGroup;
        Pack<T, kWidth> pack;
#pragma unroll
        for (int i = 0; i < kWidth; ++i) {
          float value = values[first_value + i];
          if constexpr (Format::kOffset) value -= scales.zero(group) + Format::Codes::kBase;
          value = __fmul_rn(group_scale(scales, group), value);
          if constexpr (Format::kOffset) value = __fsub_rn(value, group_minimum(scales, group));
          pack.value[i] = from_compute<T>(value);
        }
        if (at >= weights.k) continue;
        if (weights.order == nullptr) {
          *reinterpret_cast<Pack<T, kWidth>*>(line + at) = pack;
        } else {
#pragma unroll
          for (int i = 0; i < kWidth; ++i)
            line[min(weights.order[at + i], weights.k - 1)] = pack.value[i];
        }
      }
    }
  }
}
