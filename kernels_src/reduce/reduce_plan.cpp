// All choices of a reduction's launch, in one place.
#include "kernels_src/reduce/reduce_plan.h"

#include "base/math.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

namespace kernwright::kernels {

namespace {

constexpr std::int64_t kReduceWidestLoad = 16;
/// More parts in a thread take registers needed by loads in flight.
constexpr std::int64_t kReduceWidestPack = 8;
/// Packs of a thread that are worth a segment of their own.
constexpr std::int64_t kReduceShortestPart = 8;
/// Packs of a thread up to which a block reads as fast as several blocks can meet.
constexpr std::int64_t kReduceAlone = 24;

/// Bytes of a row side by side that are read as fast as more of them.
constexpr std::int64_t kReduceRowBytes = 128;

/// Rows of a multiprocessor that are enough for a warp each to fill it with loads.
constexpr std::int64_t kFewRowsPerProcessor = 8;

/// The smallest power of two that is at least `value`.
std::int64_t reduce_power_above(std::int64_t value) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(value)));
}

/// How many elements of the axis `inner`, which has no gaps, one aligned load may take.
int reduce_aligned_pack(const AxesPlan& axes, const Axis& inner, std::int64_t size) {
  if (inner.stride[kFrom] != size) return 1;
  std::uint64_t bits = axes.from;
  for (const auto* const list : {&axes.kept, &axes.reduced}) {
    for (const Axis& axis : *list) {
      if (&axis != &inner) bits |= static_cast<std::uint64_t>(axis.stride[kFrom]);
    }
  }
  std::int64_t pack = std::min(kReduceWidestPack, kReduceWidestLoad / size);
  while (pack > 1 &&
         (inner.extent % pack != 0 || bits % static_cast<std::uint64_t>(pack * size) != 0)) {
    pack /= 2;
  }
  return static_cast<int>(std::max<std::int64_t>(pack, 1));
}

/// How packs of `bytes` lie in rows of one axis without gaps.
RowAccess row_access(const AxesPlan& axes, std::int64_t bytes) {
  std::uint64_t bits = axes.from;
  for (const Axis& axis : axes.kept) bits |= static_cast<std::uint64_t>(axis.stride[kFrom]);
  return bits % static_cast<std::uint64_t>(bytes) == 0 ? RowAccess::aligned : RowAccess::unaligned;
}

/// Multiprocessors, and the wanted number of blocks.
struct ReduceGrid {
  int processors;
  std::int64_t blocks;
};

/// Splits the elements of one result: enough blocks run, none gathers too long a part, and each has
/// enough to do. `unit`: elements taken by a block in one step.
void split_reduction(ReducePlan& plan, std::int64_t length, std::int64_t unit, std::int64_t groups,
                     const ReduceGrid& grid) {
  const std::int64_t wanted = length <= unit * kReduceAlone ? 1 : ceil_div(grid.blocks, groups);
  const std::int64_t segment =
      std::clamp(ceil_div(length, wanted), unit * kReduceShortestPart, unit * kLongestPart);
  plan.segment = ceil_div(segment, unit) * unit;
  plan.segments = std::max<std::int64_t>(ceil_div(length, plan.segment), 1);
  plan.blocks = groups * plan.segments;
}

/// The splits of columns: whole waves of blocks, as a nearly empty wave takes as long as a full
/// one.
void split_columns(ReducePlan& plan, std::int64_t length, std::int64_t unit, std::int64_t groups,
                   const ReduceGrid& grid) {
  if (length <= unit * kReduceAlone) return split_reduction(plan, length, unit, groups, grid);
  const std::int64_t least = ceil_div(length, unit * kLongestPart);
  const std::int64_t waves = ceil_div(least * groups, grid.blocks);
  const std::int64_t wanted = std::max(least, waves * grid.blocks / groups);
  const std::int64_t segment = std::max(ceil_div(length, wanted), unit * kReduceShortestPart);
  plan.segment = ceil_div(segment, unit) * unit;
  plan.segments = ceil_div(length, plan.segment);
  plan.blocks = groups * plan.segments;
}

ReducePlan plan_reduced_rows(const AxesPlan& axes, std::int64_t size, const ReduceGrid& grid) {
  ReducePlan plan;
  const std::int64_t outputs = axes.outputs(), length = axes.length();
  const std::int64_t widest = std::min(kReduceWidestPack, kReduceWidestLoad / size);
  if (axes.reduced.size() == 1 && axes.reduced[0].stride[kFrom] == size) {
    plan.pack = length < 2 * widest ? 1 : static_cast<int>(widest);
    plan.access = plan.pack == 1 ? RowAccess::aligned : row_access(axes, plan.pack * size);
  } else {
    plan.pack = reduce_aligned_pack(axes, axes.reduced[0], size);
  }
  const std::int64_t packs = ceil_div(length, plan.pack);
  const bool few = outputs < std::int64_t{grid.processors} * kFewRowsPerProcessor;
  if (packs > 1024 || (packs > 128 && few)) {
    plan.lanes = kReduceBlock;
    split_reduction(plan, length, kReduceBlock * plan.pack, outputs, grid);
    return plan;
  }
  plan.lanes = std::min<std::int64_t>(32, reduce_power_above(ceil_div(packs, 2)));
  // More loads than a thread has packs take registers, and so warps, for nothing.
  const std::int64_t each = ceil_div(packs, plan.lanes);
  plan.loads = each <= 2 ? 2 : each <= 4 ? 4 : kReduceLoads;
  plan.segment = length;
  plan.blocks = ceil_div(outputs, kReduceBlock / plan.lanes);
  return plan;
}

ReducePlan plan_reduced_columns(const AxesPlan& axes, std::int64_t size, const ReduceGrid& grid) {
  ReducePlan plan{.rows = false};
  const std::int64_t outputs = axes.outputs(), length = axes.length();
  if (!axes.kept.empty()) plan.pack = reduce_aligned_pack(axes, axes.kept[0], size);
  const std::int64_t units = outputs / plan.pack;
  // Lanes of few bytes leave more rows to a block, and so fewer segments to the block that joins
  // them. Threads one above the other in a column have at least four elements each.
  const std::int64_t least = std::clamp<std::int64_t>(kReduceRowBytes / (plan.pack * size), 8, 32);
  const std::int64_t above =
      std::clamp<std::int64_t>(reduce_power_above(length / 4 + 1) / 2, 1, kReduceBlock / least);
  plan.lanes = std::min(reduce_power_above(units), kReduceBlock / above);
  split_columns(plan, length, kReduceBlock / plan.lanes, ceil_div(units, plan.lanes), grid);
  return plan;
}

}  // namespace

bool reads_rows(const AxesPlan& axes) {
  if (axes.reduced.empty() || axes.length() == 0) return false;
  if (axes.kept.empty() || axes.kept[0].stride[kFrom] == 0) return true;
  const std::int64_t inner = std::abs(axes.reduced[0].stride[kFrom]);
  return inner != 0 && inner < std::abs(axes.kept[0].stride[kFrom]);
}

ReducePlan plan_reduction(const AxesPlan& axes, std::size_t size, int processors, int blocks_each) {
  const auto bytes = static_cast<std::int64_t>(size);
  const ReduceGrid grid{processors, std::int64_t{processors} * blocks_each};
  return reads_rows(axes) ? plan_reduced_rows(axes, bytes, grid)
                          : plan_reduced_columns(axes, bytes, grid);
}

}  // namespace kernwright::kernels
