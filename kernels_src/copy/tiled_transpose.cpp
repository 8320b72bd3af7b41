// Chooses between tiles and a plain walk, and the tile's size and packs.
#include "kernels_src/copy/tiled_transpose.h"

#include "base/format.h"
#include "base/math.h"
#include "core/device.h"
#include "kernels_src/copy/tiled_transpose.cu.h"
#include "kernels_src/family.h"
#include "kernels_src/launch_choices.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <optional>

namespace kernwright::kernels {

namespace {

constexpr std::size_t kTiledRestDims = 6;
constexpr std::uint32_t kTiledThreads = 256;
/// A line shorter than this goes by a plain walk in the order of the longer one.
constexpr std::int64_t kShortTransposeLine = 16;

/// The kernel's parameter; the layout is that of TiledView in tiled_transpose.cu.
struct TiledView {
  std::int64_t x_extent, y_extent;
  std::int64_t to_x, to_y, from_x, from_y;
  std::int64_t extent[kTiledRestDims], to[kTiledRestDims], from[kTiledRestDims];
  std::uint32_t x_tiles, y_tiles;
  std::int32_t ndim;
};
static_assert(sizeof(TiledView) == 208);

/// By the logarithm of the unit: a line of a tile is 128 to 512 bytes, 17 KiB in all at most.
struct TransposeTile {
  int size;
  int pack;
};
constexpr std::array<TransposeTile, 5> kTransposeTiles = {
    {{128, 8}, {64, 4}, {64, 4}, {32, 2}, {32, 1}}};

const LazyKernel& tiled_kernel(int log2_unit, int size, int pack) {
  static const auto& family = *new Family("tiled_transpose.cu", text::tiled_transpose_cu);
  return family.instance(InstanceKey().add(log2_unit, 3).add(pack, 4), [&] {
    constexpr std::array types = {"unsigned char", "unsigned short", "unsigned int",
                                  "unsigned long long", "Unit16"};
    return format("tiled_transpose<{}, {}, {}>", types[static_cast<std::size_t>(log2_unit)], size,
                  pack);
  });
}

/// The dimension along which the source's units follow each other.
std::optional<std::size_t> source_line(const WalkPlan<2>& plan, std::int64_t unit) {
  for (std::size_t d = 1; d < plan.dims.size(); ++d) {
    if (std::abs(plan.dims[d].stride[kFrom]) == unit) return d;
  }
  return std::nullopt;
}

/// Whether both sides may be moved `pack` units at a time.
bool transpose_takes_packs(const WalkPlan<2>& plan, const WalkDim<2>& x, const WalkDim<2>& y,
                           int pack, std::int64_t unit) {
  if (x.stride[kFrom] != unit || x.extent % pack != 0 || y.extent % pack != 0) return false;
  std::uint64_t bits = plan.base[kTo] | plan.base[kFrom];
  bits |= static_cast<std::uint64_t>(x.stride[kTo]) | static_cast<std::uint64_t>(y.stride[kFrom]);
  for (const WalkDim<2>& dim : plan.dims) {
    if (dim == x || dim == y) continue;
    bits |=
        static_cast<std::uint64_t>(dim.stride[kTo]) | static_cast<std::uint64_t>(dim.stride[kFrom]);
  }
  return bits % static_cast<std::uint64_t>(pack * unit) == 0;
}

TiledView make_tiled_view(const WalkPlan<2>& plan, std::size_t line, std::int64_t tile) {
  const WalkDim<2>& y = plan.dims[0];
  const WalkDim<2>& x = plan.dims[line];
  TiledView view{};
  view.x_extent = x.extent;
  view.y_extent = y.extent;
  view.to_x = x.stride[kTo];
  view.to_y = y.stride[kTo];
  view.from_x = x.stride[kFrom];
  view.from_y = y.stride[kFrom];
  view.x_tiles = static_cast<std::uint32_t>(ceil_div(x.extent, tile));
  view.y_tiles = static_cast<std::uint32_t>(ceil_div(y.extent, tile));
  for (std::size_t d = 1; d < plan.dims.size(); ++d) {
    if (d == line) continue;
    view.extent[view.ndim] = plan.dims[d].extent;
    view.to[view.ndim] = plan.dims[d].stride[kTo];
    view.from[view.ndim] = plan.dims[d].stride[kFrom];
    ++view.ndim;
  }
  return view;
}

/// Blocks, or nothing when a grid cannot have so many.
std::optional<std::uint32_t> transpose_tile_count(const WalkPlan<2>& plan, std::size_t line,
                                                  std::int64_t tile) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  std::int64_t blocks = 1;
  for (std::size_t d = 0; d < plan.dims.size(); ++d) {
    const bool tiled = d == 0 || d == line;
    const std::int64_t extent = plan.dims[d].extent;
    if (__builtin_mul_overflow(blocks, tiled ? ceil_div(extent, tile) : extent, &blocks) ||
        blocks > kMost) {
      return std::nullopt;
    }
  }
  return static_cast<std::uint32_t>(blocks);
}

}  // namespace

bool queue_tiled_transpose(Device& device, WalkPlan<2>& plan, int log2_unit, const Stream& stream) {
  const std::int64_t unit = std::int64_t{1} << log2_unit;
  if (plan.dims.size() < 2 || plan.dims.size() > kTiledRestDims + 2) return false;
  if (plan.dims[0].stride[kTo] != unit || std::abs(plan.dims[0].stride[kFrom]) == unit)
    return false;
  const auto line = source_line(plan, unit);
  if (!line) return false;
  const WalkDim<2> y = plan.dims[0], x = plan.dims[*line];
  if (y.extent < kShortTransposeLine) return false;
  if (x.extent < kShortTransposeLine) {
    // Neighbouring threads read neighbours then, and write to a few lines of the target.
    plan.dims.erase(plan.dims.begin() + static_cast<std::ptrdiff_t>(*line));
    plan.dims.insert(plan.dims.begin(), x);
    return false;
  }
  const TransposeTile& tile = kTransposeTiles[static_cast<std::size_t>(log2_unit)];
  const auto blocks = transpose_tile_count(plan, *line, tile.size);
  if (!blocks) return false;
  const int widest = std::min(tile.pack, choose(LaunchChoice::transpose_pack, device, plan.count(),
                                                static_cast<std::size_t>(unit), tile.pack));
  const int pack = transpose_takes_packs(plan, x, y, widest, unit) ? widest : 1;
  const LaunchConfig config{.grid = {*blocks}, .block = {kTiledThreads}, .stream = stream};
  launch(tiled_kernel(log2_unit, tile.size, pack).on(device), config, plan.base[kTo],
         plan.base[kFrom], make_tiled_view(plan, *line, tile.size));
  return true;
}

}  // namespace kernwright::kernels
