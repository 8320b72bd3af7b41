// Products of some rows with quantised weights on Hopper: the weights are the rows of products by
// warpgroups (wgmma) and are decoded in registers, x are their columns in shared memory.
#include <kernwright/packed_walk.cuh>
#include <kernwright/product_stages.cuh>
#include <kernwright/wgmma_rows.cuh>

using namespace kernwright;

// Codes are whole numbers and exact, as in packed_product.cu: a group's sum is multiplied with its
// scale in float32. Of formats with minima, these and the additions of decode() are multiplied with
// the sums of x.
//
// A unit is two blocks of k. arrange_columns() brings x into the order that lanes have decoded
// weights in, swizzled as the products want it, so that a unit is one copy. After the unit come the
// sums of x for each group of 32, where the format has minima.

/// A unit of `Columns` rows of x, in bytes.
template <int Columns, bool kSums>
struct ArrangedUnit {
  static constexpr unsigned kLines = Columns * kLine;  // 64 of k
  static constexpr unsigned kProducts = 4 * kLines;
  static constexpr unsigned kBytes = kProducts + (kSums ? 8 * Columns * 4 : 0);
};

/// A thread has 32 of k of a row of x, of `p.m` rows and zeros up to a multiple of `Columns`.
template <typename T, int Columns, int Run, bool kSums>
__global__ void __launch_bounds__(128) arrange_columns(const __grid_constant__ SkinnyProblem p,
                                                       UInt8* out, unsigned units, unsigned rows) {
  using Unit = ArrangedUnit<Columns, kSums>;
  const unsigned i = blockIdx.x * 128 + threadIdx.x, parts = units * 8;
  const unsigned row = i / parts, part = i % parts, column = row % Columns;
  wait_for_previous();
  if (row >= rows) return;
  Words words[4];
#pragma unroll
  for (unsigned piece = 0; piece < 4; ++piece) {
    const UInt64 k = static_cast<UInt64>(part) * 32 + piece * 8;
    words[piece] = {};
    if (row < p.m && k < p.k)
      words[piece] =
          *reinterpret_cast<const Words*>(static_cast<const T*>(p.x) + row * p.x_row + k);
  }
  UInt8* const unit = out + (static_cast<UInt64>(row / Columns) * units + part / 8) * Unit::kBytes;
  UInt8* const line = unit + part % 8 / 2 * Unit::kLines + column * kLine;
#pragma unroll
  for (int piece = 0; piece < 4; ++piece) {
    // Pair `piece` of each of four lanes: 4 * lane + piece with runs of eight, else of half a part.
    Words made;
#pragma unroll
    for (int lane = 0; lane < 4; ++lane) {
      const int at = Run == 8 ? lane * 4 + piece : piece / 2 * 8 + lane * 2 + piece % 2;
      made.word[lane] = words[at / 4].word[at % 4];
    }
    const unsigned to = (part % 2 * 4 + piece) ^ (column % 8);
    *reinterpret_cast<Words*>(line + to * 16) = made;
  }
  if constexpr (kSums) {
    float sum = 0;
#pragma unroll
    for (int word = 0; word < 16; ++word) {
      const unsigned pair = words[word / 4].word[word % 4];
      sum +=
          to_compute(T{static_cast<UInt16>(pair)}) + to_compute(T{static_cast<UInt16>(pair >> 16)});
    }
    reinterpret_cast<float*>(unit + Unit::kProducts)[part % 8 * Columns + column] = sum;
  }
}

/// Shared memory of a block: stages of a unit of x and of one of each warp's rows, or later the
/// sums, a column behind the other; two barriers for each stage.
template <typename Format, int Warps, int ColTiles, int Stages>
struct PackedBoxes {
  using Stage = PackedStage<Format>;
  static constexpr bool kSums = Format::Scales::kMinima;
  static constexpr int kRows = Warps * 16, kColumns = ColTiles * 8, kPitch = kRows + 4;
  using Unit = ArrangedUnit<kColumns, kSums>;
  static constexpr unsigned kBytes = (Unit::kBytes + Warps * Stage::kBytes + 1023) / 1024 * 1024;
  static constexpr unsigned kSumBytes = kColumns * kPitch * 4;
  static constexpr unsigned kData = Stages * kBytes > kSumBytes ? Stages* kBytes : kSumBytes;
  unsigned char* base;
  Mbarrier *full, *empty;

