// Checks and the launch of route.cu.
#include "kernels_src/experts/route.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/math.h"
#include "core/device.h"
#include "kernels_src/cast/cast.h"
#include "kernels_src/experts/route.cu.h"
#include "kernels_src/family.h"
#include "kernels_src/operands.h"

#include <algorithm>
#include <bit>

namespace kernwright::kernels {
namespace {

constexpr std::int64_t kMostRoutedExperts = 1024;
constexpr int kMostChosenExperts = 32, kMostExpertGroups = 32;
constexpr std::int64_t kRouteWarps = 4;

/// As the kernel has it.
struct RouteValues {
  std::int32_t tokens, experts, chosen;
  std::int64_t stride;
  CUdeviceptr bias;
  std::int32_t groups, kept;
  float scale;
  bool sigmoid, renormalize;
};

void require_route(const Array& logits, const RouteOptions& options) {
  require_floating(logits, "route", "logits");
  if (logits.ndim() != 2) {
    throw InvalidArgument(
        format("logits have two dimensions (tokens, experts), not {}", logits.identify()));
  }
  const std::int64_t experts = logits.shape()[1];
  if (experts < 1 || experts > kMostRoutedExperts || logits.shape()[0] > INT32_MAX) {
    throw InvalidArgument(format("route() takes 1 to {} experts and 2^31 - 1 tokens, not {}",
                                 kMostRoutedExperts, logits.identify()));
  }
  if (options.groups < 1 || options.groups > kMostExpertGroups || experts % options.groups != 0 ||
      options.groups_kept < 1 || options.groups_kept > options.groups) {
    throw InvalidArgument(
        format("{} experts are divided into 1 to {} groups of one size, of which some are kept: "
               "not {} of {}",
               experts, kMostExpertGroups, options.groups_kept, options.groups));
  }
  const std::int64_t there = experts / options.groups * options.groups_kept;
  if (options.chosen < 1 || options.chosen > std::min<std::int64_t>(there, kMostChosenExperts)) {
    throw InvalidArgument(format("k is {}, and must be from 1 to {} of {} experts", options.chosen,
                                 std::min<std::int64_t>(there, kMostChosenExperts), there));
  }
  if (!options.bias) return;
  require_one_device(*options.bias, "bias", logits, "logits");
  require_floating(*options.bias, "route", "bias");
  if (options.bias->shape() != Shape{experts}) {
    throw InvalidArgument(format("Incompatible dimensions: bias is {}, for {} experts",
                                 options.bias->identify(), experts));
  }
}

/// `each` experts of a lane: the next power of two.
const LazyKernel& route_kernel(ScalarType type, int each) {
  static const auto& family = *new Family("route.cu", text::route_cu);
  return family.instance(InstanceKey().type(type).add(each, 6),
                         [&] { return format("route<{}, {}>", device_type(type), each); });
}

}  // namespace

Routes route(const Array& logits, const RouteOptions& options, const Stream& stream) {
  require_route(logits, options);
  Device& device = logits.device();
  const Stream on = stream ? stream : Stream::legacy(device);
  const std::int64_t tokens = logits.shape()[0], experts = logits.shape()[1];
  const Shape shape = {tokens, options.chosen};
  const Routes result{Array::empty(device, shape, ScalarType::float32, on),
                      Array::empty(device, shape, ScalarType::int32, on)};
  if (tokens == 0) return result;
  const bool narrow = is_half(logits.type());
  const bool direct = narrow || logits.type() == ScalarType::float32;
  const RowView rows = row_view(direct ? logits : cast(logits, ScalarType::float32, on), on);
  std::optional<Array> bias;
  if (options.bias) {
    bias = options.bias->type() == ScalarType::float32
               ? contiguous(*options.bias, on)
               : cast(*options.bias, ScalarType::float32, on);
  }
  const RouteValues values{static_cast<std::int32_t>(tokens),
                           static_cast<std::int32_t>(experts),
                           options.chosen,
                           rows.stride,
                           bias ? bias->address() : 0,
                           options.groups,
                           options.groups_kept,
                           options.scale,
                           options.sigmoid,
                           options.renormalize};
  const auto lanes = static_cast<unsigned>((experts + 31) / 32);
  const std::int64_t blocks = ceil_div(tokens, kRouteWarps);
  const LaunchConfig config{.grid = {static_cast<std::uint32_t>(blocks)},
                            .block = {kRouteWarps * 32},
                            .stream = on,
                            .programmatic_dependent = overlaps_launches(device, blocks)};
  launch(route_kernel(rows.array.type(), static_cast<int>(std::bit_ceil(lanes))).on(device), config,
         rows.array.address(), result.weights.address(), result.experts.address(), values);
  rows.array.use_on(on);
  if (bias) bias->use_on(on);
  result.weights.use_on(on);
  result.experts.use_on(on);
  return result;
}

}  // namespace kernwright::kernels
