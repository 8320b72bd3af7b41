// Counts a mask by tiles, totals the counts, writes the positions.
#include "array/shape.h"
#include "base/errors.h"
#include "base/format.h"
#include "base/math.h"
#include "core/device.h"
#include "kernels_src/cast/cast.h"
#include "kernels_src/copy/copy.h"
#include "kernels_src/family.h"
#include "kernels_src/index/mask_positions.cu.h"
#include "kernels_src/index/positions.h"
#include "kernels_src/index/running_total.h"
#include "kernels_src/walk_plan.h"

#include <array>
#include <string>

namespace kernwright::kernels {

namespace {

constexpr std::uint32_t kMaskThreads = 256;
constexpr std::int64_t kMaskTile = 4096;

enum class MaskKernel : std::uint8_t { count, write, repeat, where };

const Family& mask_family() {
  static const auto& family = *new Family("mask_positions.cu", text::mask_positions_cu);
  return family;
}

const LazyKernel& mask_kernel(MaskKernel kind, const char* name) {
  return mask_family().instance(InstanceKey().add(kind, 2).add(0, 4),
                                [&] { return std::string(name); });
}

const LazyKernel& where_kernel(int log2_unit, bool wide) {
  const InstanceKey key = InstanceKey().add(MaskKernel::where, 2).add(log2_unit, 3).add(wide, 1);
  return mask_family().instance(key, [&] {
    constexpr std::array units = {"UInt8", "UInt16", "UInt32", "UInt64", "Unit16"};
    return format("write_where<{}, {}>", units[static_cast<std::size_t>(log2_unit)],
                  wide ? "UInt64" : "UInt32");
  });
}

void require_mask(const Array& mask) {
  if (mask.type() != ScalarType::boolean) {
    throw InvalidArgument(format("a mask is an array of bool, got {}", mask.identify()));
  }
}

}  // namespace

Array true_positions(const Array& given, const Stream& stream) {
  require_mask(given);
  Device& device = given.device();
  if (given.size() == 0) return Array::empty(device, {0}, ScalarType::int64, stream);
  const Stream on = stream ? stream : Stream::legacy(device);
  const Array mask = given.is_contiguous() ? given : copy(given, stream);
  const std::int64_t size = mask.size();
  const std::int64_t tiles = ceil_div(size, kMaskTile);
  const Array counts = Array::empty(device, {tiles}, ScalarType::int64, stream);
  const LaunchConfig config{
      .grid = {static_cast<std::uint32_t>(tiles)}, .block = {kMaskThreads}, .stream = on};
  launch(mask_kernel(MaskKernel::count, "count_true").on(device), config, mask.address(),
         counts.address(), size);
  const Array total = running_total(counts, on);
  mask.use_on(on);
  Array positions = Array::empty(device, {read_number(total, on)}, ScalarType::int64, stream);
  if (positions.size() == 0) return positions;
  launch(mask_kernel(MaskKernel::write, "write_true").on(device), config, mask.address(),
         counts.address(), positions.address(), size);
  for (const Array* const used : {&mask, &counts, &static_cast<const Array&>(positions)}) {
    used->use_on(on);
  }
  return positions;
}

Array repeat_positions(const Array& counts, const Stream& stream) {
  if (counts.ndim() != 1) {
    throw InvalidArgument(
        format("the counts of a repeat stand along one axis, got {}", counts.identify()));
  }
  Device& device = counts.device();
  const Stream on = stream ? stream : Stream::legacy(device);
  if (counts.size() == 0) return Array::empty(device, {0}, ScalarType::int64, stream);
  const Array begins = cast(counts, ScalarType::int64, stream);
  const Array total = running_total(begins, on);
  Array positions = Array::empty(device, {read_number(total, on)}, ScalarType::int64, stream);
  if (positions.size() == 0) return positions;
  const LaunchConfig config{
      .grid = {walk_blocks(positions.size(), kMaskThreads)}, .block = {kMaskThreads}, .stream = on};
  launch(mask_kernel(MaskKernel::repeat, "repeat_positions").on(device), config, begins.address(),
         positions.address(), begins.size(), positions.size());
  begins.use_on(on);
  positions.use_on(on);
  return positions;
}

void put_where(const Array& x, const Array& mask, const Array& given, const Stream& stream) {
  require_mask(mask);
  if (x.shape() != mask.shape() || x.shape() != given.shape() || x.type() != given.type()) {
    throw InvalidArgument(format("Incompatible dimensions: cannot write {} into {} by {}",
                                 given.identify(), x.identify(), mask.identify()));
  }
  if (x.read_only()) {
    throw InvalidArgument(format("cannot write to {}: it is read-only", x.identify()));
  }
  if (x.size() == 0) return;
  const Stream on = stream ? stream : Stream::legacy(x.device());
  const Array values = may_overlap(x, given) ? copy(given, stream) : given;
  WalkPlan<3> plan{.base = {x.address(), values.address(), mask.address()}, .dims = {}};
  plan.add(static_cast<std::int64_t>(scalar_size(x.type())), {1, 1, 0});
  for (std::size_t d = x.shape().size(); d-- > 0;) {
    plan.add(x.shape()[d], {x.strides()[d], values.strides()[d], mask.strides()[d]});
  }
  constexpr std::array<std::size_t, 2> kMoved = {0, 1};
  const int log2_unit = plan.widen_unit(kMoved, 0);
  plan.for_each_part([&](const WalkPlan<3>& part) {
    const std::int64_t count = part.count();
    const bool wide = is_wide(count);
    const LaunchConfig config{
        .grid = {walk_blocks(count, kMaskThreads)}, .block = {kMaskThreads}, .stream = on};
    const Kernel& kernel = where_kernel(log2_unit, wide).on(x.device());
    const auto send = [&](auto units) {
      launch(kernel, config, part.base[0], part.base[1], part.base[2], part.parameter(), units);
    };
    wide ? send(static_cast<std::uint64_t>(count)) : send(static_cast<std::uint32_t>(count));
  });
  for (const Array* const used : {&x, &values, &mask}) used->use_on(on);
}

}  // namespace kernwright::kernels