  __device__ explicit PackedBoxes(unsigned char* at)
      : base(at), full(reinterpret_cast<Mbarrier*>(at + kData)), empty(full + Stages) {}
  __device__ unsigned char* x(int stage) const { return base + stage * kBytes; }
  __device__ unsigned char* weights(int stage, int warp) const {
    return x(stage) + Unit::kBytes + warp * Stage::kBytes;
  }
  __device__ float* sums() const { return reinterpret_cast<float*>(base); }
};

/// Units `begin` to `end` of k, by one warp: each lane has the rows of a warp that multiplies.
template <typename Format, typename Of, int Warps, int Stages>
__device__ __forceinline__ void copy_units(const Of& shared, const PackedArrays& weights,
                                           const UInt8* x, unsigned tile, unsigned begin,
                                           unsigned end) {
  using Stage = PackedStage<Format>;
  const unsigned lane = threadIdx.x % 32;
  const UInt64 block = static_cast<UInt64>(tile) * weights.blocks;
  Ring<Stages> ring;
#pragma unroll 1
  for (unsigned unit = begin; unit < end; ++unit, ring.advance()) {
    Mbarrier& full = shared.full[ring.stage];
    const unsigned some = min(2, weights.blocks - unit * 2);
    const UInt64 first = block + unit * 2;
    shared.empty[ring.stage].wait(ring.parity ^ 1);
    if (lane == 0) {
      unsigned bytes = 0;
      Stage::each(weights, first, first / 2, some,
                  [&](unsigned, const UInt8*, unsigned size) { bytes += size; });
      full.arrive_expecting(bytes * Warps + Of::Unit::kBytes);
      copy_bulk(shared.x(ring.stage), x + static_cast<UInt64>(unit) * Of::Unit::kBytes,
                Of::Unit::kBytes, full);
    }
    __syncwarp();
    if (lane < Warps) {
      unsigned char* const here = shared.weights(ring.stage, lane);
      Stage::each(weights, first, first / 2, some,
                  [&](unsigned to, const UInt8* from, unsigned size) {
                    copy_bulk(here + to, from, size, full);
                  });
    }
  }
}

/// A warp's 16 rows of a block of weights, and the sums of all columns. Several steps of 16 along k
/// are on their way at once: those of `kAtOnce` groups, which have sums of their own.
template <typename T, typename Format, int Columns>
struct WgmmaRows {
  using Ready = typename Format::Scales::Ready;
  static constexpr int kGroup = Format::kGroup, kCount = Columns / 2;
  static constexpr int kMostGroups = kCount < 32 ? 32 / kCount : 1;
  static constexpr int kMostSteps = kCount < 32 ? 8 : 4;
  static constexpr int kWanted = kMostGroups * kGroup / 16;
  static constexpr int kSteps = kWanted < kMostSteps ? kWanted : kMostSteps;
  static constexpr int kAtOnce = (kSteps * 16 + kGroup - 1) / kGroup;
  static constexpr int kParts = kSteps < 2 ? 1 : kSteps / 2;  // of 32, decoded at once
  float sums[kCount], parts[kAtOnce][kCount];

  static constexpr bool kMinima = Format::Scales::kMinima;
  /// Additions are taken off the codes, or where there are minima off the sums together with these.
  static constexpr bool kShifted = Format::kOffset && !kMinima;

