// All choices of a scan's launch, in one place.
#include "kernels_src/scan/scan_plan.h"

#include "base/math.h"

#include <algorithm>
#include <cstdlib>

namespace kernwright::kernels {

namespace {

/// Rows up to this are scanned by one thread each.
constexpr std::int64_t kThreadRow = 16;
/// Rows up to this have a warp each, longer ones too where there are enough of them.
constexpr std::int64_t kWarpRow = 2048;
/// The same where a multiprocessor has at most one row.
constexpr std::int64_t kWarpRowFewRows = 512;
/// Packs of a thread up to which one tile of a row is faster than several, which wait for sums.
constexpr int kLoneTileSteps = 4;
constexpr std::int64_t kWarpRowManyRows = 32768;
constexpr std::int64_t kManyRowsPerProcessor = 32;
/// Threads that fill a multiprocessor with columns.
constexpr std::int64_t kColumnThreadsPerProcessor = 1024;
constexpr std::int64_t kShortestSegment = 64;
/// Fewer tiles than this are made smaller: each has a multiprocessor of its own.
constexpr std::int64_t kFewestTiles = 128;

/// Whether columns side by side may be moved in packs: no gaps on either side's memory.
int columns_pack(const AxesPlan& axes, const Axis& axis, std::int64_t size) {
  if (axes.kept.empty() || axes.kept[0].stride[kFrom] != size) return 1;
  std::uint64_t bits = axes.from | static_cast<std::uint64_t>(axis.stride[kFrom]);
  for (std::size_t i = 1; i < axes.kept.size(); ++i) {
    bits |= static_cast<std::uint64_t>(axes.kept[i].stride[kFrom]);
  }
  int pack = 4;
  while (pack > 1 && (pack * size > 16 || axes.kept[0].extent % pack != 0 ||
                      bits % static_cast<std::uint64_t>(pack * size) != 0)) {
    pack /= 2;
  }
  return pack;
}

ScanPlan plan_scanned_columns(const AxesPlan& axes, const Axis& axis, std::int64_t size,
                              int processors) {
  ScanPlan plan{.path = ScanPath::columns, .pack = columns_pack(axes, axis, size)};
  const std::int64_t columns = axes.outputs() / plan.pack;
  const std::int64_t wanted =
      ceil_div(std::int64_t{processors} * kColumnThreadsPerProcessor, columns);
  plan.segment = std::max(ceil_div(axis.extent, wanted), kShortestSegment);
  plan.segments = std::max<std::int64_t>(ceil_div(axis.extent, plan.segment), 1);
  return plan;
}

/// Whether rows are read and written in packs of 16 bytes.
bool is_in_packs(const AxesPlan& axes, const Axis& axis, std::int64_t size) {
  if (axis.stride[kFrom] != size || axis.stride[kTo] != size) return false;
  std::uint64_t bits = axes.from;
  for (const auto& dim : axes.kept) bits |= static_cast<std::uint64_t>(dim.stride[kFrom]);
  return bits % 16 == 0;
}

/// Tiles of 4 packs a thread, or of 2 where shared memory has no room for the larger ones.
void plan_flow(ScanPlan& plan, std::int64_t extent, const ScanRoom& room) {
  constexpr std::int64_t kOtherShared = 8192;
  for (int steps = 4; steps > 1; steps /= 2) {
    const std::int64_t tile = kFlowThreads * steps * 16;
    if (kFlowTiles * tile + kOtherShared > room.shared) continue;
    plan.path = ScanPath::flow;
    plan.steps = steps;
    plan.tiles = ceil_div(extent, kFlowThreads * plan.pack * steps);
    return;
  }
}

}  // namespace

ScanPlan plan_scan(const AxesPlan& axes, const Axis& axis, const ScanSizes& sizes,
                   const ScanRoom& room) {
  const int processors = room.processors;
  const auto size = static_cast<std::int64_t>(sizes.from);
  const bool inner = axes.kept.empty() || axes.kept[0].stride[kFrom] == 0 ||
                     std::abs(axis.stride[kFrom]) < std::abs(axes.kept[0].stride[kFrom]);
  if (!inner || axis.extent <= kThreadRow) {
    return plan_scanned_columns(axes, axis, size, processors);
  }
  ScanPlan plan;
  plan.pack = std::clamp(static_cast<int>(16 / std::max(sizes.from, sizes.to)), 1, 8);
  plan.steps = std::clamp(32 / plan.pack, 4, 8);
  const bool many = axes.outputs() >= kManyRowsPerProcessor * processors;
  const bool few = axes.outputs() <= processors;
  if (axis.extent <= (many ? kWarpRowManyRows : few ? kWarpRowFewRows : kWarpRow)) return plan;
  const auto tiles = [&] { return ceil_div(axis.extent, kTileThreads * plan.pack * plan.steps); };
  while (plan.steps > 1 && axes.outputs() * tiles() < kFewestTiles) {
    const bool is_lone = tiles() == 1 && plan.steps <= kLoneTileSteps;
    plan.steps /= 2;
    if (is_lone && tiles() > 1) {
      plan.steps *= 2;
      break;
    }
  }
  plan.tiles = tiles();
  plan.path = plan.tiles <= kTileThreads ? ScanPath::few_tiles : ScanPath::tiles;
  const bool words = sizes.from == sizes.value && (sizes.from == 4 || sizes.from == 8);
  if (plan.path == ScanPath::tiles && words && is_in_packs(axes, axis, size)) {
    plan_flow(plan, axis.extent, room);
  }
  return plan;
}

}  // namespace kernwright::kernels
