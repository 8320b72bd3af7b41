// x of products by warpgroups with packed weights: in the order in which lanes have decoded
// weights, and its sums where formats have minima.
#pragma once

#include <kernwright/packed_weights.cuh>
#include <kernwright/product_stages.cuh>
#include <kernwright/wgmma_common.cuh>

namespace kernwright {

/// A unit of `Columns` rows of x, in bytes: of each block of 128 of k the numbers, then (kSums) the
/// sums of each group of 32, in the order of a step's operand without a swizzle.
template <int Columns, bool kSums>
struct ArrangedUnit {
  static constexpr unsigned kLines = Columns * kLine;  // 64 of k
  static constexpr unsigned kProducts = 4 * kLines;
  static constexpr unsigned kBlockSums = Columns * 32;
  static constexpr unsigned kOfSums = kSums ? 2 * kBlockSums : 0;
  static constexpr unsigned kBytes = kProducts + kOfSums;
  static constexpr unsigned kEight = 256, kHalf = 128;  // of eight columns; of eight of k of them

  /// The place of a group's sum, as SumParts writes it.
  __device__ __forceinline__ static unsigned sum_at(unsigned group, unsigned column) {
    return kProducts + group / 4 * kBlockSums + column / 8 * kEight + column % 8 * 16 +
           group % 4 * 2;
  }
  /// `sums`: an address in shared memory.
  __device__ __forceinline__ static unsigned long long descriptor(unsigned sums) {
    return (sums & 0x3ffffu) >> 4 | static_cast<unsigned long long>(kHalf >> 4) << 16 |
           static_cast<unsigned long long>(kEight >> 4) << 32;
  }
};

/// Sums of 32 numbers of type T as three of them, and in place of a fourth the first one again. The
/// first one is divided by kFactor, so that those of float16 stay finite.
template <typename T>
struct SumParts {
  static constexpr float kFactor = PairBits<T>::kMantissa == 10 ? 32 : 1;

  /// The parts, to places 0, 4, 8 and 12 of a step's 16 of k.
  __device__ __forceinline__ static void write(UInt8* at, float sum) {
    float left = sum;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float factor = i % 3 == 0 ? kFactor : 1;
      if (i == 3) left = sum;
      const unsigned part = pair_of<T>(left / factor, 0.0f) & 0xffffu;
      *reinterpret_cast<UInt16*>(at + i / 2 * 128 + i % 2 * 8) = static_cast<UInt16>(part);
      left -= factor * to_compute(T{static_cast<UInt16>(part)});
    }
  }
  /// What multiplies the part in a lane's register of A with the 8 places of `half`.
  __device__ __forceinline__ static float factor_of(unsigned lane, int half) {
    if (half == 0) return lane % 4 < 2 ? kFactor : 1;
    return lane % 4 < 2 ? 1 : 0;
  }
};

/// Brings a unit of x, as copies of swizzled boxes left it, into the order of lanes with runs of
/// `Run`, by warp `part` of `Parts`. The pairs of 32 of k of a row are one lane's: it reads and
/// writes the same four places.
template <int Columns, int Run, int Parts>
__device__ __forceinline__ void arrange_columns(unsigned char* unit, unsigned part, unsigned lane) {
  using Unit = ArrangedUnit<Columns, false>;
  constexpr unsigned kSteps = Columns / 8 * 2;  // of eight rows and half a unit
  const unsigned swizzle = lane % 8;
#pragma unroll 2
  for (unsigned step = part; step < kSteps; step += Parts) {
    const unsigned group = step % 2 * 4 + lane / 8, column = step / 2 * 8 + swizzle;
    unsigned char* const line = unit + group / 2 * Unit::kLines + column * kLine;
    const auto place = [&](unsigned i) {
      return reinterpret_cast<Words*>(line + ((group % 2 * 4 + i) ^ swizzle) * 16);
    };
    Words words[4];
#pragma unroll
    for (unsigned i = 0; i < 4; ++i) words[i] = *place(i);
#pragma unroll
    for (unsigned i = 0; i < 4; ++i) {
      // Pair `i` of each of four lanes: 4 * lane + i with runs of eight, else of half the 32.
      Words made;
#pragma unroll
      for (unsigned of = 0; of < 4; ++of) {
        const unsigned at = Run == 8 ? of * 4 + i : i / 2 * 8 + of * 2 + i % 2;
        made.word[of] = words[at / 4].word[at % 4];
      }
      *place(i) = made;
    }
  }
}

}  // namespace kernwright