  /// The additions of decode() and zeros of each group, with their sign changed, in both halves.
  struct Shifts {
    unsigned of[Format::Scales::kZero < 0 ? 128 / kGroup : 1];
    __device__ __forceinline__ explicit Shifts(const Ready& scales) {
      using Codes = typename Format::Codes;
      if constexpr (Format::Scales::kZero < 0) {
#pragma unroll
        for (int group = 0; group < 128 / kGroup; ++group) {
          const float value = -(scales.zero(group) + Codes::kBase);
          of[group] = pair_of<T>(value, value);
        }
      } else if constexpr (kShifted) {
        of[0] = Codes::pair_with_base(Format::Scales::kZero) | 0x80008000u;
      }
    }
    __device__ __forceinline__ unsigned at(int k) const {
      return of[Format::Scales::kZero < 0 ? k / kGroup : 0];
    }
  };
  /// Pairs 0 and 1 are those of the first half of a part.
  __device__ __forceinline__ static void decode(const Format& raw, const Shifts& shifts, int part,
                                                unsigned (&pairs)[4]) {
    raw.decode(part, pairs);
    if constexpr (kShifted) {
#pragma unroll
      for (int i = 0; i < 4; ++i)
        pairs[i] = fma_pair(T(), pairs[i], PairBits<T>::kOne, shifts.at(part * 32 + i / 2 * 16));
    }
  }
  __device__ __forceinline__ void add_group(int group, const float (&of_group)[kCount],
                                            const Ready (&scales)[2], const float* x_sums) {
    const float factors[2] = {scales[0].of(group), scales[1].of(group)};
#pragma unroll
    for (int i = 0; i < kCount; ++i) sums[i] += factors[i / 2 % 2] * of_group[i];
    if constexpr (kMinima) {
      const float offsets[2] = {Format::offset(scales[0], group, factors[0]),
                                Format::offset(scales[1], group, factors[1])};
#pragma unroll
      for (int c = 0; c < kCount / 4; ++c) {
        const float2 x = *reinterpret_cast<const float2*>(x_sums + group * Columns + c * 8);
#pragma unroll
        for (int i = 0; i < 4; ++i)
          sums[c * 4 + i] = fmaf(-offsets[i / 2], i % 2 == 0 ? x.x : x.y, sums[c * 4 + i]);
      }
    }
  }
  /// `x` is at the block's part of the unit, x_sums at the lane's columns of its groups.
  __device__ __forceinline__ void multiply(const Format (&raw)[2], unsigned x,
                                           const float* x_sums) {
    using Step = RowProducts<T, Columns, false>;
    const Ready scales[2] = {raw[0].scales.ready(), raw[1].scales.ready()};
    const Shifts shifts[2] = {Shifts(scales[0]), Shifts(scales[1])};
#pragma unroll
    for (int first = 0; first < 4; first += kParts) {
      unsigned a[kParts * 2][4];
#pragma unroll
      for (int part = 0; part < kParts; ++part)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          unsigned pairs[4];
          decode(raw[half], shifts[half], first + part, pairs);
#pragma unroll
          for (int i = 0; i < 4; ++i) a[part * 2 + i / 2][i % 2 * 2 + half] = pairs[i];
        }
#pragma unroll
      for (int done = 0; done < kParts * 2; done += kSteps) {
        const int from = first * 32 + done * 16;
        begin_products();
#pragma unroll
        for (int step = 0; step < kSteps; ++step) {
          const int at = from + step * 16;
          const unsigned b = x + at / 64 * (Columns * kLine) + at % 64 * 2;
          Step::add(parts[step * 16 / kGroup], a[done + step], matrix_descriptor(b, kPart),
                    at % kGroup != 0);
        }
        commit_products();
        wait_for_products<0>();
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
          settle(parts[i]);
          if ((from + kSteps * 16) % kGroup == 0 || kGroup < kSteps * 16)
            add_group(from / kGroup + i, parts[i], scales, x_sums);
        }
      }
    }
  }
};

