// Matrices of weights with scales beside them: float8 tiles, 4-bit groups as GPTQ and AWQ pack
// them.
#include <kernwright/elements.cuh>
#include <kernwright/reduce.cuh>

using namespace kernwright;

constexpr int kThreads = 256;

/// value * the scale of the tile. blockIdx.y: rows of all matrices, one matrix after another.
template <typename T, typename Q, int Width>
__global__ void __launch_bounds__(kThreads)
    dequantize_tiles(T* out, const Q* in, const float* scales, UInt64 all_rows, UInt32 rows,
                     UInt64 columns, UInt32 tile_rows, UInt32 tile_columns) {
  const UInt32 down = (rows + tile_rows - 1) / tile_rows;
  const UInt64 across = (columns + tile_columns - 1) / tile_columns;
  for (UInt64 row = blockIdx.y; row < all_rows; row += gridDim.y) {
    const UInt64 tile_row = row / rows * down + row % rows / tile_rows;
    for (UInt64 at = (static_cast<UInt64>(blockIdx.x) * kThreads + threadIdx.x) * Width;
         at < columns; at += static_cast<UInt64>(gridDim.x) * kThreads * Width) {
      const auto pack = *reinterpret_cast<const Pack<Q, Width>*>(in + row * columns + at);
      const float scale = scales[tile_row * across + at / tile_columns];
      Pack<T, Width> result;
#pragma unroll
      for (int i = 0; i < Width; ++i) {
        result.value[i] = from_compute<T>(__fmul_rn(to_compute(pack.value[i]), scale));
      }
      *reinterpret_cast<Pack<T, Width>*>(out + row * columns + at) = result;
    }
  }
}

/// A block of threads a tile: blockIdx.x across, blockIdx.y down all matrices.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    quantize_tiles(Float8E4M3* out, float* scales, const T* in, UInt64 all_tile_rows, UInt32 rows,
                   UInt64 columns, UInt32 tile_rows, UInt32 tile_columns) {
  const UInt32 down = (rows + tile_rows - 1) / tile_rows;
  const UInt64 left = static_cast<UInt64>(blockIdx.x) * tile_columns;
  const UInt32 width = static_cast<UInt32>(min(static_cast<UInt64>(tile_columns), columns - left));
  for (UInt64 tile = blockIdx.y; tile < all_tile_rows; tile += gridDim.y) {
    const UInt32 top = static_cast<UInt32>(tile % down) * tile_rows;
    const UInt32 height = min(tile_rows, rows - top);
    const UInt64 corner = (tile / down * rows + top) * columns + left;
    float most = 0;
    for (UInt32 i = threadIdx.x; i < height * width; i += kThreads) {
      most = Maximum()(most, fabsf(to_compute(in[corner + i / width * columns + i % width])));
    }
    most = block_reduce<kThreads>(most, Maximum(), 0.0f);
    const float scale = __fdiv_rn(most, 448.0f);
    if (threadIdx.x == 0) scales[tile * gridDim.x + blockIdx.x] = scale;
    for (UInt32 i = threadIdx.x; i < height * width; i += kThreads) {
      const UInt64 at = corner + i / width * columns + i % width;
      float x = scale == 0 ? 0.0f : __fdiv_rn(to_compute(in[at]), scale);
      if (x == x) x = fminf(fmaxf(x, -448.0f), 448.0f);
      out[at] = from_compute<Float8E4M3>(x);
    }
    __syncthreads();
  }
}

/// GPTQ: a word holds eight rows of a column. scale * (code - zero - zero_offset).
template <typename T, typename S, bool Listed>
__global__ void __launch_bounds__(kThreads)
    dequantize_gptq(T* out, const UInt32* codes, const UInt32* zeros, const S* scales,
                    const Int32* groups, UInt64 word_rows, UInt64 columns, UInt32 group_rows,
                    Int32 group_count, int zero_offset) {
  for (UInt64 row = blockIdx.y; row < word_rows; row += gridDim.y) {
    for (UInt64 at = static_cast<UInt64>(blockIdx.x) * kThreads + threadIdx.x; at < columns;
         at += static_cast<UInt64>(gridDim.x) * kThreads) {
      const unsigned word = codes[row * columns + at];
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const UInt64 line = row * 8 + i;
        Int32 group = static_cast<Int32>(line / group_rows);
        if (Listed) group = groups[line];
        float value = __uint_as_float(0x7fc00000u);
        if (group >= 0 && group < group_count) {
          const unsigned packed = zeros[group * (columns / 8) + at / 8];
          const int zero = static_cast<int>(packed >> (at % 8 * 4) & 15) + zero_offset;
          const int code = static_cast<int>(word >> (4 * i) & 15);
          value = to_compute(scales[group * columns + at]) * static_cast<float>(code - zero);
        }
        out[line * columns + at] = from_compute<T>(value);
      }
    }
  }
}

/// AWQ: a word holds eight columns of a row, the even ones first. scale * (code - zero).
template <typename T, typename S>
__global__ void __launch_bounds__(kThreads)
    dequantize_awq(T* out, const UInt32* codes, const UInt32* zeros, const S* scales, UInt64 rows,
                   UInt64 words, UInt32 group_rows) {
  for (UInt64 row = blockIdx.y; row < rows; row += gridDim.y) {
    const UInt64 group = row / group_rows;
    for (UInt64 at = static_cast<UInt64>(blockIdx.x) * kThreads + threadIdx.x; at < words;
         at += static_cast<UInt64>(gridDim.x) * kThreads) {
      const unsigned word = codes[row * words + at], packed = zeros[group * words + at];
      constexpr int kWidth = 16 / sizeof(T) < 8 ? 16 / sizeof(T) : 8;
#pragma unroll
      for (int first = 0; first < 8; first += kWidth) {
        Pack<T, kWidth> pack;
#pragma unroll
        for (int k = 0; k < kWidth; ++k) {
          const int i = first + k, bit = (i % 2 * 4 + i / 2) * 4;
          const int code = static_cast<int>(word >> bit & 15);
          const int zero = static_cast<int>(packed >> bit & 15);
          pack.value[k] = from_compute<T>(to_compute(scales[(group * words + at) * 8 + i]) *
                                          static_cast<float>(code - zero));
        }
        *reinterpret_cast<Pack<T, kWidth>*>(out + (row * words + at) * 8 + first) = pack;
      }
    }
  }
}
