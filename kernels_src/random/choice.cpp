// Running sums and searches; gathers in units of up to 16 bytes.
#include "kernels_src/random/choice.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/math.h"
#include "core/device.h"
#include "kernels_src/copy/copy.h"
#include "kernels_src/family.h"
#include "kernels_src/random/choice.cu.h"
#include "kernels_src/random/shared_blocks.h"

#include <algorithm>
#include <bit>

namespace kernwright::kernels {

namespace {

constexpr std::uint32_t kChoiceThreads = 256;
constexpr std::uint32_t kChoiceScanThreads = 1024;
constexpr std::uint64_t kMostChoiceBlocks = 8192;

const Family& choice_family() {
  static const auto& made = *new Family("choice.cu", text::choice_cu);
  return made;
}

const LazyKernel& choice_gather_kernel(int log2_unit, ScalarType index) {
  return choice_family().instance(InstanceKey().add(log2_unit + 1, 3).type(index), [&] {
    constexpr std::array types = {"UInt8", "UInt16", "UInt32", "UInt64", "Unit16"};
    return format("gather_rows<{}, {}>", types[static_cast<std::size_t>(log2_unit)],
                  device_type(index));
  });
}

LaunchConfig choice_blocks(std::uint64_t items, const Stream& stream) {
  return shared_blocks(ceil_div(items, kChoiceThreads), kMostChoiceBlocks, kChoiceThreads, stream);
}

}  // namespace

Array choose_repeatedly(const Array& weights, std::int64_t count, const RandomState& state,
                        const Stream& stream) {
  if (weights.type() != ScalarType::float64 || weights.ndim() != 1 || !weights.is_contiguous())
    throw InvalidArgument(
        format("weights are float64 of one axis without gaps, not {}", weights.identify()));
  if (count < 0 || (count > 0 && weights.size() == 0))
    throw InvalidArgument(format("cannot choose {} of {}", count, weights.size()));
  Device& device = weights.device();
  const Stream on = stream ? stream : Stream::legacy(device);
  const CUdeviceptr counter = state.counter_on(device);
  Array result = Array::empty(device, {count}, ScalarType::int64, stream);
  if (count == 0) return result;
  const auto n = static_cast<std::uint64_t>(weights.size());
  const auto wanted = static_cast<std::uint64_t>(count);
  const Array sums = Array::empty(device, weights.shape(), ScalarType::float64, stream);
  LaunchConfig one;
  one.block = {kChoiceScanThreads};
  one.stream = on;
  launch(choice_family().instance(0, [] { return "cumulate"; }).on(device), one, sums.address(),
         weights.address(), n);
  launch(choice_family().instance(1, [] { return "draw_weighted<Int64>"; }).on(device),
         choice_blocks(wanted, on), result.address(), wanted, sums.address(), n, state.seed,
         state.offset, counter);
  for (const Array& used : {weights, sums, result}) used.use_on(on);
  state.use_on(on);
  return result;
}

Array rows_by_index(const Array& array, const Array& index, const Stream& stream) {
  const bool whole = index.type() == ScalarType::int32 || index.type() == ScalarType::int64;
  if (!whole || index.ndim() != 1 || !index.is_contiguous() || array.ndim() == 0 ||
      &array.device() != &index.device())
    throw InvalidArgument(
        format("rows of {} are gathered by int32 or int64 of one axis on the same device, not {}",
               array.identify(), index.identify()));
  Device& device = array.device();
  const Stream on = stream ? stream : Stream::legacy(device);
  Shape shape = array.shape();
  shape[0] = index.size();
  Array result = Array::empty(device, shape, array.type(), stream);
  if (result.size() == 0) return result;
  const Array from = array.is_contiguous() ? array : copy(array, stream);
  const auto rows = static_cast<std::uint64_t>(index.size());
  const std::uint64_t bytes = result.nbytes() / rows;
  const int log2_unit = std::min(4, std::countr_zero(bytes | from.address() | result.address()));
  const std::uint64_t units = bytes >> log2_unit;
  launch(choice_gather_kernel(log2_unit, index.type()).on(device), choice_blocks(rows * units, on),
         result.address(), from.address(), index.address(), rows, units);
  for (const Array& used : {from, index, result}) used.use_on(on);
  return result;
}

}  // namespace kernwright::kernels