/// Warps * 32 threads multiply, 32 copy. A block has 16 rows of the weights for each warp and
/// 8 * ColTiles rows of x; blocks of neighbouring rows of x have the same rows of the weights. The
/// splits of k are one cluster. p.x: what arrange_columns() made.
template <typename T, typename Format, typename Act, int Warps, int ColTiles, int Stages>
__global__ void __launch_bounds__(Warps * 32 + 32, 16 / Warps)
    packed_wgmma(const __grid_constant__ SkinnyProblem p,
                 const __grid_constant__ PackedArrays weights) {
  using Of = PackedBoxes<Format, Warps, ColTiles, Stages>;
  extern __shared__ __align__(1024) unsigned char memory[];
  const Of shared(memory);
  const unsigned warp = __shfl_sync(~0u, threadIdx.x / 32, 0), lane = threadIdx.x % 32;
  const unsigned across = (p.m + Of::kColumns - 1) / Of::kColumns;
  const unsigned first_m = blockIdx.x % across * Of::kColumns;
  const unsigned first_n = blockIdx.x / across * Of::kRows;
  const unsigned units = (weights.blocks + 1) / 2, each = (units + p.splits - 1) / p.splits;
  const unsigned begin = min(blockIdx.y * each, units), end = min(begin + each, units);
  // Tiles beyond the last read the last: their sums are not stored.
  const unsigned of_lane = warp < Warps ? warp : min(lane, Warps - 1);
  const unsigned tile = min(first_n / 16 + of_lane, (p.n - 1) / 16);
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < Stages; ++stage) {
      shared.full[stage].init(1);
      shared.empty[stage].init(Warps);
    }
    Mbarrier::publish();
  }
  __syncthreads();
  wait_for_previous();
  WgmmaRows<T, Format, Of::kColumns> rows;
  if (warp == Warps) {
    const UInt8* const x = static_cast<const UInt8*>(p.x) +
                           static_cast<UInt64>(blockIdx.x % across) * units * Of::Unit::kBytes;
    copy_units<Format, Of, Warps, Stages>(shared, weights, x, tile, begin, end);
  } else {
    Ring<Stages> ring;
#pragma unroll
    for (float& sum : rows.sums) sum = 0;
#pragma unroll 1
    for (unsigned unit = begin; unit < end; ++unit, ring.advance()) {
      shared.full[ring.stage].wait(ring.parity);
      const PackedArrays copied =
          PackedStage<Format>::copied(weights, shared.weights(ring.stage, warp));
      const unsigned x = shared_address(shared.x(ring.stage));
      const float* const x_sums =
          reinterpret_cast<const float*>(shared.x(ring.stage) + Of::Unit::kProducts) + lane % 4 * 2;
#pragma unroll 1
      for (unsigned u = 0; u < min(2, weights.blocks - unit * 2); ++u) {
        Format raw[2];
#pragma unroll
        for (unsigned half = 0; half < 2; ++half) {
          const PackedPlace place = {u, 0, unit * 2 + u, tile, lane / 4, half};
          raw[half] = Format::template load<true>(copied, place, lane);
        }
        rows.multiply(raw, x + u * (2 * Of::Unit::kLines), x_sums + u * (4 * Of::kColumns));
      }
      give_back<1>(shared.empty[ring.stage], lane);
    }
  }
  __syncwarp();
  __syncthreads();  // all have read the stages
  if (warp < Warps) {
#pragma unroll
    for (int i = 0; i < Of::kColumns / 2; ++i) {
      const int column = i / 4 * 8 + lane % 4 * 2 + i % 2;
      const int row = warp * 16 + i / 2 % 2 * 8 + lane / 4;
      shared.sums()[column * Of::kPitch + row] = rows.sums[i];
    }
  }
  cluster_sync();
  for (unsigned i = blockIdx.y * blockDim.x + threadIdx.x; i < Of::kColumns * Of::kRows / 4;
       i += p.splits * blockDim.x) {
    const unsigned m = i / (Of::kRows / 4), row = i % (Of::kRows / 4) * 4;
    if (first_m + m >= p.m) break;
    const float* const mine = shared.sums() + m * Of::kPitch + row;
    float sum[4] = {};
#pragma unroll 4
    for (unsigned rank = 0; rank < p.splits; ++rank) {
      const float4 part = four_of_block(mine, rank);
      sum[0] += part.x;
      sum[1] += part.y;
      sum[2] += part.z;
      sum[3] += part.w;
    }
    finish_four<T, Act>(p, 0, first_m + m, first_n + row, sum);
  }
  leave_cluster();
}
