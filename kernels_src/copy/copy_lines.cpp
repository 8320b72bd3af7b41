// Decides which copies go by lines.
#include "kernels_src/copy/copy_lines.h"

#include "base/format.h"
#include "base/math.h"
#include "core/device.h"
#include "kernels_src/copy/copy_lines.cu.h"
#include "kernels_src/family.h"

#include <algorithm>
#include <array>
#include <limits>

namespace kernwright::kernels {

namespace {

constexpr std::int64_t kLineUnit = 16;
/// Shorter lines are mostly ends, which are copied element by element.
constexpr std::int64_t kShortLine = 256;
constexpr std::int64_t kLineThreads = 256, kLineUnroll = 4;
constexpr std::int64_t kPartUnits = 128;  // of a part of a line, about; longer parts take longer

const LazyKernel& line_kernel(int log2_unit) {
  static const auto& family = *new Family("copy_lines.cu", text::copy_lines_cu);
  return family.instance(InstanceKey().add(log2_unit, 2), [&] {
    constexpr std::array types = {"unsigned char", "unsigned short", "unsigned int",
                                  "unsigned long long"};
    return format("copy_lines<{}, {}>", types[static_cast<std::size_t>(log2_unit)], kLineUnroll);
  });
}

}  // namespace

std::optional<LineCopy> line_copy(const WalkPlan<2>& plan, int log2_unit) {
  const std::int64_t unit = std::int64_t{1} << log2_unit;
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max() / 2;
  if (unit >= kLineUnit || plan.dims.empty() || plan.dims.size() > 2) return std::nullopt;
  const WalkDim<2>& line = plan.dims[0];
  const WalkDim<2> lines = plan.dims.size() == 2 ? plan.dims[1] : WalkDim<2>{.extent = 1};
  if (line.stride[kTo] != unit || line.stride[kFrom] != unit) return std::nullopt;
  if (line.extent < kShortLine / unit || line.extent > kMost / unit) return std::nullopt;
  const std::int64_t bytes = line.extent * unit;
  const std::int64_t units = bytes / kLineUnit;
  const std::int64_t parts = std::max<std::int64_t>(1, (units + kPartUnits / 2) / kPartUnits);
  // A warp copies several short lines.
  const std::uint32_t log2_lanes = units < 64 ? 3 : units < 128 ? 4 : 5;
  if (lines.extent > kMost / (parts << log2_lanes)) return std::nullopt;
  return LineCopy{.to = plan.base[kTo],
                  .from = plan.base[kFrom],
                  .to_pitch = lines.stride[kTo],
                  .from_pitch = lines.stride[kFrom],
                  .bytes = static_cast<std::int32_t>(bytes),
                  .log2_lanes = log2_lanes,
                  .parts = static_cast<std::uint32_t>(parts),
                  .units = static_cast<std::uint32_t>(ceil_div(units, parts)),
                  .count = static_cast<std::uint32_t>(parts * lines.extent)};
}

void queue_line_copies(Device& device, std::span<const LineCopy> copies, int log2_unit,
                       const Stream& stream) {
  const auto threads = [](const LineCopy& copy) {
    return std::int64_t{copy.count} << copy.log2_lanes;
  };
  std::array<LineCopy, 2> both{};
  std::ranges::copy(copies, both.begin());
  const std::int64_t most = std::max(threads(both[0]), threads(both[1]));
  const std::int64_t blocks = ceil_div(most, kLineThreads);
  const LaunchConfig config{
      .grid = {static_cast<std::uint32_t>(blocks), static_cast<std::uint32_t>(copies.size())},
      .block = {static_cast<std::uint32_t>(kLineThreads)},
      .stream = stream};
  launch(line_kernel(log2_unit).on(device), config, both[0], both[1]);
}

}  // namespace kernwright::kernels
