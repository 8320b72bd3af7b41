// The arrays of packed weights, and places in them. packed_weights.cuh tells the layout.
#pragma once

#include <kernwright/elements.cuh>

namespace kernwright {

/// The arrays of packed weights; arrays that a format lacks are null.
struct PackedArrays {
  const UInt8* codes;   ///< 16 bytes of a lane follow those of the lane before
  const UInt8* high;    ///< of codes with five or six bits: the upper ones
  const UInt8* scales;  ///< of rows 0 to 15 of each block
  const UInt8* more;    ///< zeros of groups; of q6_k the scales' scales
  const float* table;   ///< nested absmax: the number of each byte, ...
  const float* absmax;  ///< ... their scales ...
  const float* factor;  ///< ... and the offset; of nvfp4 the scale of all
  const UInt32* order;  ///< null, or which column of the weights each one here is
  UInt32 rows, k;
  UInt32 blocks;                                ///< of a row
  UInt32 tile_rows, tile_blocks, tiles_across;  ///< of scales that belong to tiles
  UInt32 shift;  ///< log2 of the numbers that a scale of absmax is for
};

/// The position of row `line` + 8 * `half` of a tile: `block` counts the blocks of all tiles, `at`
/// the blocks of the tile; `pair` is `block` for pairs of blocks, where a tile has whole pairs.
struct PackedPlace {
  UInt64 block, pair;
  UInt32 at, tile, line, half;
  __device__ __forceinline__ UInt64 record() const { return block * 16 + half * 8 + line; }
  __device__ __forceinline__ UInt64 pair_record() const { return pair * 16 + half * 8 + line; }
  __device__ __forceinline__ UInt32 row(const PackedArrays& weights) const {
    return min(tile * 16 + half * 8 + line, weights.rows - 1);
  }
};

}  // namespace kernwright
