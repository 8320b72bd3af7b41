// Plans a copy, widens its unit, and sends it as a plain copy or as a kernel.
#include "kernels_src/copy/copy.h"

#include "array/shape.h"
#include "base/errors.h"
#include "base/format.h"
#include "kernels_src/copy/copy.cu.h"
#include "kernels_src/copy/copy_lines.h"
#include "kernels_src/copy/tiled_transpose.h"
#include "kernels_src/family.h"
#include "kernels_src/launch_choices.h"
#include "kernels_src/walk_plan.h"
#include "memory/transfer.h"

#include <array>
#include <optional>
#include <span>
#include <utility>

namespace kernwright::kernels {

namespace {

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
void launch_strided_copy(Device& device, const WalkPlan<2>& plan, int log2_unit, const Stream& on) {
  constexpr std::uint32_t kBlock = 256;
  plan.for_each_part([&](const WalkPlan<2>& part) {
    const std::int64_t count = part.count();
    const bool wide = is_wide(count);
    const int each =
        choose(LaunchChoice::copy_units, device, count, std::size_t{1} << log2_unit, 4);
    const LaunchConfig config{
        .grid = {walk_blocks(count, kBlock * std::int64_t{each})}, .block = {kBlock}, .stream = on};
    const Kernel& kernel = copy_kernel(log2_unit, wide, each).on(device);
    const auto send = [&](auto units) {
      launch(kernel, config, part.base[kTo], part.base[kFrom], part.parameter(), units);
    };
    wide ? send(static_cast<std::uint64_t>(count)) : send(static_cast<std::uint32_t>(count));
  });
}

constexpr std::int64_t kLongPiece = std::int64_t{1} << 20;  // bytes

/// Whether the driver copies the bytes: one piece. A long one between addresses that differ by no
/// multiple of 16 bytes takes the kernel for lines (14 MB, 2 bytes apart, on an H200: 34 -> 5.6 us;
/// 100 KB: 1.2 us by the driver, 1.7 by the kernel).
bool is_plain(const WalkPlan<2>& plan) {
  constexpr std::array<std::int64_t, 2> kBytes = {1, 1};
  if (plan.dims.empty()) return true;
  const bool shifted = (plan.base[kTo] ^ plan.base[kFrom]) % 16 != 0;
  return plan.dims.size() == 1 && plan.dims[0].stride == kBytes &&
         !(shifted && plan.dims[0].extent >= kLongPiece);
}

void queue_copy(const Array& to, const Array& from, const Stream& stream) {
  const auto element = static_cast<std::int64_t>(scalar_size(to.type()));
  WalkPlan<2> plan = plan_strided(to.address(), to.strides(), from.address(), from.strides(),
                                  from.shape(), element);
  const Stream on = stream ? stream : Stream::legacy(to.device());
  if (is_plain(plan)) {
    const auto bytes = static_cast<std::size_t>(plan.count());
    copy_on_device(to.device(), plan.base[kTo], plan.base[kFrom], bytes, on);
  } else {
    const int log2_unit = plan.widen_unit(std::array{kTo, kFrom}, 0);
    if (const std::optional<LineCopy> lines = line_copy(plan, log2_unit)) {
      queue_line_copies(to.device(), std::span(&*lines, 1), log2_unit, on);
    } else if (!queue_tiled_transpose(to.device(), plan, log2_unit, on)) {
      launch_strided_copy(to.device(), plan, log2_unit, on);
    }
  }
  to.use_on(on);
  from.use_on(on);
}

/// Lines of the copy and the logarithm of their unit.
std::optional<std::pair<LineCopy, int>> find_lines(const Array& to, const Array& from) {
  if (to.size() == 0 || to.shape() != from.shape() || to.type() != from.type()) return std::nullopt;
  WalkPlan<2> plan = plan_strided(to.address(), to.strides(), from.address(), from.strides(),
                                  from.shape(), static_cast<std::int64_t>(scalar_size(to.type())));
  const int log2_unit = plan.widen_unit(std::array{kTo, kFrom}, 0);
  const std::optional<LineCopy> lines = line_copy(plan, log2_unit);
  if (!lines) return std::nullopt;
  return std::pair(*lines, log2_unit);
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

void copy_elements(const Array& to, const Array& from, const Stream& stream) {
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

void copy_two(const Array& to, const Array& from, const Array& second_to, const Array& second_from,
              const Stream& stream) {
  const auto first = find_lines(to, from), second = find_lines(second_to, second_from);
  if (!first || !second || first->second != second->second) {
    copy_elements(to, from, stream);
    return copy_elements(second_to, second_from, stream);
  }
  queue_line_copies(to.device(), std::array{first->first, second->first}, first->second, stream);
  for (const Array* each : {&to, &from, &second_to, &second_from}) each->use_on(stream);
}

}  // namespace kernwright::kernels
