// Shapes of selections, walks over them, and their launches.
#include "kernels_src/index/indexed_walk.h"

#include "array/shape.h"
#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "kernels_src/cast/cast.h"
#include "kernels_src/family.h"
#include "kernels_src/index/gather.cu.h"

#include <algorithm>

namespace kernwright::kernels {

namespace {

constexpr std::uint32_t kMoveBlock = 256;
constexpr std::int64_t kMoveUnroll = 4;
enum class MovePlace : std::uint8_t { int32, int64, offset, owner32, owner64 };

MovePlace move_place(const IndexedWalk& walk) {
  const bool narrow = scalar_size(walk.index.type()) == 4;
  if (walk.offsets) return MovePlace::offset;
  if (walk.owners) return narrow ? MovePlace::owner32 : MovePlace::owner64;
  return narrow ? MovePlace::int32 : MovePlace::int64;
}

const LazyKernel& move_kernel(bool scatter, int log2_unit, MovePlace place, bool wide) {
  static const auto& family = *new Family("gather.cu", text::gather_cu);
  const InstanceKey key =
      InstanceKey().add(scatter, 1).add(log2_unit, 3).add(place, 3).add(wide, 1);
  return family.instance(key, [&] {
    constexpr std::array units = {"UInt8", "UInt16", "UInt32", "UInt64", "Unit16"};
    constexpr std::array positions = {"Int32", "Int64", "Int64", "UInt32", "UInt64"};
    const char* const position = positions[static_cast<std::size_t>(place)];
    const char* const kind = place >= MovePlace::owner32 ? "Owned"
                             : scatter                   ? "Checked"
                                                         : "Clamped";
    const std::string rule =
        place == MovePlace::offset ? "Offset" : format("{}<{}>", kind, position);
    return format("{}<{}, {}, {}, {}>", scatter ? "scatter" : "gather",
                  units[static_cast<std::size_t>(log2_unit)], position, rule,
                  wide ? "UInt64" : "UInt32");
  });
}

void launch_move(bool scatter, const Array& plain, const Array& x, const IndexedWalk& walk,
                 const Stream& on) {
  WalkPlan<3> plan{.base = {plain.address(), x.address(), walk.index.address()}, .dims = {}};
  const auto item = static_cast<std::int64_t>(scalar_size(x.type()));
  plan.add(item, {1, 1, 0});
  for (std::size_t d = walk.shape.size(); d-- > 0;) {
    plan.add(walk.shape[d], {plain.strides()[d], walk.indexed_strides[d], walk.index_strides[d]});
  }
  constexpr std::array<std::size_t, 2> kMoved = {0, 1};
  const int log2_unit =
      plan.widen_unit(kMoved, walk.alignment | static_cast<std::uint64_t>(walk.stride));
  const MovePlace place = move_place(walk);
  plan.for_each_part([&](const WalkPlan<3>& part) {
    const std::int64_t count = part.count();
    const bool wide = is_wide(count);
    const LaunchConfig config{.grid = {walk_blocks(count, kMoveBlock * kMoveUnroll)},
                              .block = {kMoveBlock},
                              .stream = on};
    const Kernel& kernel = move_kernel(scatter, log2_unit, place, wide).on(x.device());
    const auto send = [&](auto units) {
      launch(kernel, config, part.base[0], part.base[1], part.base[2], part.parameter(),
             walk.extent, walk.stride, units);
    };
    wide ? send(static_cast<std::uint64_t>(count)) : send(static_cast<std::uint32_t>(count));
  });
  plain.use_on(on);
  x.use_on(on);
  walk.index.use_on(on);
}

bool is_index_type(ScalarType type) { return is_signed_integer(type) || is_unsigned_integer(type); }

void require_index(const Array& x, const Array& index) {
  if (&x.device() != &index.device()) {
    throw InvalidArgument(
        format("positions must be on the same device: {} indexes {}; copy one "
               "with .to(device)",
               index.identify(), x.identify()));
  }
  if (!is_index_type(index.type())) {
    throw InvalidArgument(format(
        "positions are integers, got {}: convert it with .astype(\"int64\")", index.identify()));
  }
}

/// The remaining axes of `x` in order.
std::vector<int> other_axes(const Array& x, const std::vector<int>& axes) {
  std::vector<int> others;
  for (int axis = 0; axis < x.ndim(); ++axis) {
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) others.push_back(axis);
  }
  return others;
}

}  // namespace

Shape broadcast_strides(const Array& array, const Shape& shape) {
  Shape strides(shape.size(), 0);
  const std::size_t missing = shape.size() - array.shape().size();
  for (std::size_t d = 0; d < array.shape().size(); ++d) {
    if (array.shape()[d] != 1) strides[missing + d] = array.strides()[d];
  }
  return strides;
}

