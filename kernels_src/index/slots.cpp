// Positions along axes become slots, and slots the offsets of their owners.
#include "array/shape.h"
#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "kernels_src/copy/copy.h"
#include "kernels_src/family.h"
#include "kernels_src/index/indexed_walk.h"
#include "kernels_src/index/positions.h"
#include "kernels_src/index/running_total.h"
#include "kernels_src/index/slots.cu.h"
#include "memory/transfer.h"

#include <limits>

namespace kernwright::kernels {

namespace {

constexpr std::uint32_t kSlotsBlock = 256;

const Family& slots_family() {
  static const auto& family = *new Family("slots.cu", text::slots_cu);
  return family;
}

enum class SlotKernel : std::uint8_t { add, mark, owners, outside, split, mark_narrow };

const LazyKernel& slots_add_kernel(bool narrow_index, bool wide) {
  return slots_family().instance(
      InstanceKey().add(SlotKernel::add, 3).add(narrow_index, 1).add(wide, 1), [&] {
        return format("add_positions<{}, {}>", narrow_index ? "Int32" : "Int64",
                      wide ? "UInt64" : "UInt32");
      });
}

const LazyKernel& slots_owner_kernel(SlotKernel kind, bool wide) {
  return slots_family().instance(InstanceKey().add(kind, 3).add(wide, 2), [&] {
    const char* const number = wide ? "UInt64" : "UInt32";
    if (kind == SlotKernel::owners) return format("owners_offsets<{}>", number);
    const bool narrow = kind == SlotKernel::mark_narrow;
    return format("mark_owners<{}, {}>", narrow ? "Int32" : "Int64", number);
  });
}

LaunchConfig over_slots(std::int64_t count, const Stream& on) {
  return {.grid = {walk_blocks(count, kSlotsBlock)}, .block = {kSlotsBlock}, .stream = on};
}

/// Row-major numbering of the extents.
std::vector<std::int64_t> row_major_numbers(const std::vector<std::int64_t>& extents) {
  std::vector<std::int64_t> multipliers(extents.size(), 1);
  for (std::size_t i = extents.size(); i-- > 1;) {
    multipliers[i - 1] = multipliers[i] * extents[i];
  }
  return multipliers;
}

}  // namespace

SlotAxes slot_axes(const std::vector<WalkDim<1>>& axes) {
  if (axes.size() > kMaxSlotAxes) {
    throw InvalidArgument(
        format("an array is indexed along {} axes that are no plain row; {} are "
               "possible: copy the array first",
               axes.size(), kMaxSlotAxes));
  }
  SlotAxes parameter{};
  for (const WalkDim<1>& axis : axes) {
    parameter.extent[parameter.count] = axis.extent;
    parameter.stride[parameter.count] = axis.stride[0];
    ++parameter.count;
  }
  return parameter;
}

Array positions_to_slots(Device& device, const SlotRule& rule, const Stream& stream) {
  const Stream on = stream ? stream : Stream::legacy(device);
  Array result = Array::empty(device, rule.shape, ScalarType::int64, stream);
  if (result.size() == 0) return result;
  for (std::size_t k = 0; k < rule.indices.size(); ++k) {
    const Array index = as_positions(rule.indices[k], stream);
    const Shape strides = broadcast_strides(index, rule.shape);
    const bool based = k == 0 && !rule.base_strides.empty();
    WalkPlan<3> plan{.base = {result.address(), 0, index.address()}, .dims = {}};
    for (std::size_t d = rule.shape.size(); d-- > 0;) {
      plan.add(rule.shape[d], {result.strides()[d], based ? rule.base_strides[d] : 0, strides[d]});
    }
    plan.for_each_part([&](const WalkPlan<3>& part) {
      const std::int64_t count = part.count();
      const bool wide = is_wide(count);
      const Kernel& kernel = slots_add_kernel(index.type() == ScalarType::int32, wide).on(device);
      const auto send = [&](auto units) {
        launch(kernel, over_slots(count, on), part.base[0], static_cast<std::int64_t>(part.base[1]),
               part.base[2], part.parameter(), rule.extents[k], rule.multipliers[k], rule.outside,
               rule.clamp, k == 0, units);
      };
      wide ? send(static_cast<std::uint64_t>(count)) : send(static_cast<std::uint32_t>(count));
    });
    index.use_on(on);
  }
  result.use_on(on);
  return result;
}

Slots slots_at(const Array& x, const IndexedAxes& at, const Stream& stream) {
  SlotRule rule{.shape = at.common_shape(),
                .indices = at.indices,
                .extents = {},
                .multipliers = {},
                .base_strides = {}};
  Slots slots;
  for (const int axis : at.axes) rule.extents.push_back(x.shape()[static_cast<std::size_t>(axis)]);
  slots.space.count = element_count(rule.extents);
  WalkPlan<1> axes;
  for (std::size_t k = at.axes.size(); k-- > 0;) {
    axes.add(rule.extents[k], {x.strides()[static_cast<std::size_t>(at.axes[k])]});
  }
  slots.space.axes = std::move(axes.dims);
  rule.multipliers = row_major_numbers(rule.extents);
  rule.outside = slots.space.count;
  slots.numbers = positions_to_slots(x.device(), rule, stream);
  return slots;
}

Slots slots_along(const Array& x, int axis, const Array& index, const Stream& stream) {
  const auto at = static_cast<std::size_t>(normalize_axis(axis, x.ndim()));
  Shape numbering = row_major_numbers(x.shape());
  SlotRule rule{.shape = index.shape(),
                .indices = {index},
                .extents = {x.shape()[at]},
                .multipliers = {numbering[at]},
                .base_strides = numbering};
  rule.base_strides[at] = 0;
  Slots slots;
  slots.space.count = x.size();
  WalkPlan<1> axes;
  for (std::size_t d = x.shape().size(); d-- > 0;) axes.add(x.shape()[d], {x.strides()[d]});
  slots.space.axes = std::move(axes.dims);
  rule.outside = slots.space.count;
  slots.numbers = positions_to_slots(x.device(), rule, stream);
  return slots;
}

Array mark_owners(const Array& positions, std::int64_t slots, const Stream& on) {
  Device& device = positions.device();
  const std::int64_t count = positions.size();
  const bool wide = count >= std::numeric_limits<std::uint32_t>::max();
  const bool narrow = positions.type() == ScalarType::int32;
  Array owner = Array::empty(device, {slots}, wide ? ScalarType::uint64 : ScalarType::uint32, on);
  fill(device, owner.address(), 0, scalar_size(owner.type()), static_cast<std::size_t>(slots), on);
  const SlotKernel kind = narrow ? SlotKernel::mark_narrow : SlotKernel::mark;
  launch(slots_owner_kernel(kind, wide).on(device), over_slots(count, on), positions.address(),
         owner.address(), slots, count);
  positions.use_on(on);
  owner.use_on(on);
  return owner;
}

Array owners_offsets(const Slots& slots, const Stream& on) {
  const Array& numbers = slots.numbers;
  Device& device = numbers.device();
  const std::int64_t count = numbers.size();
  const SlotAxes axes = slot_axes(slots.space.axes);
  const Array owner = mark_owners(numbers, slots.space.count, on);
  const bool wide = owner.type() == ScalarType::uint64;
  Array offsets = Array::empty(device, numbers.shape(), ScalarType::int64, on);
  launch(slots_owner_kernel(SlotKernel::owners, wide).on(device), over_slots(count, on),
         numbers.address(), owner.address(), offsets.address(), axes, slots.space.count, count);
  for (const Array* const used : {&numbers, &owner, &static_cast<const Array&>(offsets)}) {
    used->use_on(on);
  }
  return offsets;
}

std::int64_t count_outside(const Array& index, std::int64_t extent, const Stream& stream) {
  if (index.size() == 0) return 0;
  Device& device = index.device();
  const Stream on = stream ? stream : Stream::legacy(device);
  Array positions = as_positions(index, stream);
  if (!positions.is_contiguous()) positions = copy(positions, stream);
  const Array outside = Array::empty(device, {1}, ScalarType::int64, stream);
  fill(device, outside.address(), 0, 8, 1, on);
  const bool narrow = positions.type() == ScalarType::int32;
  const LazyKernel& kernel = slots_family().instance(
      InstanceKey().add(SlotKernel::outside, 3).add(narrow, 2),
      [&] { return format("count_outside<{}>", narrow ? "Int32" : "Int64"); });
  launch(kernel.on(device), over_slots(index.size(), on), positions.address(), extent,
         outside.address(), index.size());
  positions.use_on(on);
  outside.use_on(on);
  return read_number(outside, on);
}

Array split_positions(const Array& given, const Shape& shape, const Stream& stream) {
  Device& device = given.device();
  const Stream on = stream ? stream : Stream::legacy(device);
  const Array positions = given.is_contiguous() ? given : copy(given, stream);
  const auto ndim = static_cast<std::int64_t>(shape.size());
  Array result = Array::empty(device, {ndim, positions.size()}, ScalarType::int64, stream);
  if (result.size() == 0) return result;
  std::vector<WalkDim<1>> axes;
  for (std::size_t d = shape.size(); d-- > 0;) axes.push_back({shape[d], {0}});
  const LazyKernel& kernel =
      slots_family().instance(InstanceKey().add(SlotKernel::split, 3).add(0, 2),
                              [] { return std::string("split_positions"); });
  launch(kernel.on(device), over_slots(positions.size(), on), positions.address(), result.address(),
         slot_axes(axes), positions.size());
  positions.use_on(on);
  result.use_on(on);
  return result;
}

}  // namespace kernwright::kernels
