// Chooses how rows are sorted, and launches it.
#include "kernels_src/sort/sort.h"

#include "base/format.h"
#include "base/math.h"
#include "core/device.h"
#include "kernels_src/family.h"
#include "kernels_src/sort/radix_sort.h"
#include "kernels_src/sort/row_sort.cu.h"

#include <algorithm>
#include <bit>

namespace kernwright::kernels {

namespace {

constexpr std::int64_t kSortItems = 16;
constexpr std::int64_t kSortTile = kSortItems * kSortBlock;

enum class Wanted : std::uint8_t { values = 1, indices = 2, both = 3 };

bool is_wanted(Wanted wanted, Wanted part) {
  return (static_cast<int>(wanted) & static_cast<int>(part)) != 0;
}

const LazyKernel& row_kernel(ScalarType type, int items) {
  static const auto& family = *new Family("row_sort.cu", text::row_sort_cu);
  return family.instance(InstanceKey().type(type).add(items, 5), [&] {
    if (items == 0) return format("sort_short_rows<{}>", device_type(type));
    return format("sort_long_rows<{}, {}>", device_type(type), items);
  });
}

Ordered empty_results(const Rows& rows, std::int64_t keep, Wanted wanted, const Stream& stream) {
  Shape shape = rows.data.shape();
  shape.back() = keep;
  Device& device = rows.data.device();
  Ordered made;
  if (is_wanted(wanted, Wanted::values))
    made.values = Array::empty(device, shape, rows.data.type(), stream);
  if (is_wanted(wanted, Wanted::indices))
    made.indices = Array::empty(device, shape, ScalarType::int64, stream);
  return made;
}

void launch_short(const Rows& rows, std::int64_t keep, bool descending, const Ordered& to,
                  const Stream& on) {
  Device& device = rows.data.device();
  const auto length = static_cast<std::uint64_t>(rows.length);
  const auto segment = static_cast<std::int64_t>(std::bit_ceil(length));
  const std::int64_t spread_out = rows.count / (2 * multiprocessors(device)) + 1;
  const std::int64_t at_once = std::min(kShortRow / segment, spread_out);
  const LaunchConfig config = spread(device, ceil_div(rows.count, at_once) * kSortBlock, on);
  launch(row_kernel(key_bits_type(rows.data.type()), 0).on(device), config, rows.data.address(),
         to.values.address(), to.indices.address(), rows.count,
         static_cast<std::int32_t>(rows.length), static_cast<std::int32_t>(keep),
         static_cast<std::int32_t>(segment), static_cast<std::int32_t>(at_once),
         device_order(rows.data.type(), descending));
}

void launch_long(const Rows& rows, bool descending, const Ordered& to, const Stream& on) {
  Device& device = rows.data.device();
  const int items = rows.length > kSortTile / 2 ? kSortItems : kSortItems / 2;
  launch(row_kernel(key_bits_type(rows.data.type()), items).on(device),
         spread(device, rows.count * kSortBlock, on), rows.data.address(), to.values.address(),
         to.indices.address(), rows.count, static_cast<std::int32_t>(rows.length),
         device_order(rows.data.type(), descending));
}

Ordered sort_rows(const Rows& rows, bool descending, Wanted wanted, const Stream& stream) {
  Ordered made = empty_results(rows, rows.length, wanted, stream);
  if (rows.data.size() == 0) return made;
  const Stream on = stream ? stream : Stream::legacy(rows.data.device());
  if (rows.length <= kShortRow) {
    launch_short(rows, rows.length, descending, made, on);
  } else if (rows.length <= kSortTile) {
    launch_long(rows, descending, made, on);
  } else {
    radix_sort(rows, descending, made, stream, on);
  }
  use_all_on(on, {&rows.data, &made.values, &made.indices});
  return made;
}

}  // namespace

Array sort(const Array& array, int axis, bool descending, const Stream& stream) {
  require_order(array, "sort");
  const Rows rows = rows_along(array, axis, stream);
  return from_rows(sort_rows(rows, descending, Wanted::values, stream).values, rows.axis, stream);
}

Array argsort(const Array& array, int axis, bool descending, const Stream& stream) {
  require_order(array, "argsort");
  const Rows rows = rows_along(array, axis, stream);
  return from_rows(sort_rows(rows, descending, Wanted::indices, stream).indices, rows.axis, stream);
}

Ordered sort_and_index(const Array& array, int axis, bool descending, const Stream& stream) {
  require_order(array, "sort");
  const Rows rows = rows_along(array, axis, stream);
  const Ordered made = sort_rows(rows, descending, Wanted::both, stream);
  return {from_rows(made.values, rows.axis, stream), from_rows(made.indices, rows.axis, stream)};
}

Ordered sort_short(const Rows& rows, std::int64_t keep, bool descending, const Stream& stream) {
  const Stream on = stream ? stream : Stream::legacy(rows.data.device());
  Ordered made = empty_results(rows, keep, Wanted::both, stream);
  launch_short(rows, keep, descending, made, on);
  use_all_on(on, {&rows.data, &made.values, &made.indices});
  return made;
}

}  // namespace kernwright::kernels