Shape IndexedAxes::common_shape() const {
  Shape common;
  for (const Array& index : indices) {
    const Shape& shape = index.shape();
    if (shape.size() > common.size())
      common.insert(common.begin(), shape.size() - common.size(), 1);
    const std::size_t missing = common.size() - shape.size();
    for (std::size_t d = 0; d < shape.size(); ++d) {
      std::int64_t& extent = common[missing + d];
      if (extent == 1) {
        extent = shape[d];
      } else if (shape[d] != 1 && shape[d] != extent) {
        throw InvalidArgument(
            format("Incompatible dimensions: index arrays of shapes {} and {} do "
                   "not broadcast to one shape",
                   shape_to_string(indices[0].shape()), shape_to_string(shape)));
      }
    }
  }
  return common;
}

Shape IndexedAxes::result_shape(const Array& x) const {
  if (axes.empty() || axes.size() != indices.size()) {
    throw InvalidArgument(
        format("{} axes and {} index arrays: one is needed for each, and one at "
               "least",
               axes.size(), indices.size()));
  }
  std::vector<bool> seen(x.shape().size(), false);
  for (const int axis : axes) {
    if (axis < 0 || axis >= x.ndim() || seen[static_cast<std::size_t>(axis)]) {
      throw InvalidArgument(
          format("axis {} is indexed twice or is none of {}", axis, x.identify()));
    }
    seen[static_cast<std::size_t>(axis)] = true;
  }
  for (const Array& index : indices) require_index(x, index);
  Shape shape;
  for (const int axis : other_axes(x, axes))
    shape.push_back(x.shape()[static_cast<std::size_t>(axis)]);
  if (position < 0 || position > static_cast<int>(shape.size())) {
    throw InvalidArgument(format("the selection cannot stand at axis {} of {} remaining axes",
                                 position, shape.size()));
  }
  const Shape common = common_shape();
  shape.insert(shape.begin() + position, common.begin(), common.end());
  for (const int axis : axes) {
    if (x.shape()[static_cast<std::size_t>(axis)] == 0 && element_count(common) > 0) {
      throw InvalidArgument(
          format("there is no element to index along axis {} of {}", axis, x.identify()));
    }
  }
  return shape;
}

IndexedWalk walk_at(const Array& x, const IndexedAxes& at) {
  const Shape common = at.common_shape();
  IndexedWalk walk;
  walk.shape = at.result_shape(x);
  for (const int axis : other_axes(x, at.axes)) {
    walk.indexed_strides.push_back(x.strides()[static_cast<std::size_t>(axis)]);
  }
  walk.index_strides.assign(walk.indexed_strides.size(), 0);
  walk.index = at.indices[0];
  const Shape strides = broadcast_strides(walk.index, common);
  walk.indexed_strides.insert(walk.indexed_strides.begin() + at.position, common.size(), 0);
  walk.index_strides.insert(walk.index_strides.begin() + at.position, strides.begin(),
                            strides.end());
  const auto axis = static_cast<std::size_t>(at.axes[0]);
  walk.extent = x.shape()[axis];
  walk.stride = x.strides()[axis];
  for (const int each : at.axes) {
    walk.alignment |= static_cast<std::uint64_t>(x.strides()[static_cast<std::size_t>(each)]);
  }
  return walk;
}

IndexedWalk walk_along(const Array& x, int axis, const Array& index) {
  require_index(x, index);
  axis = normalize_axis(axis, x.ndim());
  bool fits = index.ndim() == x.ndim();
  for (int d = 0; fits && d < x.ndim(); ++d) {
    const auto at = static_cast<std::size_t>(d);
    fits = d == axis || index.shape()[at] <= x.shape()[at];
  }
  if (!fits) {
    throw InvalidArgument(
        format("Incompatible dimensions: the index of shape {} needs as many axes as the array of "
               "shape {}, none longer but axis {}",
               shape_to_string(index.shape()), shape_to_string(x.shape()), axis));
  }
  const auto at = static_cast<std::size_t>(axis);
  IndexedWalk walk;
  walk.shape = index.shape();
  walk.indexed_strides = x.strides();
  walk.indexed_strides[at] = 0;
  walk.index_strides = index.strides();
  walk.index = index;
  walk.extent = x.shape()[at];
  walk.stride = x.strides()[at];
  if (walk.extent == 0 && index.size() > 0) {
    throw InvalidArgument(
        format("there is no element to index along axis {} of {}", axis, x.identify()));
  }
  return walk;
}

Array as_positions(const Array& index, const Stream& stream) {
  const bool known = index.type() == ScalarType::int32 || index.type() == ScalarType::int64;
  return known ? index : cast(index, ScalarType::int64, stream);
}

void launch_gather(const Array& to, const Array& x, const IndexedWalk& walk, const Stream& on) {
  launch_move(false, to, x, walk, on);
}

void launch_scatter(const Array& values, const Array& x, const IndexedWalk& walk,
                    const Stream& on) {
  launch_move(true, values, x, walk, on);
}

}  // namespace kernwright::kernels
