// Moves units between a plain view and one whose place along an axis comes from an array of
// positions.
#include <kernwright/elements.cuh>
#include <kernwright/walk.cuh>

using namespace kernwright;

struct alignas(16) Unit16 {
  unsigned long long low, high;
};

constexpr int kPlain = 0, kIndexed = 1, kIndex = 2;
constexpr int kUnroll = 4;
/// An offset that says: write nothing.
constexpr long long kNowhere = -9223372036854775807LL - 1;

/// Negative positions count from the end; what lies beyond an end is the nearest element.
template <typename Position>
struct Clamped {
  static constexpr bool kSparse = false;  ///< whether `of` may give kNowhere
  __device__ static long long apply(Position position, long long extent, long long stride) {
    long long at = position < 0 ? position + extent : static_cast<long long>(position);
    at = at < 0 ? 0 : at >= extent ? extent - 1 : at;
    return at * stride;
  }
};
/// A checked position; a position outside reads nothing.
template <typename Position>
struct Checked {
  __device__ static long long apply(Position position, long long extent, long long stride) {
    const long long at = position < 0 ? position + extent : static_cast<long long>(position);
    return at < 0 || at >= extent ? kNowhere : at * stride;
  }
};
/// The positions are offsets in bytes.
struct Offset {
  static constexpr bool kSparse = false;
  __device__ static long long apply(Int64 position, long long, long long) { return position; }
};

/// The positions are numbers from 1 on, as mark_owners() in slots.cu gives them.
template <typename Position>
struct Owned {
  static constexpr bool kSparse = true;
  __device__ static long long apply(Position number, long long, long long stride) {
    return number == 0 ? kNowhere : (static_cast<long long>(number) - 1) * stride;
  }
};

/// `Place` is Clamped<Position>, Owned<Position> or Offset, `Index` holds count plus one grid of
/// threads.
template <typename Unit, typename Position, typename Place, typename Index>
__global__ void gather(char* __restrict__ plain, const char* __restrict__ indexed,
                       const char* __restrict__ index, const Walk<3> view, long long extent,
                       long long stride, Index count) {
  const Index tile = static_cast<Index>(blockDim.x) * kUnroll;
  for (Index first = blockIdx.x * tile + threadIdx.x; first < count; first += gridDim.x * tile) {
    long long to[kUnroll], from[kUnroll];
    Unit value[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const Index i = first + static_cast<Index>(u) * blockDim.x;
      if (i >= count) break;
      const WalkOffsets<3> at = walk_offsets(view, i);
      const Position position = *reinterpret_cast<const Position*>(index + at.offset[kIndex]);
      to[u] = at.offset[kPlain];
      const long long place = Place::apply(position, extent, stride);
      from[u] = Place::kSparse && place == kNowhere ? kNowhere : at.offset[kIndexed] + place;
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      if (first + static_cast<Index>(u) * blockDim.x >= count) break;
      if (Place::kSparse && from[u] == kNowhere) continue;
      value[u] = *reinterpret_cast<const Unit*>(indexed + from[u]);
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      if (first + static_cast<Index>(u) * blockDim.x >= count) break;
      if (Place::kSparse && from[u] == kNowhere) continue;
      *reinterpret_cast<Unit*>(plain + to[u]) = value[u];
    }
  }
}

/// `Place` is Checked<Position> or Offset. No two different units go to one place.
template <typename Unit, typename Position, typename Place, typename Index>
__global__ void scatter(const char* __restrict__ plain, char* __restrict__ indexed,
                        const char* __restrict__ index, const Walk<3> view, long long extent,
                        long long stride, Index count) {
  const Index tile = static_cast<Index>(blockDim.x) * kUnroll;
  for (Index first = blockIdx.x * tile + threadIdx.x; first < count; first += gridDim.x * tile) {
    long long to[kUnroll];
    Unit value[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const Index i = first + static_cast<Index>(u) * blockDim.x;
      if (i >= count) break;
      const WalkOffsets<3> at = walk_offsets(view, i);
      const Position position = *reinterpret_cast<const Position*>(index + at.offset[kIndex]);
      const long long place = Place::apply(position, extent, stride);
      to[u] = place == kNowhere ? kNowhere : at.offset[kIndexed] + place;
      value[u] = *reinterpret_cast<const Unit*>(plain + at.offset[kPlain]);
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      if (first + static_cast<Index>(u) * blockDim.x >= count) break;
      if (to[u] != kNowhere) *reinterpret_cast<Unit*>(indexed + to[u]) = value[u];
    }
  }
}
