// The one place that decides how many threads take a row, and how much each of them.
#include "kernels_src/row_plan.h"

#include "array/shape.h"
#include "base/errors.h"
#include "base/format.h"
#include "base/math.h"
#include "kernels_src/plans/planned_rows.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

namespace kernwright::kernels {
namespace {

constexpr std::int64_t kMostBlocks = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kLongRow = 16384;
/// Below it a row is read by fewer threads, so that more rows are in flight.
constexpr int kNarrowestWidth = 8;

/// Up to so many threads of a row, a thread holds more packs before the row gets more threads:
/// several rows of a multiprocessor overlap, and few rows need more overlapping loads each.
constexpr std::int64_t kManyRowsThreads = 256, kFewRowsThreads = 512;
constexpr std::int64_t kMostThreads = 1024;
constexpr int kMostClusterBlocks = 8;            // of any device with clusters
constexpr std::int64_t kLeastClusterPacks = 64;  // every block has some

/// Threads, of whole warps, for that many packs with `items` each.
std::int64_t whole_warps(std::int64_t packs, std::int64_t items) {
  return ceil_div(ceil_div(packs, items), 32) * 32;
}

int multiprocessor_count(const Device& device) {
  return device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
}

}  // namespace

bool is_computed(ScalarType type) noexcept {
  return type == ScalarType::float16 || type == ScalarType::bfloat16 ||
         type == ScalarType::float32 || type == ScalarType::float64;
}

void require_computed(const Array& array, const char* what, const char* name) {
  if (is_computed(array.type())) return;
  throw InvalidArgument(
      format("{} takes float16, bfloat16, float32 or float64, and {} is a {}; convert it with "
             "{}.astype(\"float32\")",
             what, name, array.identify(), name));
}

std::optional<Walk<2>> pair_rows(const Array& first, const Array& second, int inner_dims) {
  WalkPlan<2> rows;
  for (int d = first.ndim() - inner_dims; d-- > 0;) {
    const auto axis = static_cast<std::size_t>(d);
    rows.add(first.shape()[axis], {first.strides()[axis], second.strides()[axis]});
  }
  if (rows.dims.size() > kWalkDims) return std::nullopt;
  return rows.parameter();
}

int common_pack(std::int64_t n, std::initializer_list<const Array*> arrays, int inner_dims) {
  std::size_t pack = 16;
  for (const Array* const array : arrays) {
    const std::size_t size = scalar_size(array->type());
    std::uint64_t bits = array->address() | static_cast<std::uint64_t>(n) * size;
    for (int d = 0; d < array->ndim() - inner_dims; ++d) {
      const auto axis = static_cast<std::size_t>(d);
      if (array->shape()[axis] > 1) bits |= static_cast<std::uint64_t>(array->strides()[axis]);
    }
    const std::size_t aligned = std::size_t{1} << std::countr_zero(bits | 16);
    pack = std::min(pack, aligned / size);
  }
  return static_cast<int>(pack);
}

std::uint32_t RowTile::blocks(std::int64_t count) const noexcept {
  return static_cast<std::uint32_t>(std::min(ceil_div(count, rows()), kMostBlocks));
}

RowTile tile_rows(std::int64_t n, int pack, int values, int max_threads) {
  const std::int64_t packs = n / pack;
  RowTile tile{.pack = pack};
  const std::int64_t usual = std::max(1, values / pack), most = std::max(1, 2 * values / pack);
  while (tile.width < kNarrowestWidth && packs > tile.width) tile.width *= 2;
  while (tile.width < 32 && packs > tile.width * usual) tile.width *= 2;
  if (packs > 32 * most) {
    tile.width = 128;
    while (tile.width < max_threads && packs > tile.width * usual) tile.width *= 2;
  }
  tile.threads = std::max(128, tile.width);
  const std::int64_t items = ceil_div(packs, tile.width);
  if (items <= most) {
    tile.items = static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(items)));
  }
  return tile;
}

