// Types and grids of kernels over planes.
#include "kernels_src/spatial/spatial.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/math.h"
#include "core/device.h"

#include <algorithm>

namespace kernwright::kernels {

void require_spatial_type(const Array& x, const char* what) {
  if (is_floating(x.type()) && scalar_size(x.type()) > 1) return;
  throw InvalidArgument(format("{} is of float16, bfloat16, float32 or float64, not {}", what,
                               scalar_name(x.type())));
}

SpatialLaunch::SpatialLaunch(const Array& out, const Array& in, const Stream& stream)
    : out_(out),
      in_(in),
      stream_(stream ? stream : Stream::legacy(out.device())),
      wide_(std::max(out.size(), in.size()) > (std::int64_t{1} << 31) - (1 << 24)) {}

LaunchConfig SpatialLaunch::grid_config(std::uint64_t count) const {
  constexpr std::uint64_t kThreads = 256, kMostBlocks = 1 << 16;
  LaunchConfig config;
  config.grid = {static_cast<std::uint32_t>(std::min(ceil_div(count, kThreads), kMostBlocks))};
  config.block = {static_cast<std::uint32_t>(kThreads)};
  config.stream = stream_;
  return config;
}

}  // namespace kernwright::kernels
