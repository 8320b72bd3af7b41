// Products of many rows with quantised weights: weights become numbers of x's type once for a tile
// of x, straight in registers, and x comes through shared memory.
#include <kernwright/packed_weights.cuh>
#include <kernwright/skinny.cuh>

using namespace kernwright;

// The weights are the fragment of 16 rows, and x is the fragment of 8 columns, like in
// packed_product.cu.
// Each warp of a block has separate rows, and all warps share the columns. A warp decodes its part
// of a block of 128 along k, 32 at a time, and multiplies it with all columns.

__device__ __forceinline__ float lower_half(BFloat16, unsigned pair) {
  return __uint_as_float(pair << 16);
}
__device__ __forceinline__ float upper_half(BFloat16, unsigned pair) {
  return __uint_as_float(pair & 0xffff0000u);
}
__device__ __forceinline__ float lower_half(Float16, unsigned pair) {
  return to_compute(Float16{static_cast<UInt16>(pair)});
}
__device__ __forceinline__ float upper_half(Float16, unsigned pair) {
  return to_compute(Float16{static_cast<UInt16>(pair >> 16)});
}
__device__ __forceinline__ unsigned rounded_pair(BFloat16, float lower, float upper) {
  unsigned pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(upper), "f"(lower));
  return pair;
}
__device__ __forceinline__ unsigned rounded_pair(Float16, float lower, float upper) {
  unsigned pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(upper), "f"(lower));
  return pair;
}

/// The codes of a format and the type of the decoded pairs: for the numbers of a table, which may
/// round, by way of the finer one.
template <typename Codes, typename T>
struct Decoder {
  using Type = Codes;
  using Pair = T;
};
template <typename T, typename Table>
struct Decoder<TableCodes<T, Table>, T> {
  using Type = TableCodes<Float16, Table>;
  using Pair = Float16;
};

/// Blocks of 128 along k of a tile of x in shared memory. Rows have a gap, so that lanes load
/// without bank conflicts.
template <typename T, int Run, int Columns, int Threads>
struct StagedColumns {
  static constexpr int kPitch = 128 + 4 * Run, kChunks = Columns * 16;
  static constexpr int kBytes = Columns * kPitch * 2;

  /// Copies asynchronously; zeros beyond the last row and the end of k.
  __device__ __forceinline__ static void copy(unsigned to, const SkinnyProblem& p, unsigned first,
                                              unsigned block) {
    static_assert(kChunks % Threads == 0);
#pragma unroll
    for (int i = 0; i < kChunks / Threads; ++i) {
      const unsigned chunk = i * Threads + threadIdx.x, row = chunk / 16, at = chunk % 16 * 8;
      const UInt64 k = static_cast<UInt64>(block) * 128 + at;
      const bool valid = first + row < p.m && k < p.k;
      const T* const from = static_cast<const T*>(p.x) + (valid ? (first + row) * p.x_row + k : 0);
      copy_later(to + (row * kPitch + at) * 2, from, valid);
    }
  }
  /// A lane's factors of eight columns and 32 of k.
  __device__ __forceinline__ static void load(const T* from, unsigned (&x)[4]) {
#pragma unroll
    for (int i = 0; i < 8 / Run; ++i) {
      const auto pack = *reinterpret_cast<const Pack<UInt32, Run / 2>*>(from + i * 16);
#pragma unroll
      for (int j = 0; j < Run / 2; ++j) x[i * (Run / 2) + j] = pack.value[j];
    }
  }
};

template <typename T, typename Format, int RowTiles>
struct DecodedRows {
  using Ready = typename Format::Scales::Ready;
  UInt64 tile_block[RowTiles], tile_pair[RowTiles];  ///< the first block and pair of each tile
  UInt32 tile[RowTiles];
  Format raw[RowTiles][2];

  /// Tiles beyond the last read the last: their accumulators are not stored.
  __device__ __forceinline__ void start(const PackedArrays& weights, unsigned first, unsigned n) {
#pragma unroll
    for (int r = 0; r < RowTiles; ++r) {
      tile[r] = min(first + r, (n - 1) / 16);
      tile_block[r] = static_cast<UInt64>(tile[r]) * weights.blocks;
      tile_pair[r] = static_cast<UInt64>(tile[r]) * ((weights.blocks + 1) / 2);
    }
  }
  __device__ __forceinline__ void load(const PackedArrays& weights, unsigned block) {
    const unsigned lane = threadIdx.x % 32;
#pragma unroll
    for (int r = 0; r < RowTiles; ++r) {
#pragma unroll
      for (unsigned half = 0; half < 2; ++half) {
        const PackedPlace place = {
            tile_block[r] + block, tile_pair[r] + block / 2, block, tile[r], lane / 4, half};
        raw[r][half] = Format::load(weights, place, lane);
      }
    }
  }
  /// The numbers of a part of 32, rounded to T as unpack() rounds them.
  __device__ __forceinline__ static void numbers(const Format& from, const Ready& scales, int part,
                                                 unsigned (&pairs)[4]) {
    using Decodes = Decoder<typename Format::Codes, T>;
    using Pair = typename Decodes::Pair;
    Decodes::Type::decode(from.codes, part, pairs);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int group = (part * 32 + i / 2 * 16) / Format::kGroup;
      const float scale = scales.scale_at(group);
      float two[2] = {lower_half(Pair(), pairs[i]), upper_half(Pair(), pairs[i])};
#pragma unroll
      for (float& value : two) {
        if constexpr (Format::kOffset) value -= scales.zero(group) + Format::Codes::kBase;
        value = __fmul_rn(scale, value);
        if constexpr (Format::kOffset) value = __fsub_rn(value, scales.minimum(group));
      }
      pairs[i] = rounded_pair(T(), two[0], two[1]);
    }
  }
};

