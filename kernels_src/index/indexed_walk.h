// Shared by reading and writing at positions: the walk over the views, and positions as slots.
#pragma once

#include "kernels_src/index/gather.h"
#include "kernels_src/walk_plan.h"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace kernwright::kernels {

/// The place of a plain-side element in the other side: strides of both for each axis of the plain
/// side, in bytes, and the position along the indexed axis, from `index`.
struct IndexedWalk {
  Shape shape;            ///< of the plain side
  Shape indexed_strides;  ///< 0 along the axes of the index
  Shape index_strides;    ///< 0 along all others
  Array index;            ///< int32 or int64; owners are unsigned
  bool offsets = false;   ///< the index holds offsets in bytes
  bool owners = false;    ///< or what mark_owners() gives, to be read only; else positions:
  std::int64_t extent = 1;
  std::int64_t stride = 0;      ///< of the indexed axis
  std::uint64_t alignment = 0;  ///< of all offsets
};

/// The index may still hold one position only: for several axes it is made by positions_to_slots().
IndexedWalk walk_at(const Array& x, const IndexedAxes& at);
IndexedWalk walk_along(const Array& x, int axis, const Array& index);

void launch_gather(const Array& to, const Array& x, const IndexedWalk& walk, const Stream& on);
void launch_scatter(const Array& values, const Array& x, const IndexedWalk& walk, const Stream& on);

/// As int32 or int64.
Array as_positions(const Array& index, const Stream& stream);

/// One number for each place that positions along axes name.
struct SlotRule {
  Shape shape;                            ///< of the positions
  std::vector<Array> indices;             ///< broadcast to `shape`
  std::vector<std::int64_t> extents;      ///< of the axes, for each of `indices`
  std::vector<std::int64_t> multipliers;  ///< for each of `indices`
  Shape base_strides;                     ///< what a step along each axis of `shape` adds; or empty
  bool clamp = false;
  std::int64_t outside = 0;  ///< the number of what lies beyond the ends, when not clamped
};
/// int64, contiguous, of the rule's shape.
Array positions_to_slots(Device& device, const SlotRule& rule, const Stream& stream);

/// Slots over axes, row-major: their number, their extents and strides, the innermost first.
struct SlotSpace {
  std::int64_t count = 1;
  std::vector<WalkDim<1>> axes;
};

inline constexpr std::size_t kMaxSlotAxes = 16;
/// The kernels' parameter; its layout is that of SlotAxes in slots.cu and segment_add.cu.
struct SlotAxes {
  std::int64_t extent[kMaxSlotAxes];
  std::int64_t stride[kMaxSlotAxes];
  std::int32_t count;
};
/// Throws InvalidArgument for more than kMaxSlotAxes.
SlotAxes slot_axes(const std::vector<WalkDim<1>>& axes);

struct Slots {
  Array numbers;  ///< int64, contiguous; the space's count for what lies beyond the ends
  SlotSpace space;
};
Slots slots_at(const Array& x, const IndexedAxes& at, const Stream& stream);
Slots slots_along(const Array& x, int axis, const Array& index, const Stream& stream);

/// For each of `slots` slots the number, from 1 on, of the last position naming it; 0 where none
/// does. Positions have no gaps. Negative ones count from the end. uint32, or uint64 for as many.
Array mark_owners(const Array& positions, std::int64_t slots, const Stream& on);
/// Offsets in bytes for the last element that goes to each slot; all others go nowhere.
Array owners_offsets(const Slots& slots, const Stream& on);

/// Strides of `array` seen as `shape`, to which it broadcasts.
Shape broadcast_strides(const Array& array, const Shape& shape);

}  // namespace kernwright::kernels
