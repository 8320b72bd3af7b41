// Split-K in a cluster for products of few rows by warpgroups: the blocks add the accumulators of
// their parts of k in the epilogue. Compute capability 9.0.
//
// `TilesType` is a kernel's shared memory. It has kRows rows of the weights and kColumns rows of x,
// and accumulators(): accumulators in columns, kPitch apart. kTeams teams of warps share the k of a
// block; the accumulators of one team lie behind the accumulators of the previous team. Without
// teams warps may send accumulators to another block instead (SumOwners): then `TilesType` has
// `received` as the receiving buffer, and a barrier `all_received`.
#pragma once

#include <kernwright/skinny.cuh>

namespace kernwright {

/// Each block of a cluster owns the epilogue of some warps, and receives the accumulators of these
/// warps from all peer blocks.
template <typename TilesType>
struct EpilogueOwners {
  static constexpr unsigned kWarps = TilesType::kRows / 16;
  static constexpr unsigned kBytes = TilesType::kColumns * 16 * 4;  // of a warp's accumulators
  unsigned splits;                                                  // blocks

  __device__ unsigned owner(unsigned warp) const { return warp * splits / kWarps; }
  __device__ unsigned first(unsigned block) const { return (block * kWarps + splits - 1) / splits; }
  /// That a block has room for.
  __device__ unsigned bytes() const {
    return (kWarps + splits - 1) / splits * (splits - 1) * kBytes;
  }
  /// That a block gets.
  __device__ unsigned expected(unsigned block) const {
    return (first(block + 1) - first(block)) * (splits - 1) * kBytes;
  }
};

/// One thread calls it before the cluster's blocks meet; peers send accumulators after the meeting.
template <typename TilesType>
__device__ __forceinline__ void expect_accumulators(const TilesType& shared, unsigned splits,
                                                    unsigned part) {
  shared.all_received->arrive_expecting(EpilogueOwners<TilesType>{splits}.expected(part));
}

/// The block that owns a warp's epilogue, and a lane's offset in the receiving buffer for the first
/// peer.
struct WarpPlace {
  unsigned owner;
  unsigned char* received;
};

template <typename TilesType>
__device__ __forceinline__ WarpPlace place_warp(const TilesType& shared, unsigned splits,
                                                unsigned warp, unsigned lane) {
  const EpilogueOwners<TilesType> owners{splits};
  const unsigned owner = owners.owner(warp);
  const unsigned at = (warp - owners.first(owner)) * (splits - 1) * owners.kBytes;
  return {owner, shared.received + at + lane * 16};
}

/// A warp of block `part` sends its accumulators to the owner block, or adds the received ones in
/// the order of the blocks. Returns whether the warp has the full accumulators.
template <typename TilesType>
__device__ __forceinline__ bool reduce_warp_split_k(
    const TilesType& shared, const WarpPlace& place, unsigned splits, unsigned part,
    unsigned parity, float (&accumulators)[TilesType::kColumns / 2]) {
  using Owners = EpilogueOwners<TilesType>;
  if (splits == 1) return true;
  const unsigned owner = place.owner, others = splits - 1;
  const unsigned char* received = place.received;
  if (owner != part) {
    const unsigned to = address_in_block(shared_address(received), owner) +
                        (part - (part > owner ? 1 : 0)) * Owners::kBytes;
    const unsigned all_received = address_in_block(shared_address(shared.all_received), owner);
#pragma unroll
    for (int i = 0; i < TilesType::kColumns / 2; i += 4) {
      unsigned four[4];
#pragma unroll
      for (int k = 0; k < 4; ++k) four[k] = __float_as_uint(accumulators[i + k]);
      send_four(to + i * 128, four, all_received);
    }
    return false;
  }
  shared.all_received->wait(parity);
#pragma unroll 1
  for (unsigned from = 0; from < others; ++from, received += Owners::kBytes) {
#pragma unroll
    for (int i = 0; i < TilesType::kColumns / 2; i += 4) {
      const float4 four = *reinterpret_cast<const float4*>(received + i * 128);
      accumulators[i] += four.x;
      accumulators[i + 1] += four.y;
      accumulators[i + 2] += four.z;
      accumulators[i + 3] += four.w;
    }
  }
  return true;
}

/// The transpose of 8 rows and columns of 16-bit numbers: a lane has two neighbours of row lane
/// / 4.
__device__ __forceinline__ unsigned turned(unsigned pair) {
  unsigned result;
  asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(result) : "r"(pair));
  return result;
}

