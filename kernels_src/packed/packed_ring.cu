// Products of up to eight rows with quantised weights on Hopper: blocks stay, and copies of what
// comes next are on their way to shared memory. Each warp has a part of k, in one tile of 16 rows
// of the weights after the other.
#include <kernwright/packed_walk.cuh>

using namespace kernwright;

/// A warp's stages, and which of its units of two blocks comes next.
template <typename Format, int Warps, int Stages>
struct PackedRing {
  using Stage = PackedStage<Format>;
  static constexpr unsigned kBytes = Stages * Stage::kBytes;
  unsigned char* memory;
  Mbarrier* full;
  unsigned lane, tiles, blocks, first, count;
  unsigned next_tile, next_unit, stage, parity;

  /// By all lanes. The weights may be fetched while the kernel in front still runs.
  __device__ __forceinline__ void start(const PackedArrays& weights, unsigned char* memory_of_warp,
                                        Mbarrier* barriers, unsigned warp, unsigned rows) {
    memory = memory_of_warp;
    full = barriers;
    lane = threadIdx.x % 32;
    tiles = (rows + 15) / 16;
    blocks = weights.blocks;
    const unsigned units = (blocks + 1) / 2, each = (units + Warps - 1) / Warps;
    first = min(warp * each, units);
    count = min(each, units - first);
    stage = parity = 0;
    if (lane == 0) {
#pragma unroll
      for (int i = 0; i < Stages; ++i) full[i].init(1);
      Mbarrier::publish();
    }
    rewind();
    for (int i = 0; i < Stages; ++i) issue<true>(weights, i);
    rewind();
  }
  __device__ __forceinline__ void fill(const PackedArrays& weights) {
    for (int i = 0; i < Stages; ++i) issue<false>(weights, i);
  }
  __device__ __forceinline__ const unsigned char* wait() {
    full[stage].wait(parity);
    return memory + stage * Stage::kBytes;
  }
  /// After all reads of the stage: they are done long before the copy's first bytes come.
  __device__ __forceinline__ void advance(const PackedArrays& weights) {
    __syncwarp();
    issue<false>(weights, stage);
    if (++stage == Stages) {
      stage = 0;
      parity ^= 1;
    }
  }
  /// The arrays of a unit in its stage.
  __device__ __forceinline__ static PackedArrays copied(const PackedArrays& weights,
                                                        const unsigned char* here) {
    PackedArrays made = weights;
    made.codes = here;
    made.high = here + Stage::kHigh;
    if constexpr (Stage::Scales::kScaleBytes > 0) made.scales = here + Stage::kScales;
    made.more = here + Stage::kMore;
    return made;
  }

 private:
  __device__ __forceinline__ void rewind() {
    next_tile = blockIdx.x;
    next_unit = 0;
  }
  /// The next unit, to a stage or (kFetch) to the second level of cache.
  template <bool kFetch>
  __device__ __forceinline__ void issue(const PackedArrays& weights, unsigned to_stage) {
    if (count == 0 || next_tile >= tiles) return;
    const unsigned at = (first + next_unit) * 2, some = min(2, blocks - at);
    const UInt64 block = static_cast<UInt64>(next_tile) * blocks + at;
    if (lane == 0) {
      Mbarrier& bar = full[to_stage];
      unsigned char* const stage_at = memory + to_stage * Stage::kBytes;
      unsigned bytes = 0;
      Stage::each(weights, block, block / 2, some,
                  [&](unsigned, const UInt8*, unsigned size) { bytes += size; });
      if (!kFetch) bar.arrive_expecting(bytes);
      Stage::each(weights, block, block / 2, some,
                  [&](unsigned to, const UInt8* from, unsigned size) {
                    if (kFetch) {
                      fetch_bulk(from, size);
                    } else {
                      copy_bulk(stage_at + to, from, size, bar);
                    }
                  });
    }
    if (++next_unit == count) {
      next_unit = 0;
      next_tile += gridDim.x;
    }
  }
};

