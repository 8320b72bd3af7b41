// A sort, then one launch that adds.
#include "kernels_src/index/segment_add.h"

#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "kernels_src/copy/copy.h"
#include "kernels_src/family.h"
#include "kernels_src/index/segment_add.cu.h"
#include "kernels_src/operands.h"
#include "kernels_src/sort/sort.h"

namespace kernwright::kernels {

namespace {

constexpr std::uint32_t kSegmentThreads = 256;

const LazyKernel& segment_add_kernel(ScalarType type, int width) {
  static const auto& family = *new Family("segment_add.cu", text::segment_add_cu);
  return family.instance(InstanceKey().type(type).add(width, 5),
                         [&] { return format("add_segments<{}, {}>", device_type(type), width); });
}

/// Elements of a slot's row that a thread takes: 16 bytes where rows are neighbours and aligned.
int segment_width(const Array& x, const Array& values, const Slots& slots, const WalkPlan<1>& row) {
  const auto item = static_cast<std::int64_t>(scalar_size(x.type()));
  if (row.dims.size() != 1 || row.dims.front().stride[0] != item) return 1;
  auto bits = x.address() | values.address() | static_cast<std::uint64_t>(row.count() * item);
  for (const WalkDim<1>& axis : slots.space.axes)
    bits |= static_cast<std::uint64_t>(axis.stride[0]);
  return pack_width(x.type(), {bits});
}

}  // namespace

void add_segments(const Array& x, const Array& given, const Slots& slots, const WalkPlan<1>& row,
                  const Stream& stream) {
  if (x.type() == ScalarType::boolean) {
    throw InvalidArgument(
        format("numbers can be added, {} has none: convert it with .astype()", x.identify()));
  }
  if (row.dims.size() > kWalkDims) {
    throw InvalidArgument(
        format("{} has more than {} axes that are no plain row: add to a "
               "contiguous copy of it",
               x.identify(), kWalkDims));
  }
  Device& device = x.device();
  const Stream on = stream ? stream : Stream::legacy(device);
  const bool as_it_is = given.is_contiguous() && !may_overlap(x, given);
  const Array values = as_it_is ? given : copy(given, on);
  const std::int64_t rows = slots.numbers.size();
  const Ordered entries = sort_and_index(slots.numbers.reshape({rows}), 0, false, on);
  const int width = segment_width(x, values, slots, row);
  const LaunchConfig config{.grid = {walk_blocks(values.size() / width, kSegmentThreads)},
                            .block = {kSegmentThreads},
                            .stream = on};
  launch(segment_add_kernel(x.type(), width).on(device), config, x.address(), values.address(),
         entries.values.address(), entries.indices.address(), row.parameter(),
         slot_axes(slots.space.axes), slots.space.count, row.count() / width, rows);
  use_all_on(on, {&x, &values, &entries.values, &entries.indices});
}

}  // namespace kernwright::kernels