/// finish_warp() for the layout of a column behind another.
template <typename T, typename Act, typename TilesType, bool kPlain>
__device__ __forceinline__ void store_warp(const SkinnyProblem& p, UInt64 batch, unsigned first_n,
                                           unsigned lane,
                                           const float (&accumulators)[TilesType::kColumns / 2]) {
  const bool odd = lane % 2 != 0;
#pragma unroll
  for (int c = 0; c < TilesType::kColumns / 8; ++c) {
    if (c * 8 >= p.m) break;
    unsigned halves[2];  // of the warp's rows
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      Pack<T, 2> pair;
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const unsigned m = min(c * 8 + lane % 4 * 2 + i, p.m - 1);
        const unsigned n = min(first_n + half * 8 + lane / 4, p.n - 1);
        pair.value[i] =
            finished<T, Act, kPlain>(p, batch, m, n, accumulators[c * 4 + half * 2 + i]);
      }
      memcpy(&halves[half], &pair, 4);
      halves[half] = turned(halves[half]);
    }
    // Even lanes have four neighbours of the first half, odd ones of the other.
    const unsigned got = __shfl_xor_sync(~0u, odd ? halves[0] : halves[1], 1);
    const uint2 words = odd ? make_uint2(got, halves[1]) : make_uint2(halves[0], got);
    const unsigned m = c * 8 + lane / 4, n = first_n + (odd ? 8 : 0) + lane % 4 / 2 * 4;
    if (m >= p.m || n >= p.n) continue;
    Pack<T, 4> four;
    memcpy(&four, &words, 8);
    store_four(p, batch, m, n, four);
  }
}

/// Stores the results of a warp's 16 rows from `first_n` on, from accumulators in wgmma's layout. A
/// transposition in registers lets four lanes store all 16 results of a row of x. The plain
/// epilogue has short code of its own: all warps wait for its instruction fetch.
template <typename T, typename Act, typename TilesType>
__device__ __forceinline__ void finish_warp(const SkinnyProblem& p, UInt64 batch, unsigned first_n,
                                            unsigned lane,
                                            const float (&accumulators)[TilesType::kColumns / 2]) {
  if (ends_plainly(p.epilogue)) {
    store_warp<T, Act, TilesType, true>(p, batch, first_n, lane, accumulators);
  } else {
    store_warp<T, Act, TilesType, false>(p, batch, first_n, lane, accumulators);
  }
}

/// A warp's accumulators of 16 rows, as wgmma leaves them, into shared memory. Warps are numbered
/// through all teams.
template <typename TilesType>
__device__ __forceinline__ void spread_warp(const TilesType& shared, unsigned warp, unsigned lane,
                                            const float (&accumulators)[TilesType::kColumns / 2]) {
  constexpr unsigned kTeamWarps = TilesType::kRows / 16;
  float* const team_accumulators =
      shared.accumulators() + warp / kTeamWarps * (TilesType::kColumns * TilesType::kPitch);
#pragma unroll
  for (int i = 0; i < TilesType::kColumns / 2; ++i) {
    const int column = i / 4 * 8 + lane % 4 * 2 + i % 2;
    const int row = warp % kTeamWarps * 16 + i / 2 % 2 * 8 + lane / 4;
    team_accumulators[column * TilesType::kPitch + row] = accumulators[i];
  }
}

/// Adds the accumulators of all blocks and teams in a fixed order, and stores the results from row
/// `first_m` of x and row `first_n` of the weights on. Each block stores a share.
template <typename T, typename Act, typename TilesType>
__device__ __forceinline__ void finish_cluster(const SkinnyProblem& p, UInt64 batch,
                                               unsigned first_m, unsigned first_n,
                                               const TilesType& shared) {
  cluster_sync();
  for (unsigned i = blockIdx.y * blockDim.x + threadIdx.x;
       i < TilesType::kColumns * TilesType::kRows / 4; i += p.splits * blockDim.x) {
    const unsigned m = i / (TilesType::kRows / 4), row = i % (TilesType::kRows / 4) * 4;
    if (first_m + m >= p.m) break;
    const float* const local = shared.accumulators() + m * TilesType::kPitch + row;
    float sum[4] = {};
#pragma unroll 4
    for (unsigned rank = 0; rank < p.splits; ++rank) {
#pragma unroll
      for (int team = 0; team < TilesType::kTeams; ++team) {
        const float4 part =
            read_four(local + team * (TilesType::kColumns * TilesType::kPitch), rank);
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
