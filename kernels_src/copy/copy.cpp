// Plans a copy, widens its unit, and sends it as a plain copy or as a kernel.
#include "kernels_src/copy/copy.h"

#include "array/shape.h"
#include "base/errors.h"
#include "base/format.h"
#include "kernels_src/copy/copy.cu.h"
#include "kernels_src/copy/tiled_transpose.h"
#include "kernels_src/family.h"
#include "kernels_src/launch_choices.h"
#include "kernels_src/strided_plan.h"
#include "kernels_src/walk_plan.h"
#include "memory/transfer.h"

#include <array>
#include <bit>

namespace kernwright::kernels {

namespace {

constexpr std::uint64_t kWidestUnit = 16;

/// The kernel for a unit, a width of the index and so many units of a thread.
const LazyKernel& copy_kernel(int log2_unit, bool wide, int units) {
  static const auto& family = *new Family("copy.cu", text::copy_cu);
  return family.instance(InstanceKey().add(log2_unit, 3).add(wide, 1).add(units, 4), [&] {
    constexpr std::array types = {"unsigned char", "unsigned short", "unsigned int",
                                  "unsigned long long", "Unit16"};
    return format("strided_copy<{}, {}, {}>", types[static_cast<std::size_t>(log2_unit)],
                  wide ? "unsigned long long" : "unsigned int", units);
  });
}

/// Walks the units in the order of the plan's dimensions.
void launch_strided_copy(Device& device, const StridedPlan& plan, int log2_unit, const Stream& on) {
  constexpr std::uint32_t kBlock = 256;
  WalkPlan<2> walk{.base = {plan.to, plan.from}, .dims = {}};
  for (const StridedDim& dim : plan.dims) walk.dims.push_back({dim.extent, {dim.to, dim.from}});
  walk.for_each_part([&](const WalkPlan<2>& part) {
    const std::int64_t count = part.count();
    const bool wide = is_wide(count);
    const int each =
        choose(LaunchChoice::copy_units, device, count, std::size_t{1} << log2_unit, 4);
    const LaunchConfig config{
        .grid = {walk_blocks(count, kBlock * std::int64_t{each})}, .block = {kBlock}, .stream = on};
    const Kernel& kernel = copy_kernel(log2_unit, wide, each).on(device);
    const auto send = [&](auto units) {
      launch(kernel, config, part.base[0], part.base[1], part.parameter(), units);
    };
    wide ? send(static_cast<std::uint64_t>(count)) : send(static_cast<std::uint32_t>(count));
  });
}

/// Makes the innermost bytes units of up to 16 bytes; the logarithm of their size.
int widen_unit(StridedPlan& plan) {
  std::uint64_t alignment = kWidestUnit | plan.to | plan.from;
  const bool inner_bytes = !plan.dims.empty() && plan.dims[0].to == 1 && plan.dims[0].from == 1;
  if (!inner_bytes) return 0;
  for (std::size_t i = 0; i < plan.dims.size(); ++i) {
    const StridedDim& dim = plan.dims[i];
    if (i == 0) {
      alignment |= static_cast<std::uint64_t>(dim.extent);
    } else {
      alignment |= static_cast<std::uint64_t>(dim.to) | static_cast<std::uint64_t>(dim.from);
    }
  }
  const int log2_unit = std::countr_zero(alignment);
  const std::int64_t unit = std::int64_t{1} << log2_unit;
  StridedDim& inner = plan.dims[0];
  inner = {inner.extent / unit, unit, unit};
  if (inner.extent == 1) plan.dims.erase(plan.dims.begin());
  return log2_unit;
}

bool is_plain(const StridedPlan& plan) {
  return plan.dims.empty() ||
         (plan.dims.size() == 1 && plan.dims[0].to == 1 && plan.dims[0].from == 1);
}

void queue_copy(const Array& to, const Array& from, const Stream& stream) {
  const auto element = static_cast<std::int64_t>(scalar_size(to.type()));
  StridedPlan plan = plan_strided(to.address(), to.strides(), from.address(), from.strides(),
                                  from.shape(), element);
  const Stream on = stream ? stream : Stream::legacy(to.device());
  if (is_plain(plan)) {
    const auto bytes = static_cast<std::size_t>(plan.count());
    copy_on_device(to.device(), plan.to, plan.from, bytes, on);
  } else {
    const int log2_unit = widen_unit(plan);
    if (!queue_tiled_transpose(to.device(), plan, log2_unit, on)) {
      launch_strided_copy(to.device(), plan, log2_unit, on);
    }
  }
  to.use_on(on);
  from.use_on(on);
}

}  // namespace

bool may_overlap(const Array& a, const Array& b) {
  if (&a.device() != &b.device() || a.size() == 0 || b.size() == 0) return false;
  const ByteRange ra = byte_range(a.shape(), a.strides(), scalar_size(a.type()));
  const ByteRange rb = byte_range(b.shape(), b.strides(), scalar_size(b.type()));
  const auto begin = [](const Array& x, std::int64_t offset) {
    return x.address() + static_cast<CUdeviceptr>(offset);
  };
  return begin(a, ra.low) < begin(b, rb.high) && begin(b, rb.low) < begin(a, ra.high);
}

Array copy(const Array& array, const Stream& stream) {
  Array result = Array::empty(array.device(), array.shape(), array.type(), stream);
  if (array.size() > 0) queue_copy(result, array, stream);
  return result;
}

void copy_into(const Array& to, const Array& from, const Stream& stream) {
  if (to.shape() != from.shape() || to.type() != from.type() || &to.device() != &from.device()) {
    throw InvalidArgument(format("cannot copy {} into {}: shape, type and device must be the same",
                                 from.identify(), to.identify()));
  }
  if (to.read_only()) {
    throw InvalidArgument(format("cannot write to {}: it is read-only", to.identify()));
  }
  if (to.size() == 0) return;
  const bool same_view = to.address() == from.address() && to.strides() == from.strides();
  if (same_view) return;
  if (may_overlap(to, from)) {
    queue_copy(to, copy(from, stream), stream);
  } else {
    queue_copy(to, from, stream);
  }
}

}  // namespace kernwright::kernels
