// Chooses between selection and sorting, and launches the levels of a selection.
#include "kernels_src/sort/topk.h"

#include "array/shape.h"
#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "kernels_src/copy/copy.h"
#include "kernels_src/family.h"
#include "kernels_src/sort/sort.h"
#include "kernels_src/sort/topk.cu.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace kernwright::kernels {

namespace {

constexpr std::int64_t kTopkTile = 4096;
constexpr std::int64_t kMostSelected = 1024;

const LazyKernel& topk_kernel(ScalarType type) {
  static const auto& family = *new Family("topk.cu", text::topk_cu);
  return family.instance(InstanceKey().type(type),
                         [&] { return format("topk_tiles<{}>", device_type(type)); });
}

Ordered select_levels(const Rows& rows, std::int64_t k, bool largest, const Stream& stream) {
  Device& device = rows.data.device();
  const Stream on = stream ? stream : Stream::legacy(device);
  Shape shape = rows.data.shape();
  shape.back() = k;
  const Ordered made{Array::empty(device, shape, rows.data.type(), stream),
                     Array::empty(device, shape, ScalarType::int64, stream)};
  const auto keep = static_cast<std::int32_t>(k);
  const auto segment = static_cast<std::int32_t>(std::bit_ceil(static_cast<std::uint64_t>(k)));
  const auto index_bits =
      static_cast<std::int32_t>(std::bit_width(static_cast<std::uint64_t>(rows.length - 1)));
  Array candidates;
  for (std::int64_t count = rows.length;;) {
    const auto tiles = static_cast<std::int32_t>((count + kTopkTile - 1) / kTopkTile);
    const std::int64_t last = count - (tiles - 1) * kTopkTile;
    const std::int64_t found_count = (tiles - 1) * k + std::min(k, last);
    const Array found =
        tiles > 1 ? Array::empty(device, {rows.count, found_count}, ScalarType::uint32, stream)
                  : Array();
    const LaunchConfig config = blocks_of(rows.count * tiles, on);
    launch(topk_kernel(bits_of(rows.data.type())).on(device), config, rows.data.address(),
           candidates.address(), found.address(), made.values.address(), made.indices.address(),
           rows.length, count, found_count, tiles, keep, segment, index_bits,
           order_of(rows.data.type(), largest));
    use_all_on(on, {&candidates, &found});
    if (tiles == 1) break;
    candidates = found;
    count = found_count;
  }
  use_all_on(on, {&rows.data, &made.values, &made.indices});
  return made;
}

Ordered sort_and_cut(const Rows& rows, std::int64_t k, bool largest, const Stream& stream) {
  const Ordered all = sort_with_indices(rows.data, -1, largest, stream);
  const int axis = all.values.ndim() - 1;
  return {without_gaps(all.values.slice(axis, 0, k, 1), stream),
          without_gaps(all.indices.slice(axis, 0, k, 1), stream)};
}

Ordered topk_rows(const Rows& rows, std::int64_t k, bool largest, const Stream& stream) {
  Device& device = rows.data.device();
  if (k == 0 || rows.count == 0) {
    Shape shape = rows.data.shape();
    shape.back() = k;
    return {Array::empty(device, shape, rows.data.type(), stream),
            Array::empty(device, shape, ScalarType::int64, stream)};
  }
  if (rows.length <= kShortRow) return sort_short(rows, k, largest, stream);
  if (k > kMostSelected || rows.length > std::numeric_limits<std::uint32_t>::max())
    return sort_and_cut(rows, k, largest, stream);
  return select_levels(rows, k, largest, stream);
}

}  // namespace

Ordered topk(const Array& array, std::int64_t k, int axis, bool largest, const Stream& stream) {
  require_order(array, "topk");
  const int along = normalize_axis(axis, array.ndim());
  const std::int64_t extent = array.shape()[static_cast<std::size_t>(along)];
  if (k < 0 || k > extent) {
    throw InvalidArgument(
        format("topk() got k = {}, which must be from 0 to {}, the extent of axis {} "
               "of an array of shape {}",
               k, extent, axis, shape_to_string(array.shape())));
  }
  const Rows rows = rows_along(array, along, stream);
  const Ordered made = topk_rows(rows, k, largest, stream);
  return {from_rows(made.values, rows.axis, stream), from_rows(made.indices, rows.axis, stream)};
}

}  // namespace kernwright::kernels
