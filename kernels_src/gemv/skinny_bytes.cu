// Products with some rows on Hopper and weights of one byte: these are the rows of products by
// warpgroups (wgmma), decoded in registers, x are their columns. One warp copies both by tensor
// maps. Teams of warps share the k of a block, stage by stage; blocks of a cluster share k, too.
#include <kernwright/cluster_split_k.cuh>
#include <kernwright/product_stages.cuh>
#include <kernwright/skinny_weights.cuh>
#include <kernwright/wgmma_rows.cuh>

using namespace kernwright;

/// Shared memory of a block: stages of 128 of k, of each row of the weights and of x (in two TMA
/// tiles of 64), or later the accumulators of each team; two barriers for each stage.
template <int Warps, int Teams, int ColTiles, int Stages>
struct ByteTiles {
  static constexpr int kTeams = Teams, kTeamWarps = Warps / Teams;  // warps
  static constexpr int kRows = kTeamWarps * 16, kColumns = ColTiles * 8, kDepth = 128;
  static constexpr int kHalf = kColumns * kLine;  // bytes of a TMA tile of x
  static constexpr int kBytes = kRows * kLine + 2 * kHalf;
  static constexpr int kPitch = kRows + 4;  // of accumulators
  static constexpr int kSumBytes = Teams * kColumns * kPitch * 4;
  static constexpr int kData = Stages * kBytes > kSumBytes ? Stages* kBytes : kSumBytes;
  unsigned char* base;
  Mbarrier *full, *empty;

  __device__ explicit ByteTiles(unsigned char* at)
      : base(at), full(reinterpret_cast<Mbarrier*>(at + kData)), empty(full + Stages) {}
  __device__ unsigned char* weights(int stage) const { return base + stage * kBytes; }
  __device__ unsigned char* x(int stage) const { return weights(stage) + kRows * kLine; }
  __device__ float* accumulators() const { return reinterpret_cast<float*>(base); }
};

/// Stages `begin` to `end` of k. By one thread.
template <typename TilesType, int Stages>
__device__ __forceinline__ void load_byte_stages(const TilesType& shared,
                                                 const TensorMap& map_weights,
                                                 const TensorMap& map_x, int first, int begin,
                                                 int end) {
  Ring<Stages> ring;
  for (int chunk = begin; chunk < end; ++chunk, ring.advance()) {
    Mbarrier& full = shared.full[ring.stage];
    shared.empty[ring.stage].wait(ring.parity ^ 1);
    full.arrive_expecting(TilesType::kBytes);
    const int k = chunk * TilesType::kDepth;
    tma_load(shared.weights(ring.stage), map_weights, {k, first, 0, 0}, full);
    tma_load(shared.x(ring.stage), map_x, {k, 0, 0, 0}, full);
    tma_load(shared.x(ring.stage) + TilesType::kHalf, map_x, {k + 64, 0, 0, 0}, full);
  }
}

__device__ __forceinline__ unsigned short two_bytes(unsigned address) {
  unsigned short bytes;
  asm volatile("ld.shared.u16 %0, [%1];" : "=h"(bytes) : "r"(address) : "memory");
  return bytes;
}

/// A part of 32 of k of a warp's rows, as fragments of two steps. `rows`: the address of a lane's
/// offset in its row; `swizzle` is the swizzle of the row.
template <typename T, typename Weight>
__device__ __forceinline__ void decode_part(unsigned rows, unsigned swizzle, int part,
                                            unsigned (&steps)[2][4]) {
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    // Both rows of the first eight of a step's 16 of k, then of the last eight.
    const unsigned at = ((part * 2 + i / 4) * 16 ^ swizzle) + i % 2 * 8 * kLine + i % 4 / 2 * 8;
    steps[i / 4][i % 4] = round_pair(T(), Weight(), two_bytes(rows + at));
  }
}

