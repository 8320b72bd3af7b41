// Chooses between selection and sorting, and launches selections.
#include "kernels_src/sort/topk.h"

#include "array/shape.h"
#include "base/errors.h"
#include "base/format.h"
#include "base/math.h"
#include "core/device.h"
#include "kernels_src/copy/copy.h"
#include "kernels_src/family.h"
#include "kernels_src/sort/sort.h"
#include "kernels_src/sort/topk.cu.h"
#include "kernels_src/zeroed_words.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace kernwright::kernels {

namespace {

constexpr std::int64_t kTopkTile = 4096;
constexpr std::int64_t kMostSelected = 1024;
/// Up to this k the first elements of threads bound those of a block.
constexpr std::int64_t kMostBounded = 128;
constexpr int kBoundedThreads = 512;
/// Candidates beside those of a chunk.
constexpr std::int64_t kFull = 512;
/// Segments of long rows are few for large k. With less than one in so many of the blocks that the
/// device holds, or of the chunks that rows have, levels of selection take them.
constexpr std::int64_t kLeastShare = 4;

const Family& topk_family() {
  static const auto& family = *new Family("topk.cu", text::topk_cu);
  return family;
}

const LazyKernel& topk_kernel(ScalarType type) {
  return topk_family().instance(InstanceKey().type(type).add(0, 4).add(0, 4),
                                [&] { return format("topk_tiles<{}>", device_type(type)); });
}

/// How rows are split among the blocks of topk_segments().
struct SegmentPlan {
  int pack = 1, packs = 1;  ///< elements of a pack, packs of a thread
  std::int32_t segments = 1;
  std::int64_t segment = 0;  ///< elements
  bool fills = true;         ///< whether they keep the device busy, where there is work for it
};

SegmentPlan plan_segments(const Rows& rows, std::int64_t k) {
  const auto size = static_cast<std::int64_t>(scalar_size(rows.data.type()));
  const int each = size == 8 ? 2 : 8;  // elements of a thread
  SegmentPlan plan{.pack = static_cast<int>(std::min<std::int64_t>(16 / size, each))};
  const auto bytes = static_cast<std::uint64_t>(plan.pack * size);
  if (rows.data.address() % bytes != 0 || rows.length % plan.pack != 0) plan.pack = 1;
  plan.packs = each / plan.pack;
  const std::int64_t chunk = std::int64_t{kBoundedThreads} * each;
  const std::int64_t resident = std::int64_t{2} * multiprocessors(rows.data.device());
  const std::int64_t chunks = ceil_div(rows.length, chunk);
  const std::int64_t wanted =
      std::clamp<std::int64_t>(resident / rows.count, 1, std::min((kFull + chunk) / k, chunks));
  plan.segment = (ceil_div(rows.length, wanted) + 15) / 16 * 16;
  plan.segments = static_cast<std::int32_t>(ceil_div(rows.length, plan.segment));
  plan.fills = kLeastShare * rows.count * plan.segments >= std::min(resident, rows.count * chunks);
  return plan;
}

const LazyKernel& segments_kernel(ScalarType bits, const SegmentPlan& plan) {
  const auto key = InstanceKey().type(bits).add(plan.pack, 4).add(plan.packs, 4);
  return topk_family().instance(key, [&] {
    return format("topk_segments<{}, {}, {}>", device_type(bits), plan.pack, plan.packs);
  });
}

/// For k up to kMostBounded, in one launch.
Ordered select_segments(const Rows& rows, const SegmentPlan& plan, std::int64_t k, bool largest,
                        const Stream& stream) {
  Device& device = rows.data.device();
  const Stream on = stream ? stream : Stream::legacy(device);
  Shape shape = rows.data.shape();
  shape.back() = k;
  const Ordered made{Array::empty(device, shape, rows.data.type(), stream),
                     Array::empty(device, shape, ScalarType::int64, stream)};
  const ScalarType bits = key_bits_type(rows.data.type());
  const std::int64_t entry = bits == ScalarType::uint64 ? 16 : 8;
  const std::int64_t blocks = rows.count * plan.segments;
  Array finds, words;
  if (plan.segments > 1) {
    finds = Array::empty(device, {blocks * k * entry}, ScalarType::uint8, stream);
    words = zeroed_words(static_cast<std::size_t>(rows.count), on);
  }
  LaunchConfig config = block_config(blocks, on);
  config.block = {static_cast<std::uint32_t>(kBoundedThreads)};
  const auto index_bits =
      static_cast<std::int32_t>(std::bit_width(static_cast<std::uint64_t>(rows.length - 1)));
  launch(segments_kernel(bits, plan).on(device), config, rows.data.address(), finds.address(),
         made.values.address(), made.indices.address(), words.address(), rows.length, plan.segment,
         plan.segments, static_cast<std::int32_t>(k), index_bits,
         device_order(rows.data.type(), largest));
  use_all_on(on, {&finds, &words, &rows.data, &made.values, &made.indices});
  return made;
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
    const auto tiles = static_cast<std::int32_t>(ceil_div(count, kTopkTile));
    const std::int64_t last = count - (tiles - 1) * kTopkTile;
    const std::int64_t found_count = (tiles - 1) * k + std::min(k, last);
    const Array found =
        tiles > 1 ? Array::empty(device, {rows.count, found_count}, ScalarType::uint32, stream)
                  : Array();
    const LaunchConfig config = block_config(rows.count * tiles, on);
    launch(topk_kernel(key_bits_type(rows.data.type())).on(device), config, rows.data.address(),
           candidates.address(), found.address(), made.values.address(), made.indices.address(),
           rows.length, count, found_count, tiles, keep, segment, index_bits,
           device_order(rows.data.type(), largest));
    use_all_on(on, {&candidates, &found});
    if (tiles == 1) break;
    candidates = found;
    count = found_count;
  }
  use_all_on(on, {&rows.data, &made.values, &made.indices});
  return made;
}

Ordered sort_and_cut(const Rows& rows, std::int64_t k, bool largest, const Stream& stream) {
  const Ordered all = sort_and_index(rows.data, -1, largest, stream);
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
  if (k <= kMostBounded) {
    const SegmentPlan plan = plan_segments(rows, k);
    if (plan.fills) return select_segments(rows, plan, k, largest, stream);
  }
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
