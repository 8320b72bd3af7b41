// Positions along several axes become one number each: a slot, or an offset in bytes.
#include <kernwright/elements.cuh>
#include <kernwright/reduce.cuh>
#include <kernwright/walk.cuh>

using namespace kernwright;

constexpr int kOut = 0, kBase = 1, kIndex = 2;
constexpr long long kNowhere = -9223372036854775807LL - 1;
constexpr int kMaxAxes = 16;

/// out += base + position * multiplier, or `outside` for good where a position is beyond an end and
/// is not clamped. The first of several calls starts from 0.
template <typename Position, typename Index>
__global__ void add_positions(char* __restrict__ out, long long base,
                              const char* __restrict__ index, const Walk<3> view, long long extent,
                              long long multiplier, long long outside, bool clamp, bool first,
                              Index count) {
  const Index step = static_cast<Index>(gridDim.x) * blockDim.x;
  for (Index i = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    const WalkOffsets<3> at = walk_offsets(view, i);
    long long position = *reinterpret_cast<const Position*>(index + at.offset[kIndex]);
    if (position < 0) position += extent;
    const bool inside = position >= 0 && position < extent;
    if (clamp && !inside) position = position < 0 ? 0 : extent - 1;
    long long* const target = reinterpret_cast<long long*>(out + at.offset[kOut]);
    const long long before = first ? 0 : *target;
    const bool lost = (!clamp && !inside) || (!first && !clamp && before == outside);
    *target = lost ? outside : before + base + at.offset[kBase] + position * multiplier;
  }
}

/// The last element for a slot owns the slot: owner[slot], 0 before, gets the element's number,
/// from 1 on. Negative positions count from the end of the slots.
template <typename Position, typename Number>
__global__ void mark_owners(const Position* __restrict__ positions, Number* __restrict__ owner,
                            long long slot_count, long long count) {
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x; i < count;
       i += step) {
    long long slot = positions[i];
    if (slot < 0) slot += slot_count;
    if (slot < 0 || slot >= slot_count) continue;
    atomicMax(&owner[slot], static_cast<Number>(i + 1));
  }
}

/// Axes that slots are numbered over, the innermost first.
struct SlotAxes {
  long long extent[kMaxAxes];
  long long stride[kMaxAxes];
  int count;
};

/// Offsets in bytes of the slots of owners; all further elements go nowhere.
template <typename Number>
__global__ void owners_offsets(const long long* __restrict__ slots,
                               const Number* __restrict__ owner, long long* __restrict__ offsets,
                               const SlotAxes axes, long long slot_count, long long count) {
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x; i < count;
       i += step) {
    long long slot = slots[i];
    long long offset = kNowhere;
    if (slot < slot_count && owner[slot] == static_cast<Number>(i + 1)) {
      offset = 0;
      for (int a = 0; a < axes.count; ++a) {
        const long long rest = slot / axes.extent[a];
        offset += (slot - rest * axes.extent[a]) * axes.stride[a];
        slot = rest;
      }
    }
    offsets[i] = offset;
  }
}

/// Adds to `outside` how many positions lie beyond the ends.
template <typename Position>
__global__ void count_outside(const Position* __restrict__ index, long long extent,
                              unsigned long long* __restrict__ outside, long long count) {
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  unsigned found = 0;
  for (long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x; i < count;
       i += step) {
    const long long position = index[i];
    found += position < -extent || position >= extent ? 1 : 0;
  }
  found = block_reduce<256>(found, Sum(), 0u);
  if (threadIdx.x == 0 && found > 0) atomicAdd(outside, static_cast<unsigned long long>(found));
}

/// Splits positions in a space of `axes` into their coordinates: row a of `out` is that of axis a.
__global__ void split_positions(const long long* __restrict__ positions,
                                long long* __restrict__ out, const SlotAxes axes, long long count) {
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x; i < count;
       i += step) {
    long long position = positions[i];
    for (int a = 0; a < axes.count; ++a) {
      const long long rest = position / axes.extent[a];
      out[(axes.count - 1 - a) * count + i] = position - rest * axes.extent[a];
      position = rest;
    }
  }
}
