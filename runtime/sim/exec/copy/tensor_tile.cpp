// The tile of a tensor copy from its map and coordinates, with the errors of GPUs for them.
#include "sim/exec/copy/tensor_tile.h"

#include "base/format.h"
#include "sim/code/program.h"
#include "sim/exec/watcher.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>

namespace kernwright::sim {
namespace {

using ptx::Space;

constexpr std::uint64_t kMapAlignment = 64;
constexpr std::int64_t kOriginAlignment = 16;

/// Checks the map for the instruction. False after a finding.
bool read_map(const BulkLane& lane, std::uint64_t address, Tile& tile) {
  const std::byte* bytes =
      lane.find(Space::generic, AccessKind::read, address, kTensorMapBytes, kMapAlignment);
  if (bytes == nullptr) return false;
  Watcher* const check = lane.check();
  if (check != nullptr && lane.form.kind != BulkForm::tensor_prefetch) {
    check->use_map(lane.op, lane.warp, lane.lane, address);
  }
  const auto map = decode_tensor_map(bytes);
  if (!map)
    return lane.fault(FaultKind::bounds, address, kTensorMapBytes,
                      "the 128 bytes are no tensor map: make it with cuTensorMapEncodeTiled and "
                      "pass it as a __grid_constant__ parameter");
  if (static_cast<std::uint32_t>(map->rank) != lane.form.rank)
    return lane.fault(FaultKind::bounds, address, kTensorMapBytes,
                      format("the tensor map has rank {}, the instruction takes {} coordinates",
                             map->rank, lane.form.rank));
  if (map->im2col != lane.form.im2col)
    return lane.fault(FaultKind::bounds, address, kTensorMapBytes,
                      map->im2col ? "the tensor map is one for im2col, the instruction is not"
                                  : "the instruction is one for im2col, the tensor map is not");
  tile.map = *map;
  tile.element = tensor_element_bytes(map->type);
  return true;
}

/// Rewrites the map and coordinates of a copy of slices with one row for each slice: W, H and D
/// move up by one dimension, and the slices' own dimension becomes part of the address.
void unfold_slices(Tile& tile) {
  const TensorMapParameters sliced = tile.map;
  const auto origin = tile.origin;
  TensorMapParameters& map = tile.map;
  const auto images = static_cast<std::size_t>(map.rank) - 1, slices = images - 1;
  const std::uint64_t slice = tensor_slice_bytes(map);
  for (std::size_t d = 1; d < images; ++d) {
    map.extent[d] = sliced.extent[d - 1];
    map.stride[d] = d == 1 ? slice : sliced.stride[d - 1];
    map.box[d] = sliced.box[d - 1];
    map.step[d] = sliced.step[d - 1];
    tile.origin[d] = origin[d - 1];
  }
  map.extent[0] = slice / tile.element;
  map.box[0] = static_cast<std::uint32_t>(map.extent[0]);
  tile.origin[0] = 0;
  const std::int64_t which = origin[slices];
  if (which < 0 || which >= static_cast<std::int64_t>(sliced.extent[slices])) {
    map.extent[images] = 0;  // all of it lies outside
  } else {
    map.address += static_cast<std::uint64_t>(which) * sliced.stride[slices];
  }
}

/// Checks W, H or D of an im2col copy: `d` is the coordinate and `i` counts from W on. The box of a
/// store must lie inside the tensor.
std::string check_pixel(const TensorMapParameters& map, bool stores, std::uint32_t d,
                        std::uint32_t i, std::int64_t at) {
  const std::int64_t first = map.lower[i];
  const std::int64_t last = static_cast<std::int64_t>(map.extent[d]) - 1 + map.upper[i];
  if (at < first || at > last)
    return format(
        "coordinate {} is {}: an im2col copy begins at a pixel of the map's box, {} to {}", d, at,
        first, last);
  if (stores && (first < 0 || map.upper[i] > 0))
    return format(
        "the map's pixel box, {} to {} in dimension {}, reaches over the tensor's {} "
        "pixels: no copy to global memory takes such a map",
        first, last, d, map.extent[d]);
  return {};
}

/// The copies that end in an illegal instruction were found on an H200, for every kind of copy.
bool check_origin(const BulkLane& lane, std::uint64_t address, const Tile& tile) {
  constexpr const char* kEnd = "; a GPU ends it with an illegal instruction";
  const bool has_slices = tensor_slice_bytes(tile.map) != 0;
  const std::int64_t bytes = tile.origin[0] * static_cast<std::int64_t>(tile.element);
  if (!has_slices && bytes % kOriginAlignment != 0)
    return lane.fault(
        FaultKind::alignment, address, kTensorMapBytes,
        format("coordinate 0 is {}: a copy begins {} bytes into a row, which is not a "
               "multiple of 16{}",
               tile.origin[0], bytes, kEnd));
  const bool stores = lane.form.kind == BulkForm::tensor_to_global;
  for (std::uint32_t i = 0; i < lane.form.rank; ++i) {
    const std::uint32_t pixel = has_slices ? i : i - 1;  // 0 for W
    std::string wrong;
    if (tile.map.im2col && pixel < lane.form.rank - 2) {
      wrong = check_pixel(tile.map, stores, i, pixel, tile.origin[i]);
    } else if (stores && tile.origin[i] < 0) {
      wrong = format("coordinate {} is {}: copies to global memory begin inside the tensor", i,
                     tile.origin[i]);
    }
    if (!wrong.empty())
      return lane.fault(FaultKind::bounds, address, kTensorMapBytes, wrong + kEnd);
  }
  return true;
}

/// The begins of a tile's rows in the tensor, one after the other.
class Rows {
 public:
  explicit Rows(const Tile& tile) : tile_(tile), at_(tile.origin) {}