/// The sums of all warps for a tile, of p.m rows of x: `parts` has p.m * 16 of each warp. Those of
/// two tiles that follow each other lie apart, so the block meets once for each.
template <typename T, typename Act, int Warps>
__device__ __forceinline__ void add_ring_warps(const SkinnyProblem& p, unsigned tile,
                                               const float* parts) {
  __syncthreads();
  for (unsigned i = threadIdx.x; i < 16 * p.m; i += Warps * 32) {
    const unsigned m = i / 16, n = tile * 16 + i % 16;
    float sum = 0;
#pragma unroll
    for (int w = 0; w < Warps; ++w) sum += parts[w * p.m * 16 + i];
    if (n < p.n) finish_sum<T, Act>(p, 0, m, n, sum);
  }
}

/// k is a multiple of 128 if `Whole`. Dynamic shared memory: the table of NF4, the stages of all
/// warps, two times the sums.
template <typename T, typename Format, typename Act, int Warps, int Stages, bool Whole>
__global__ void __launch_bounds__(Warps * 32, 32 / Warps)
    packed_ring(const __grid_constant__ SkinnyProblem p,
                const __grid_constant__ PackedArrays weights) {
  using Ring = PackedRing<Format, Warps, Stages>;
  constexpr bool kTable = TakesPairTable<typename Format::Codes>::kValue;
  extern __shared__ __align__(128) unsigned char memory[];
  __shared__ Mbarrier full[Warps][Stages];
  unsigned char* const stages = memory + (kTable ? PairTable::kBytes : 0);
  float* const parts = reinterpret_cast<float*>(stages + Warps * Ring::kBytes);
  const unsigned warp = __shfl_sync(~0u, threadIdx.x / 32, 0), lane = threadIdx.x % 32;
  let_next_begin();
  Ring ring;
  ring.start(weights, stages + warp * Ring::kBytes, full[warp], warp, p.n);
  if constexpr (kTable) PairTable::fill<T>(memory);
  wait_for_previous();
  __syncthreads();
  ring.fill(weights);
  PackedWalk<T, Format, 1, 1, kTable> walk;
  walk.start(p, weights);
  walk.table.of_lane = memory + lane * 4;
  unsigned turn = 0;
  for (unsigned tile = blockIdx.x; tile < ring.tiles; tile += gridDim.x, turn ^= 1) {
#pragma unroll
    for (int i = 0; i < 4; ++i) walk.sums[0][0][i] = 0;
#pragma unroll 1
    for (unsigned unit = ring.first; unit < ring.first + ring.count; ++unit) {
      const PackedArrays copied = Ring::copied(weights, ring.wait());
      Format raw[2][1][2];
#pragma unroll
      for (unsigned u = 0; u < 2; ++u)
#pragma unroll
        for (unsigned half = 0; half < 2; ++half) {
          if (u > 0 && unit * 2 + u >= ring.blocks) continue;
          const PackedPlace place = {u, 0, unit * 2 + u, tile, lane / 4, half};
          raw[u][0][half] = Format::template load<true>(copied, place, lane);
        }
      walk.template multiply_block<Whole>(static_cast<UInt64>(unit) * 256, raw[0]);
      if (unit * 2 + 1 < ring.blocks)
        walk.template multiply_block<Whole>(static_cast<UInt64>(unit) * 256 + 128, raw[1]);
      ring.advance(weights);
    }
    float* const of_tile = parts + turn * Warps * p.m * 16;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const unsigned m = lane % 4 * 2 + i % 2;
      if (m < p.m) of_tile[(warp * p.m + m) * 16 + i / 2 * 8 + lane / 4] = walk.sums[0][0][i];
    }
    add_ring_warps<T, Act, Warps>(p, tile, of_tile);
  }
}

// ---- one row of x

