// The sort's passes, then one launch that adds.
#include "kernels_src/index/segment_add.h"

#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "kernels_src/copy/copy.h"
#include "kernels_src/family.h"
#include "kernels_src/index/running_total.h"
#include "kernels_src/index/segment_add.cu.h"
#include "kernels_src/operands.h"

#include <bit>
#include <string>
#include <utility>

namespace kernwright::kernels {

namespace {

constexpr std::uint32_t kSegmentThreads = 256;
constexpr std::int64_t kSegmentTile = 1024;
constexpr std::int64_t kSegmentDigits = 256;
constexpr int kSegmentDigitBits = 8;

enum class SegmentStep : std::uint8_t { make, count, place, add };

const Family& segment_family() {
  static const auto& family = *new Family("segment_add.cu", text::segment_add_cu);
  return family;
}

const LazyKernel& segment_sort_kernel(SegmentStep step, const char* name) {
  return segment_family().instance(InstanceKey().add(step, 2).add(0, 10),
                                   [&] { return std::string(name); });
}

const LazyKernel& segment_add_kernel(ScalarType type, int width) {
  return segment_family().instance(
      InstanceKey().add(SegmentStep::add, 2).type(type).add(width, 5),
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

/// Entries of (slot, row), both int64, sorted by slot; equal slots in the order of the rows.
Array sorted_entries(const Slots& slots, const Stream& on) {
  Device& device = slots.numbers.device();
  const std::int64_t count = slots.numbers.size();
  const auto blocks = (count + kSegmentTile - 1) / kSegmentTile;
  const auto grid = [&](std::int64_t each) {
    return LaunchConfig{.grid = {static_cast<std::uint32_t>((count + each - 1) / each)},
                        .block = {kSegmentThreads},
                        .stream = on};
  };
  Array entries = Array::empty(device, {count, 2}, ScalarType::int64, on);
  Array sorted = Array::empty(device, {count, 2}, ScalarType::int64, on);
  const Array counts = Array::empty(device, {kSegmentDigits * blocks}, ScalarType::int64, on);
  launch(segment_sort_kernel(SegmentStep::make, "make_entries").on(device), grid(kSegmentThreads),
         slots.numbers.address(), entries.address(), count);
  const int bits = std::bit_width(static_cast<std::uint64_t>(slots.space.count));
  for (int shift = 0; shift < bits; shift += kSegmentDigitBits) {
    launch(segment_sort_kernel(SegmentStep::count, "count_digits").on(device), grid(kSegmentTile),
           entries.address(), counts.address(), shift, count);
    running_total(counts, on);
    launch(segment_sort_kernel(SegmentStep::place, "place_entries").on(device), grid(kSegmentTile),
           entries.address(), sorted.address(), counts.address(), shift, count);
    std::swap(entries, sorted);
  }
  for (const Array* const used : {&std::as_const(entries), &std::as_const(sorted), &counts}) {
    used->use_on(on);
  }
  slots.numbers.use_on(on);
  return entries;
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
  const Array entries = sorted_entries(slots, on);
  const std::int64_t rows = slots.numbers.size();
  const int width = segment_width(x, values, slots, row);
  const LaunchConfig config{.grid = {walk_blocks(values.size() / width, kSegmentThreads)},
                            .block = {kSegmentThreads},
                            .stream = on};
  launch(segment_add_kernel(x.type(), width).on(device), config, x.address(), values.address(),
         entries.address(), row.parameter(), slot_axes(slots.space.axes), slots.space.count,
         row.count() / width, rows);
  for (const Array* const used : {&x, &values, &entries}) used->use_on(on);
}

}  // namespace kernwright::kernels