/// The accumulators of a warp's 16 rows over its team's stages. A part is decoded while the
/// previous part is multiplied.
template <typename T, typename Weight, typename TilesType, int Stages>
__device__ __forceinline__ void multiply_bytes(const TilesType& shared, int warp, int lane,
                                               int begin, int end,
                                               float (&accumulators)[TilesType::kColumns / 2]) {
  using Step = RowProducts<T, TilesType::kColumns, false>;
  const int team = warp / TilesType::kTeamWarps, row = warp % TilesType::kTeamWarps * 16 + lane / 4;
  const unsigned swizzle = row % 8 * 16, line_offset = row * kLine + lane % 4 * 2;
  Ring<Stages> ring;
  ring.advance(team);
#pragma unroll
  for (float& sum : accumulators) sum = 0;
#pragma unroll 1
  for (int chunk = begin + team; chunk < end;
       chunk += TilesType::kTeams, ring.advance(TilesType::kTeams)) {
    shared.full[ring.stage].wait(ring.parity);
    const unsigned rows = shared_address(shared.weights(ring.stage)) + line_offset;
    const unsigned long long b = matrix_descriptor(shared_address(shared.x(ring.stage)), kPart);
    unsigned a[2][2][4];
    decode_part<T, Weight>(rows, swizzle, 0, a[0]);
#pragma unroll
    for (int part = 0; part < 4; ++part) {
      begin_products();
#pragma unroll
      for (int step = 0; step < 2; ++step) {
        const int k = part * 32 + step * 16;
        Step::add(accumulators, a[part % 2][step],
                  b + (k / 64 * TilesType::kHalf + k % 64 * 2) / 16, 1);
      }
      commit_products();
      if (part == 3) break;
      if (part > 0) wait_for_products<1>();
      decode_part<T, Weight>(rows, swizzle, part + 1, a[(part + 1) % 2]);
    }
    wait_for_products<0>();
    settle(accumulators);
    give_back<1>(shared.empty[ring.stage], lane);
  }
}

/// Warps * 32 threads multiply, 32 copy. A block has 16 rows of the weights for each warp of a team
/// and all rows of x, at most 8 * ColTiles. The splits are one cluster.
template <typename T, typename Weight, typename Act, int Warps, int Teams, int ColTiles, int Stages>
__global__ void __launch_bounds__(Warps * 32 + 32, 1)
    skinny_bytes(const __grid_constant__ TensorMap map_weights,
                 const __grid_constant__ TensorMap map_x, const __grid_constant__ SkinnyProblem p) {
  using TilesType = ByteTiles<Warps, Teams, ColTiles, Stages>;
  static_assert(Stages % Teams == 0);  // teams share no stage: one could be two rounds ahead
  extern __shared__ __align__(1024) unsigned char memory[];
  const TilesType shared(memory);
  const int warp = __shfl_sync(~0u, static_cast<int>(threadIdx.x / 32), 0);
  const int lane = threadIdx.x % 32, first = blockIdx.x * TilesType::kRows;
  const int chunks = (p.k + TilesType::kDepth - 1) / TilesType::kDepth;
  const int each = (chunks + p.splits - 1) / p.splits;
  const int begin = min(static_cast<int>(blockIdx.y) * each, chunks);
  const int end = min(begin + each, chunks);
  if (threadIdx.x == 0) {
    prefetch(map_weights);
    prefetch(map_x);
    for (int stage = 0; stage < Stages; ++stage) {
      shared.full[stage].init(1);
      shared.empty[stage].init(TilesType::kTeamWarps);
    }
    Mbarrier::publish();
  } else if (threadIdx.x == Warps * 32) {
    for (int i = begin; i < min(begin + static_cast<int>(p.ahead), end); ++i) {
      tma_prefetch(map_weights, {i * TilesType::kDepth, first, 0, 0});
    }
  }
  __syncthreads();
  pdl_launch_then_wait();
  float accumulators[TilesType::kColumns / 2];
  if (warp < Warps) {
    multiply_bytes<T, Weight, TilesType, Stages>(shared, warp, lane, begin, end, accumulators);
  } else if (lane == 0) {
    load_byte_stages<TilesType, Stages>(shared, map_weights, map_x, first, begin, end);
  }
  __syncwarp();
  __syncthreads();  // all have read the stages
  if (warp < Warps) spread_warp(shared, warp, lane, accumulators);
  finish_cluster<T, Act>(p, 0, 0, first, shared);
  leave_cluster(p.splits);
}