  /// The row's first byte if its first element were 0; nothing for a row outside.
  std::optional<std::uint64_t> address() const {
    const TensorMapParameters& map = tile_.map;
    std::uint64_t address = map.address;
    for (std::size_t d = 1; d < rank(); ++d) {
      const std::int64_t at = at_[d] + tile_.offset[d];
      if (at < 0 || at >= static_cast<std::int64_t>(map.extent[d])) return std::nullopt;
      address += static_cast<std::uint64_t>(at) * map.stride[d];
    }
    return address;
  }

  void advance() {
    for (std::size_t d = 1; d < rank(); ++d) {
      at_[d] += tile_.map.step[d];
      if (at_[d] <= last(d)) return;
      at_[d] = first(d);
    }
  }

 private:
  std::size_t rank() const { return static_cast<std::size_t>(tile_.map.rank); }
  bool bounds_pixels(std::size_t d) const { return tile_.map.im2col && d + 1 < rank(); }
  std::int64_t first(std::size_t d) const {
    return bounds_pixels(d) ? tile_.map.lower[d - 1] : tile_.origin[d];
  }
  std::int64_t last(std::size_t d) const {
    const TensorMapParameters& map = tile_.map;
    if (bounds_pixels(d)) return static_cast<std::int64_t>(map.extent[d]) - 1 + map.upper[d - 1];
    if (map.im2col) return std::numeric_limits<std::int64_t>::max();  // images follow each other
    return tile_.origin[d] + static_cast<std::int64_t>((tile_.count[d] - 1) * map.step[d]);
  }

  const Tile& tile_;
  std::array<std::int64_t, kMaxTensorRank> at_;
};

}  // namespace

bool read_tile(const BulkLane& lane, std::uint64_t address, std::uint32_t coordinates, Tile& tile) {
  if (!read_map(lane, address, tile)) return false;
  const std::uint32_t* lists = lane.warp.program->lists.data() + coordinates;
  const std::uint32_t rank = lane.form.rank;
  for (std::uint32_t i = 0; i < rank; ++i)
    tile.origin[i] = static_cast<std::int32_t>(lane.word(lists[i]));
  if (!check_origin(lane, address, tile)) return false;
  if (tensor_slice_bytes(tile.map) != 0) unfold_slices(tile);
  const TensorMapParameters& map = tile.map;
  tile.count[0] = map.box[0];  // the elements of a row have no stride
  tile.row_bytes = tile.count[0] * tile.element;
  if (map.im2col) {
    tile.rows = map.pixels;
    const bool has_offsets = lane.form.kind != BulkForm::tensor_to_global;
    const int most = 2 * tensor_corner_limit(map.rank) - 1;
    for (std::uint32_t i = 1; has_offsets && i + 1 < rank; ++i) {
      tile.offset[i] = lane.half(lists[rank + i - 1]);
      if (tile.offset[i] > most)
        return lane.fault(FaultKind::bounds, address, kTensorMapBytes,
                          format("an im2col offset of {} is not in 0 to {}, which {} coordinates "
                                 "allow",
                                 tile.offset[i], most, rank));
    }
    return true;
  }
  for (std::uint32_t i = 1; i < rank; ++i) {
    tile.count[i] = (map.box[i] + map.step[i] - 1) / map.step[i];
    tile.rows *= tile.count[i];
  }
  return true;
}

bool find_runs(const BulkLane& lane, const Tile& tile, AccessKind kind, std::vector<Run>& runs) {
  const TensorMapParameters& map = tile.map;
  const std::int64_t first = std::max<std::int64_t>(tile.origin[0], 0);
  const std::int64_t end =
      std::min<std::int64_t>(tile.origin[0] + static_cast<std::int64_t>(tile.count[0]),
                             static_cast<std::int64_t>(map.extent[0]));
  if (first >= end) return true;
  Rows rows(tile);
  for (std::uint64_t row = 0; row < tile.rows; ++row, rows.advance()) {
    const std::optional<std::uint64_t> begin = rows.address();
    if (!begin) continue;
    Run run;
    run.bytes = static_cast<std::uint64_t>(end - first) * tile.element;
    run.tile =
        row * tile.row_bytes + static_cast<std::uint64_t>(first - tile.origin[0]) * tile.element;
    const std::uint64_t address = *begin + static_cast<std::uint64_t>(first) * tile.element;
    run.address = address;
    run.global = lane.find(Space::global, kind, address, run.bytes, 1);
    if (run.global == nullptr) return false;
    runs.push_back(run);
  }
  return true;
}

}  // namespace kernwright::sim