/// A warp's rows times all columns, along a block of k. `x_at` is at the lane's part of the stage.
template <typename T, typename Columns, typename Rows, int RowTiles, int ColTiles>
__device__ __forceinline__ void multiply_block(const Rows& rows, const T* x_at,
                                               float (&accumulators)[RowTiles][ColTiles][4]) {
  typename Rows::Ready scales[RowTiles][2];
#pragma unroll
  for (int r = 0; r < 2 * RowTiles; ++r)
    scales[r / 2][r % 2] = rows.raw[r / 2][r % 2].scales.ready();
#pragma unroll
  for (int part = 0; part < 4; ++part) {
    unsigned upper[RowTiles][4], lower[RowTiles][4];
#pragma unroll
    for (int r = 0; r < RowTiles; ++r) {
      Rows::numbers(rows.raw[r][0], scales[r][0], part, upper[r]);
      Rows::numbers(rows.raw[r][1], scales[r][1], part, lower[r]);
    }
#pragma unroll
    for (int c = 0; c < ColTiles; ++c) {
      unsigned x[4];
      Columns::load(x_at + c * 8 * Columns::kPitch + part * 32, x);
#pragma unroll
      for (int h = 0; h < 2; ++h)
#pragma unroll
        for (int r = 0; r < RowTiles; ++r) {
          multiply_tile(T(), accumulators[r][c], upper[r][2 * h], lower[r][2 * h],
                        upper[r][2 * h + 1], lower[r][2 * h + 1], x[2 * h], x[2 * h + 1]);
        }
    }
  }
}

/// Stores a warp's accumulators, one tile of columns at a time, through the warp's part of shared
/// memory.
template <typename T, typename Act, int RowTiles, int ColTiles>
__device__ __forceinline__ void store_warp(const SkinnyProblem& p, float* shared, unsigned first_m,
                                           unsigned first_n,
                                           const float (&accumulators)[RowTiles][ColTiles][4]) {
  constexpr int kRows = 16 * RowTiles, kPitch = kRows + 4;
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int c = 0; c < ColTiles; ++c) {
    if (first_m + c * 8 >= p.m) break;
    spread_accumulators<TilesBelow, kPitch>(shared, c, accumulators);
    __syncwarp();
#pragma unroll 4
    for (int i = lane; i < 8 * kRows; i += 32) {
      const unsigned m = first_m + c * 8 + i / kRows, n = first_n + i % kRows;
      if (m < p.m && n < p.n) store_sum<T, Act>(p, 0, m, n, shared[i / kRows * kPitch + i % kRows]);
    }
    __syncwarp();
  }
}

/// A block has 16 * RowTiles * Warps rows of the weights and 8 * ColTiles of x, which begin at
/// multiples of 16 bytes; blocks of neighbouring rows of x read equal rows of the weights.
/// blockIdx.y: the part of k (split-K).
template <typename T, typename Format, typename Act, int Warps, int RowTiles, int ColTiles,
          int Stages>
__global__ void __launch_bounds__(Warps * 32) packed_gemm(SkinnyProblem p, PackedArrays weights) {
  using Columns = StagedColumns<T, Format::kRun, 8 * ColTiles, Warps * 32>;
  using Rows = DecodedRows<T, Format, RowTiles>;
  extern __shared__ __align__(16) unsigned char storage[];
  static_assert(Stages * Columns::kBytes >= Warps * 8 * (16 * RowTiles + 4) * 4);
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const unsigned across = (p.m + 8 * ColTiles - 1) / (8 * ColTiles);
  const unsigned first_m = blockIdx.x % across * (8 * ColTiles);
  const unsigned first_tile = (blockIdx.x / across * Warps + warp) * RowTiles;
  const unsigned each = (weights.blocks + p.splits - 1) / p.splits;
  const unsigned begin = min(blockIdx.y * each, weights.blocks);
  const unsigned end = min(begin + each, weights.blocks);
  const unsigned base = shared_address(storage);
  const T* const warp_stages =
      reinterpret_cast<const T*>(storage) + lane / 4 * Columns::kPitch + lane % 4 * Format::kRun;
  float accumulators[RowTiles][ColTiles][4] = {};
#pragma unroll
  for (int s = 0; s < Stages - 1; ++s) {
    if (begin + s < end) Columns::copy(base + s * Columns::kBytes, p, first_m, begin + s);
    end_copies();
  }
  Rows next;
  next.start(weights, first_tile, p.n);
  if (begin < end) next.load(weights, begin);
  unsigned stage = 0;
#pragma unroll 1
  for (unsigned block = begin; block < end; ++block) {
    const Rows rows = next;
    if (block + 1 < end) next.load(weights, block + 1);
    wait_for_copies<Stages - 2>();
    __syncthreads();  // all have this stage, and are done with the one before
    const unsigned ahead = block + Stages - 1, to = (stage + Stages - 1) % Stages;
    if (ahead < end) Columns::copy(base + to * Columns::kBytes, p, first_m, ahead);
    end_copies();
    multiply_block<T, Columns>(rows, warp_stages + stage * (Columns::kBytes / 2), accumulators);
    stage = stage + 1 == Stages ? 0 : stage + 1;
  }
  wait_for_copies<0>();
  __syncthreads();
  float* const shared = reinterpret_cast<float*>(storage) + warp * (8 * (16 * RowTiles + 4));
  store_warp<T, Act>(p, shared, first_m, first_tile * 16, accumulators);
}
