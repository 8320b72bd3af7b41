// x of products by warpgroups with packed weights, in the order in which lanes have decoded
// weights.
#pragma once

#include <kernwright/packed_weights.cuh>
#include <kernwright/product_stages.cuh>
#include <kernwright/wgmma_common.cuh>

namespace kernwright {

/// The bytes of a unit of `Columns` rows of x.
template <int Columns>
struct ArrangedUnit {
  static constexpr unsigned kLines = Columns * kLine;  // 64 of k
  static constexpr unsigned kBytes = 4 * kLines;
};

/// Permutes a unit of x from the layout of swizzled TMA tiles into the order of lanes with runs of
/// `Run`, by warp `part` of `Parts`. One lane has all pairs of 32 of k of a row: it reads and
/// writes four places.
template <int Columns, int Run, int Parts>
__device__ __forceinline__ void arrange_columns(unsigned char* unit, unsigned part, unsigned lane) {
  using Unit = ArrangedUnit<Columns>;
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
      for (unsigned quarter = 0; quarter < 4; ++quarter) {
        const unsigned at = Run == 8 ? quarter * 4 + i : i / 2 * 8 + quarter * 2 + i % 2;
        made.word[quarter] = words[at / 4].word[at % 4];
      }
      *place(i) = made;
    }
  }
}

}  // namespace kernwright
