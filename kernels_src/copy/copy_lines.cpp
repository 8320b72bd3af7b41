// Decides which copies go by lines.
#include "kernels_src/copy/copy_lines.h"

#include "base/format.h"
#include "core/device.h"
#include "kernels_src/copy/copy_lines.cu.h"
#include "kernels_src/family.h"

#include <array>
#include <limits>

namespace kernwright::kernels {

namespace {

constexpr std::int64_t kLineUnit = 16;
/// Shorter lines are mostly ends, which are copied element by element.
constexpr std::int64_t kShortLine = 256;
constexpr std::int64_t kLineThreads = 256, kLineUnroll = 2;

const LazyKernel& line_kernel(int log2_unit) {
  static const auto& family = *new Family("copy_lines.cu", text::copy_lines_cu);
  return family.instance(InstanceKey().add(log2_unit, 2), [&] {
    constexpr std::array types = {"unsigned char", "unsigned short", "unsigned int",
                                  "unsigned long long"};
    return format("copy_lines<{}, {}>", types[static_cast<std::size_t>(log2_unit)], kLineUnroll);
  });
}

}  // namespace

bool queue_line_copy(Device& device, const WalkPlan<2>& plan, int log2_unit, const Stream& stream) {
  const std::int64_t unit = std::int64_t{1} << log2_unit;
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max() / 2;
  if (unit >= kLineUnit || plan.dims.size() != 2) return false;
  const WalkDim<2>&line = plan.dims[0], &lines = plan.dims[1];
  if (line.stride[kTo] != unit || line.stride[kFrom] != unit) return false;
  if (line.extent < kShortLine / unit || line.extent > kMost / unit) return false;
  const std::int64_t bytes = line.extent * unit;
  const std::int64_t units = (bytes + 2 * (kLineUnit - 1)) / kLineUnit;
  if (lines.extent > kMost / units) return false;
  const std::int64_t count = units * lines.extent, of_block = kLineThreads * kLineUnroll;
  const LaunchConfig config{.grid = {static_cast<std::uint32_t>((count + of_block - 1) / of_block)},
                            .block = {static_cast<std::uint32_t>(kLineThreads)},
                            .stream = stream};
  launch(line_kernel(log2_unit).on(device), config, plan.base[kTo], plan.base[kFrom],
         lines.stride[kTo], lines.stride[kFrom], static_cast<std::int32_t>(bytes),
         static_cast<std::uint32_t>(units), static_cast<std::uint32_t>(count));
  return true;
}

}  // namespace kernwright::kernels
