// Chooses between sorting keys and the bijection; sorts pairs by a bitonic network.
#include "kernels_src/random/permutation.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/math.h"
#include "core/device.h"
#include "kernels_src/family.h"
#include "kernels_src/random/permutation.cu.h"
#include "kernels_src/random/shared_blocks.h"

#include <algorithm>
#include <bit>

namespace kernwright::kernels {

namespace {

constexpr std::uint32_t kOrderThreads = 256;
constexpr std::uint32_t kOrderTileThreads = 1024;
constexpr std::uint64_t kOrderTile = 2048;  // pairs; as the kernels have it
constexpr std::uint64_t kMostOrderBlocks = 4096;

enum class OrderStep : std::uint8_t { few, many, keys, sort_tiles, merge_tiles, merge_far, take };

const Kernel& order_kernel(Device& device, OrderStep step, ScalarType type = ScalarType::int64) {
  static const auto& family = *new Family("permutation.cu", text::permutation_cu);
  const LazyKernel& kernel = family.instance(InstanceKey().add(step, 3).type(type), [&] {
    constexpr std::array names = {"permute_few", "permute_many", "weighted_keys", "sort_tiles",
                                  "merge_tiles", "merge_far",    "take_indices"};
    const std::string name = names[static_cast<std::size_t>(step)];
    const bool is_typed =
        step == OrderStep::few || step == OrderStep::many || step == OrderStep::take;
    return is_typed ? format("{}<{}>", name, device_type(type)) : name;
  });
  return kernel.on(device);
}

LaunchConfig order_blocks(std::uint64_t items, std::uint32_t threads, const Stream& stream,
                          std::uint64_t most = (std::uint64_t{1} << 31) - 1) {
  return shared_blocks(ceil_div(items, threads), most, threads, stream);
}

/// The pairs at `pairs`, a power of two and at least one tile, in order.
void sort_order_pairs(Device& device, CUdeviceptr pairs, std::uint64_t count, const Stream& on) {
  const LaunchConfig tiles = order_blocks(count / 2, kOrderTileThreads, on);
  launch(order_kernel(device, OrderStep::sort_tiles), tiles, pairs);
  for (std::uint64_t size = 2 * kOrderTile; size <= count; size *= 2) {
    for (std::uint64_t stride = size / 2; stride >= kOrderTile; stride /= 2) {
      launch(order_kernel(device, OrderStep::merge_far), order_blocks(count / 2, kOrderThreads, on),
             pairs, size, stride);
    }
    launch(order_kernel(device, OrderStep::merge_tiles), tiles, pairs, size);
  }
}

}  // namespace

Array permutation(Device& device, std::int64_t n, std::int64_t count, ScalarType type,
                  const RandomState& state, const Stream& stream) {
  if (type != ScalarType::int32 && type != ScalarType::int64)
    throw InvalidArgument(format("a permutation is of int32 or int64, not {}", scalar_name(type)));
  if (n < 0 || count < 0 || count > n)
    throw InvalidArgument(format("cannot take {} of {} without replacement", count, n));
  if (type == ScalarType::int32 && n > (std::int64_t{1} << 31))
    throw InvalidArgument(format("int32 does not hold the numbers below {}: ask for int64", n));
  const Stream on = stream ? stream : Stream::legacy(device);
  const CUdeviceptr counter = state.counter_on(device);
  Array result = Array::empty(device, {count}, type, stream);
  if (count == 0) return result;
  const auto all = static_cast<std::uint64_t>(n);
  const auto wanted = static_cast<std::uint64_t>(count);
  if (all <= kOrderTile) {
    launch(order_kernel(device, OrderStep::few, type), order_blocks(1, kOrderTileThreads, on),
           result.address(), wanted, all, state.seed, state.offset, counter);
  } else {
    const int bits = std::bit_width(all - 1);
    launch(order_kernel(device, OrderStep::many, type),
           order_blocks(wanted, kOrderThreads, on, kMostOrderBlocks), result.address(), wanted, all,
           bits, state.seed, state.offset, counter);
  }
  result.use_on(on);
  state.use_on(on);
  return result;
}

Array choose_without_replacement(const Array& weights, std::int64_t count, const RandomState& state,
                                 const Stream& stream) {
  if (weights.type() != ScalarType::float64 || weights.ndim() != 1 || !weights.is_contiguous())
    throw InvalidArgument(
        format("weights are float64 of one axis without gaps, not {}", weights.identify()));
  if (count < 0 || count > weights.size())
    throw InvalidArgument(
        format("cannot take {} of {} without replacement", count, weights.size()));
  Device& device = weights.device();
  const Stream on = stream ? stream : Stream::legacy(device);
  const CUdeviceptr counter = state.counter_on(device);
  Array result = Array::empty(device, {count}, ScalarType::int64, stream);
  if (count == 0) return result;
  const auto n = static_cast<std::uint64_t>(weights.size());
  const std::uint64_t padded = std::max(std::bit_ceil(n), kOrderTile);
  const Array pairs =
      Array::empty(device, {static_cast<std::int64_t>(padded), 2}, ScalarType::uint64, stream);
  launch(order_kernel(device, OrderStep::keys), order_blocks(padded, kOrderThreads, on),
         pairs.address(), padded, weights.address(), n, state.seed, state.offset, counter);
  sort_order_pairs(device, pairs.address(), padded, on);
  const auto wanted = static_cast<std::uint64_t>(count);
  launch(order_kernel(device, OrderStep::take), order_blocks(wanted, kOrderThreads, on),
         result.address(), pairs.address(), wanted);
  for (const Array& used : {weights, pairs, result}) used.use_on(on);
  state.use_on(on);
  return result;
}

}  // namespace kernwright::kernels