RowTile tile_rows_by_warps(const Device& device, RowExtent extent, int pack, int values) {
  const RowTile tile = tile_rows(extent.n, pack, values);
  if (tile.width <= 32) return tile;
  const std::int64_t packs = extent.n / pack, most = std::max(1, 2 * values / pack);
  const bool many = planned_rows(extent.rows) > 2 * multiprocessor_count(device);
  std::int64_t items = std::max(1, values / pack);
  while (items < most && packs > (many ? kManyRowsThreads : kFewRowsThreads) * items) ++items;
  const std::int64_t width = std::max<std::int64_t>(128, whole_warps(packs, items));
  if (width > kMostThreads) return tile;
  return {.pack = pack,
          .items = static_cast<int>(ceil_div(packs, width)),
          .width = static_cast<int>(width),
          .threads = static_cast<int>(width)};
}

bool is_whole_tile(const RowTile& tile, RowExtent extent) noexcept {
  return extent.n == std::int64_t{tile.pack} * tile.items * tile.width &&
         extent.rows % tile.rows() == 0 && extent.rows / tile.rows() <= kMostBlocks;
}

std::optional<RowCluster> cluster_rows(const Device& device, RowExtent extent, int pack,
                                       int values) {
  const std::int64_t packs = extent.n / pack, most = std::max(1, values / pack);
  RowCluster plan{.pack = pack, .blocks = 2};
  const auto fits = [&](std::int64_t threads) { return packs <= plan.blocks * threads * most; };
  while (plan.blocks < kMostClusterBlocks && !fits(kFewRowsThreads)) plan.blocks *= 2;
  // A multiprocessor has room for one larger block: that gains where rows are read from memory
  // twice without it, and not from L2.
  const std::int64_t rows = planned_rows(extent.rows);
  const bool many = rows > 2 * multiprocessor_count(device);
  const std::int64_t threads = many && !fits(kFewRowsThreads) ? kMostThreads : kFewRowsThreads;
  const std::int64_t blocks = rows * plan.blocks;
  const bool fills = 2 * blocks >= multiprocessor_count(device) && blocks <= kMostBlocks;
  if (device.compute_capability().major < 9 || packs < kLeastClusterPacks || !fits(threads) ||
      !fills)
    return std::nullopt;
  plan.part = ceil_div(packs, plan.blocks);
  plan.items = static_cast<int>(ceil_div(plan.part, threads));
  plan.threads = static_cast<int>(whole_warps(plan.part, plan.items));
  return plan;
}

LaunchConfig RowCluster::config(std::int64_t rows, const Stream& stream) const {
  return {.grid = {static_cast<std::uint32_t>(rows * blocks)},
          .block = {static_cast<std::uint32_t>(threads)},
          .stream = stream,
          .cluster = {static_cast<std::uint32_t>(blocks)}};
}

RowChunks chunk_rows(const Device& device, RowExtent extent, int pack, int values) {
  RowChunks plan{.pack = pack, .items = std::max(1, values / pack)};
  const auto chunks = [&] {
    return ceil_div(extent.n, std::int64_t{kChunkThreads} * plan.items * pack);
  };
  const std::int64_t wanted = 2 * multiprocessor_count(device);
  const std::int64_t rows = planned_rows(extent.rows);
  while (plan.items > 1 && plan.items * pack > 4 && rows * chunks() < wanted) plan.items /= 2;
  plan.chunks = chunks();
  if (plan.chunks > kMostBlocks / extent.rows) {
    throw InvalidArgument(
        format("{} rows of {} elements are more than one launch can take", extent.rows, extent.n));
  }
  plan.blocks = static_cast<std::uint32_t>(plan.chunks * extent.rows);
  return plan;
}

bool are_few_and_long(const Device& device, RowExtent extent) {
  return extent.n > kLongRow && planned_rows(extent.rows) < multiprocessor_count(device) / 2;
}

std::vector<int> axis_last(int ndim, int axis) {
  std::vector<int> axes(static_cast<std::size_t>(ndim));
  std::iota(axes.begin(), axes.end(), 0);
  std::rotate(axes.begin() + axis, axes.begin() + axis + 1, axes.end());
  return axes;
}

std::vector<int> last_back(int ndim, int axis) {
  std::vector<int> axes(static_cast<std::size_t>(ndim));
  std::iota(axes.begin(), axes.end(), 0);
  std::rotate(axes.begin() + axis, axes.end() - 1, axes.end());
  return axes;
}

}  // namespace kernwright::kernels
