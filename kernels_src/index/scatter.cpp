// Writing at positions: the last of those that name one place wins.
#include "kernels_src/index/scatter.h"

#include "array/shape.h"
#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "kernels_src/copy/copy.h"
#include "kernels_src/index/claims.h"
#include "kernels_src/index/indexed_walk.h"
#include "kernels_src/index/segment_add.h"
#include "kernels_src/sort/rows.h"

#include <algorithm>
#include <numeric>
#include <optional>

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

/// Places for each position up to which all places are looked at: of short rows, of others.
constexpr std::int64_t kMostPlaces = 4, kShortPlace = 16;

bool visits_places(std::int64_t places, std::int64_t positions, std::int64_t bytes) {
  return places <= positions * (bytes <= kShortPlace ? kMostPlaces : 1);
}

/// The bytes between neighbours along `count` axes from `first` on, counted row-major; none where
/// they are not the same everywhere.
std::optional<std::int64_t> one_stride(const Array& array, std::size_t first, std::size_t count) {
  WalkPlan<1> walk;
  for (std::size_t d = first + count; d-- > first;) {
    walk.add(array.shape()[d], {array.strides()[d]});
  }
  if (walk.dims.size() > 1) return std::nullopt;
  return walk.dims.empty() ? 0 : walk.dims.front().stride[0];
}

/// Each place of `x` takes from `values` the element of its last position. The positions lie in
/// `rank` axes of `values` from `first` on. `axes` of `x` are in the order of the slots; the
/// positions name slots of these axes.
void launch_places(const Array& x, const std::vector<int>& axes, const Array& given,
                   std::size_t first, std::size_t rank, const Array& owners, const Stream& on) {
  const std::optional<std::int64_t> known = one_stride(given, first, rank);
  const Array values = known ? given : copy(given, on);
  IndexedWalk walk;
  walk.shape = x.shape();
  walk.index = owners;
  walk.owners = true;
  walk.stride = known ? *known : *one_stride(values, first, rank);
  walk.indexed_strides.assign(x.shape().size(), 0);
  walk.index_strides.assign(x.shape().size(), 0);
  auto step = static_cast<std::int64_t>(scalar_size(owners.type()));
  for (std::size_t k = axes.size(); k-- > 0;) {
    const auto axis = static_cast<std::size_t>(axes[k]);
    walk.index_strides[axis] = step;
    step *= x.shape()[axis];
  }
  std::size_t d = 0;
  for (int axis = 0; axis < x.ndim(); ++axis) {
    if (std::find(axes.begin(), axes.end(), axis) != axes.end()) continue;
    const std::size_t value_axis = d < first ? d : d + rank;
    walk.indexed_strides[static_cast<std::size_t>(axis)] = values.strides()[value_axis];
    ++d;
  }
  launch_gather(x, values, walk, on);
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
  const bool along_one = known.axes.size() == 1;
  if (repeats == Repeats::never && along_one) return launch_scatter(values, x, walk, on);
  const Shape common = known.common_shape();
  const auto first = static_cast<std::size_t>(at.position);
  const std::int64_t positions = element_count(common);
  std::int64_t places = 1;
  for (const int axis : at.axes) places *= x.shape()[static_cast<std::size_t>(axis)];
  const std::int64_t bytes =
      values.size() / positions * static_cast<std::int64_t>(scalar_size(x.type()));
  if (!visits_places(places, positions, bytes)) {
    return launch_owners(values, x, walk, first, slots_at(x, known, stream), on);
  }
  const Array numbers =
      along_one ? without_gaps(known.indices[0], stream) : slots_at(x, known, stream).numbers;
  if (values.size() == positions && can_claim(x, values)) {
    return put_claims(x, at.axes, values, numbers, on);
  }
  launch_places(x, at.axes, values, first, common.size(), mark_owners(numbers, places, on), on);
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
  if (visits_places(x.size(), index.size(), 1)) {
    std::vector<int> axes(x.shape().size());
    std::iota(axes.begin(), axes.end(), 0);
    const Array numbers = x.ndim() == 1 ? without_gaps(positions, stream)
                                        : slots_along(x, axis, positions, stream).numbers;
    if (can_claim(x, values)) return put_claims(x, axes, values, numbers, on);
    return launch_places(x, axes, values, 0, axes.size(), mark_owners(numbers, x.size(), on), on);
  }
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
