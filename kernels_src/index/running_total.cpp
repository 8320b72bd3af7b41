// Tiles, then the totals of the tiles, and so on.
#include "kernels_src/index/running_total.h"

#include "base/math.h"
#include "core/device.h"
#include "kernels_src/family.h"
#include "kernels_src/index/running_total.cu.h"

#include <string>

namespace kernwright::kernels {

namespace {

constexpr std::int64_t kTotalTile = 2048;
constexpr std::uint32_t kTotalThreads = 256;

const LazyKernel& total_kernel(bool bases) {
  static const auto& family = *new Family("running_total.cu", text::running_total_cu);
  return family.instance(InstanceKey().add(bases, 1),
                         [&] { return std::string(bases ? "add_bases" : "total_tiles"); });
}

}  // namespace

Array running_total(const Array& counts, const Stream& stream) {
  Device& device = counts.device();
  const std::int64_t count = counts.size();
  const std::int64_t tiles = ceil_div(count, kTotalTile);
  Array sums = Array::empty(device, {tiles}, ScalarType::int64, stream);
  const LaunchConfig config{
      .grid = {static_cast<std::uint32_t>(tiles)}, .block = {kTotalThreads}, .stream = stream};
  launch(total_kernel(false).on(device), config, counts.address(), counts.address(), sums.address(),
         count);
  Array total = sums;
  if (tiles > 1) {
    total = running_total(sums, stream);
    launch(total_kernel(true).on(device), config, counts.address(), sums.address(), count);
  }
  counts.use_on(stream);
  sums.use_on(stream);
  return total;
}

std::int64_t read_number(const Array& number, const Stream& stream) {
  std::int64_t value = 0;
  number.to_host(&value, stream);
  return value;
}

}  // namespace kernwright::kernels
