// Writes single elements at positions that may repeat. Each element claims a position by a word of
// its number and its bits; the highest number wins; one pass writes the winners without a second
// look at the elements.
#include <kernwright/elements.cuh>
#include <kernwright/walk.cuh>

using namespace kernwright;

constexpr int kUnroll = 4;
constexpr int kTo = 0, kClaim = 1;

/// `claims`, 0 before, get the number of the last element for each position, from 1 on, above the
/// bits. Negative positions count from the end; positions outside claim nothing.
template <typename Position, typename Bits>
__global__ void claim_places(const Position* __restrict__ positions,
                             const Bits* __restrict__ values, UInt64* __restrict__ claims,
                             long long places, long long count) {
  const long long tile = static_cast<long long>(blockDim.x) * kUnroll;
  for (long long first = blockIdx.x * tile + threadIdx.x; first < count;
       first += gridDim.x * tile) {
    Position position[kUnroll];
    Bits bits[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const long long i = first + static_cast<long long>(u) * blockDim.x;
      if (i >= count) break;
      position[u] = positions[i];
      bits[u] = values[i];
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const long long i = first + static_cast<long long>(u) * blockDim.x;
      if (i >= count) break;
      long long place = position[u];
      if (place < 0) place += places;
      if (place < 0 || place >= places) continue;
      atomicMax(&claims[place], static_cast<UInt64>(i + 1) << 32 | bits[u]);
    }
  }
}

/// Positions without a claim keep the old element.
template <typename Bits, typename Index>
__global__ void write_claims(char* __restrict__ to, const char* __restrict__ claims,
                             const Walk<2> view, Index count) {
  const Index tile = static_cast<Index>(blockDim.x) * kUnroll;
  for (Index first = blockIdx.x * tile + threadIdx.x; first < count; first += gridDim.x * tile) {
    UInt64 claim[kUnroll];
    long long place[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const Index i = first + static_cast<Index>(u) * blockDim.x;
      if (i >= count) break;
      const WalkOffsets<2> at = walk_offsets(view, i);
      place[u] = at.offset[kTo];
      claim[u] = *reinterpret_cast<const UInt64*>(claims + at.offset[kClaim]);
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      if (first + static_cast<Index>(u) * blockDim.x >= count) break;
      if (claim[u] != 0) *reinterpret_cast<Bits*>(to + place[u]) = static_cast<Bits>(claim[u]);
    }
  }
}
