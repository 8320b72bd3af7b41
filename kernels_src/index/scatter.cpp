// Writing at positions: the last of those that name one place wins.
#include "kernels_src/index/scatter.h"

#include "array/shape.h"
#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "kernels_src/copy/copy.h"
#include "kernels_src/index/indexed_walk.h"
#include "kernels_src/index/segment_add.h"

#include <algorithm>
#include <numeric>

namespace kernwright::kernels {

namespace {

void require_scatter_target(const Array& x, const Array& values, const Shape& shape) {
  if (&x.device() != &values.device()) {
    throw InvalidArgument(
        format("values must be on the same device: {} goes into {}; copy one "
               "with .to(device)",
               values.identify(), x.identify()));
  }
  if (values.shape() != shape || values.type() != x.type()) {
    throw InvalidArgument(
        format("Incompatible dimensions: {} cannot be written to a selection of shape {} from {}",
               values.identify(), shape_to_string(shape), x.identify()));
  }
  if (x.read_only()) {
    throw InvalidArgument(format("cannot write to {}: it is read-only", x.identify()));
  }
  for (std::size_t d = 0; d < x.shape().size(); ++d) {
    if (x.shape()[d] <= 1 || x.strides()[d] != 0) continue;
    throw InvalidArgument(
        format("cannot write to {}: axis {} repeats elements (a stride of 0); "
               "write to a copy of it",
               x.identify(), d));
  }
}

/// With the owners' offsets instead of positions.
void launch_owners(const Array& values, const Array& x, IndexedWalk walk, std::size_t first,
                   const Slots& slots, const Stream& on) {
  walk.index = owners_offsets(slots, on);
  walk.offsets = true;
  const Shape& strides = walk.index.strides();
  std::copy(strides.begin(), strides.end(),
            walk.index_strides.begin() + static_cast<std::ptrdiff_t>(first));
  launch_scatter(values, x, walk, on);
}

/// An array that shares no memory with `x`.
Array apart_from(const Array& x, const Array& array, const Stream& stream) {
  return may_overlap(x, array) ? copy(array, stream) : array;
}

}  // namespace

void put_at(const Array& x, const IndexedAxes& at, const Array& given, Repeats repeats,
            const Stream& stream) {
  require_scatter_target(x, given, at.result_shape(x));
  if (given.size() == 0) return;
  const Stream on = stream ? stream : Stream::legacy(x.device());
  const Array values = apart_from(x, given, stream);
  IndexedAxes known = at;
  for (Array& index : known.indices) index = as_positions(apart_from(x, index, stream), stream);
  const IndexedWalk walk = walk_at(x, known);
  if (repeats == Repeats::never && known.axes.size() == 1) {
    launch_scatter(values, x, walk, on);
  } else {
    launch_owners(values, x, walk, static_cast<std::size_t>(at.position),
                  slots_at(x, known, stream), on);
  }
}

void scatter(const Array& x, int axis, const Array& index, const Array& given, Repeats repeats,
             const Stream& stream) {
  const Array positions = as_positions(apart_from(x, index, stream), stream);
  IndexedWalk walk = walk_along(x, axis, positions);
  require_scatter_target(x, given, index.shape());
  if (given.size() == 0) return;
  const Stream on = stream ? stream : Stream::legacy(x.device());
  const Array values = apart_from(x, given, stream);
  if (repeats == Repeats::never) return launch_scatter(values, x, walk, on);
  // The offsets are from the first element of `x`, whatever the axis.
  walk.indexed_strides.assign(walk.shape.size(), 0);
  for (const std::int64_t stride : x.strides()) {
    walk.alignment |= static_cast<std::uint64_t>(stride);
  }
  launch_owners(values, x, walk, 0, slots_along(x, axis, positions, stream), on);
}

void add_at(const Array& x, const IndexedAxes& at, const Array& values, const Stream& stream) {
  require_scatter_target(x, values, at.result_shape(x));
  if (values.size() == 0) return;
  // The axes of the positions come first, so that the values of one position are one row.
  const auto rank = static_cast<int>(at.common_shape().size());
  std::vector<int> order(static_cast<std::size_t>(values.ndim()));
  std::iota(order.begin(), order.begin() + rank, at.position);
  std::iota(order.begin() + rank, order.begin() + rank + at.position, 0);
  std::iota(order.begin() + rank + at.position, order.end(), at.position + rank);
  WalkPlan<1> row;
  for (int axis = x.ndim(); axis-- > 0;) {
    const auto d = static_cast<std::size_t>(axis);
    if (std::find(at.axes.begin(), at.axes.end(), axis) == at.axes.end()) {
      row.add(x.shape()[d], {x.strides()[d]});
    }
  }
  add_segments(x, values.transpose(order), slots_at(x, at, stream), row, stream);
}

void scatter_add(const Array& x, int axis, const Array& index, const Array& values,
                 const Stream& stream) {
  walk_along(x, axis, index);  // checks
  require_scatter_target(x, values, index.shape());
  if (values.size() == 0) return;
  add_segments(x, values, slots_along(x, axis, index, stream), {}, stream);
}

}  // namespace kernwright::kernels