// Each of the eight columns of a product of tiles takes the x of one group of a unit, so a lane has
// the sums of two groups, and multiplies them with their scales when the unit is done.

/// A lane's factors for its four sums: of rows lane / 4 and 8 more, of two groups.
template <typename Format>
struct LaneScales {
  static constexpr unsigned kGroup = Format::kGroup;
  float scale[4], offset[4];

  /// Groups beyond the unit or the weights count nothing.
  __device__ __forceinline__ void load(const PackedArrays& copied, unsigned at, unsigned tile,
                                       unsigned lane, unsigned blocks) {
#pragma unroll
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned group = lane % 4 * 2 + i % 2, of = group % (128 / kGroup);
      unsigned u = group * kGroup / 128;
      const bool there = u < 2 && at + u < blocks;
      if (!there) u = 0;
      const PackedPlace place = {u, 0, at + u, tile, lane / 4, i / 2};
      const auto raw = Format::Scales::load(copied, place);
      const auto made = raw.ready();
      const float value = made.of(of);
      scale[i] = there ? value : 0.0f;
      if constexpr (Format::kOffset) offset[i] = there ? Format::offset(made, of, value) : 0.0f;
    }
  }
};

/// A lane's own x of a unit: of group lane / 4.
template <typename T, int Group>
struct OwnColumn {
  static constexpr int kParts = Group / 32;
  unsigned x[kParts][4];

  __device__ __forceinline__ void load(const SkinnyProblem& p, unsigned unit, unsigned lane) {
    const unsigned in_unit = lane / 4 * Group;
#pragma unroll
    for (int i = 0; i < kParts; ++i) {
      const unsigned at = unit * 256 + in_unit + i * 32 + lane % 4 * 8;
      Words w = {};
      if (in_unit < 256 && at < p.k)
        w = *reinterpret_cast<const Words*>(static_cast<const T*>(p.x) + at);
#pragma unroll
      for (int j = 0; j < 4; ++j) x[i][j] = w.word[j];
    }
  }
  /// Its part of 32 values: zeros unless they are of its group.
  __device__ __forceinline__ unsigned of(int part, int j, unsigned lane) const {
    return part / kParts == lane / 4 ? x[part % kParts][j] : 0;
  }
  /// The sums of groups lane % 4 * 2 and the next one.
  __device__ __forceinline__ void add(float (&sums)[4]) const {
    constexpr unsigned kOne = PairBits<T>::kOne;
#pragma unroll
    for (int i = 0; i < 4; ++i) sums[i] = 0;
#pragma unroll
    for (int i = 0; i < kParts; ++i) {
      multiply_tile(T(), sums, kOne, kOne, kOne, kOne, x[i][0], x[i][1]);
      multiply_tile(T(), sums, kOne, kOne, kOne, kOne, x[i][2], x[i][3]);
    }
  }
};

