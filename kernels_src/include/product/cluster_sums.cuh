// The end of products with few rows by warpgroups: the blocks of a cluster add the sums of their
// parts of k. Compute capability 9.0.
//
// `Boxes` is a kernel's shared memory. It has kRows rows of the weights and kColumns rows of x, and
// sums(): a column behind the other, kPitch apart. kTeams teams of warps share the k of a block;
// each has sums of its own, one team's behind the other's.
#pragma once

#include <kernwright/skinny.cuh>

namespace kernwright {

/// A warp's sums of 16 rows, as wgmma leaves them, into shared memory. Warps are numbered through
/// all teams.
template <typename Boxes>
__device__ __forceinline__ void spread_warp_sums(const Boxes& shared, unsigned warp, unsigned lane,
                                                 const float (&sums)[Boxes::kColumns / 2]) {
  constexpr unsigned kOfTeam = Boxes::kRows / 16;
  float* const of_team = shared.sums() + warp / kOfTeam * (Boxes::kColumns * Boxes::kPitch);
#pragma unroll
  for (int i = 0; i < Boxes::kColumns / 2; ++i) {
    const int column = i / 4 * 8 + lane % 4 * 2 + i % 2;
    const int row = warp % kOfTeam * 16 + i / 2 % 2 * 8 + lane / 4;
    of_team[column * Boxes::kPitch + row] = sums[i];
  }
}

/// Adds the sums of all blocks and teams in their order, and stores the results from row `first_m`
/// of x and row `first_n` of the weights on. Each block has its share of them.
template <typename T, typename Act, typename Boxes>
__device__ __forceinline__ void finish_cluster(const SkinnyProblem& p, UInt64 batch,
                                               unsigned first_m, unsigned first_n,
                                               const Boxes& shared) {
  cluster_sync();
  for (unsigned i = blockIdx.y * blockDim.x + threadIdx.x; i < Boxes::kColumns * Boxes::kRows / 4;
       i += p.splits * blockDim.x) {
    const unsigned m = i / (Boxes::kRows / 4), row = i % (Boxes::kRows / 4) * 4;
    if (first_m + m >= p.m) break;
    const float* const mine = shared.sums() + m * Boxes::kPitch + row;
    float sum[4] = {};
#pragma unroll 4
    for (unsigned rank = 0; rank < p.splits; ++rank) {
#pragma unroll
      for (int team = 0; team < Boxes::kTeams; ++team) {
        const float4 part = four_of_block(mine + team * (Boxes::kColumns * Boxes::kPitch), rank);
        sum[0] += part.x;
        sum[1] += part.y;
        sum[2] += part.z;
        sum[3] += part.w;
      }
    }
    finish_four<T, Act>(p, batch, first_m + m, first_n + row, sum);
  }
}

}  // namespace kernwright