/// Codes are of NF4, or WholeCodes of four bits; groups have 32 values or more. `Held`: a warp has
/// one unit of k, whose x stays in registers. Dynamic shared memory as above, and 32 bytes for each
/// unit of k.
template <typename T, typename Format, typename Act, int Warps, int Stages, bool Held>
__global__ void __launch_bounds__(Warps * 32)
    packed_one(const __grid_constant__ SkinnyProblem p,
               const __grid_constant__ PackedArrays weights) {
  using Ring = PackedRing<Format, Warps, Stages>;
  using Codes = typename Format::Codes;
  constexpr bool kTable = TakesPairTable<Codes>::kValue;
  extern __shared__ __align__(128) unsigned char memory[];
  __shared__ Mbarrier full[Warps][Stages];
  unsigned char* const stages = memory + (kTable ? PairTable::kBytes : 0);
  float* const parts = reinterpret_cast<float*>(stages + Warps * Ring::kBytes);
  float* const x_sums = parts + 2 * Warps * 16;
  const unsigned warp = __shfl_sync(~0u, threadIdx.x / 32, 0), lane = threadIdx.x % 32;
  let_next_begin();
  Ring ring;
  ring.start(weights, stages + warp * Ring::kBytes, full[warp], warp, p.n);
  if constexpr (kTable) PairTable::fill<T>(memory);
  wait_for_previous();
  ring.fill(weights);
  OwnColumn<T, Format::kGroup> column;
  float of_x[4] = {};
  if constexpr (Held) {
    column.load(p, ring.first, lane);
    if constexpr (Format::kOffset) column.add(of_x);
  } else if constexpr (Format::kOffset) {
    for (unsigned unit = ring.first; unit < ring.first + ring.count; ++unit) {
      column.load(p, unit, lane);
      column.add(of_x);
      if (lane < 4)
        *reinterpret_cast<float2*>(x_sums + unit * 8 + lane * 2) = make_float2(of_x[0], of_x[1]);
    }
  }
  __syncthreads();
  const PairTable table = {memory + lane * 4};
  // The mask of WholeCodes, in a register: a constant would be moved to one before each use. splits
  // is 1.
  const unsigned mask = WholeCodes<T, 4>::kMask * p.splits;
  unsigned turn = 0;
  for (unsigned tile = blockIdx.x; tile < ring.tiles; tile += gridDim.x, turn ^= 1) {
    float rows[2] = {};
#pragma unroll 1
    for (unsigned unit = ring.first; unit < ring.first + ring.count; ++unit) {
      if constexpr (!Held) {
        column.load(p, unit, lane);
        if constexpr (Format::kOffset) {
          const float2 both = *reinterpret_cast<const float2*>(x_sums + unit * 8 + lane % 4 * 2);
          of_x[0] = both.x;
          of_x[1] = both.y;
        }
      }
      const PackedArrays copied = Ring::copied(weights, ring.wait());
      Words raw[2][2];
#pragma unroll
      for (unsigned u = 0; u < 2; ++u)
#pragma unroll
        for (unsigned half = 0; half < 2; ++half) {
          raw[u][half] = {};
          const PackedPlace place = {u, 0, unit * 2 + u, tile, lane / 4, half};
          if (unit * 2 + u < ring.blocks)
            raw[u][half] = FourBits::load<true>(copied, place, lane).low;
        }
      LaneScales<Format> scales;
      scales.load(copied, unit * 2, tile, lane, ring.blocks);
      ring.advance(weights);
      float sums[2][4] = {};
#pragma unroll
      for (int part = 0; part < 4; ++part)
#pragma unroll
        for (int u = 0; u < 2; ++u) {
          unsigned pairs[2][4], b[4];
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            if constexpr (kTable) {
              table.decode(raw[u][half].word[part], pairs[half]);
            } else {
              Codes::decode_word(raw[u][half].word[part], mask, pairs[half]);
            }
          }
#pragma unroll
          for (int j = 0; j < 4; ++j) b[j] = column.of(u * 4 + part, j, lane);
          multiply_tile(T(), sums[u], pairs[0][0], pairs[1][0], pairs[0][1], pairs[1][1], b[0],
                        b[1]);
          multiply_tile(T(), sums[u], pairs[0][2], pairs[1][2], pairs[0][3], pairs[1][3], b[2],
                        b[3]);
        }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        rows[i / 2] += scales.scale[i] * (sums[0][i] + sums[1][i]);
        if constexpr (Format::kOffset) rows[i / 2] -= scales.offset[i] * of_x[i % 2];
      }
    }
    float* const of_tile = parts + turn * Warps * 16;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      rows[half] += __shfl_xor_sync(~0u, rows[half], 1);
      rows[half] += __shfl_xor_sync(~0u, rows[half], 2);
      if (lane % 4 == 0) of_tile[warp * 16 + half * 8 + lane / 4] = rows[half];
    }
    add_ring_warps<T, Act, Warps>(p, tile, of_tile);
  }
}
