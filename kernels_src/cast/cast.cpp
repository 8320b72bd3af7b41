// One kernel per pair of types.
#include "kernels_src/cast/cast.h"

#include "base/format.h"
#include "kernels_src/cast/cast.cu.h"
#include "kernels_src/copy/copy.h"
#include "kernels_src/family.h"
#include "kernels_src/launch_choices.h"
#include "kernels_src/walk_plan.h"

namespace kernwright::kernels {

namespace {

const LazyKernel& cast_kernel(ScalarType to, ScalarType from, bool wide) {
  static const auto& family = *new Family("cast.cu", text::cast_cu);
  return family.instance(InstanceKey().type(to).type(from).add(wide, 1), [&] {
    return format("cast<{}, {}, {}>", device_type(to), device_type(from),
                  wide ? "unsigned long long" : "unsigned int");
  });
}

void launch_cast(const Array& to, const Array& from, const WalkPlan<2>& part, const Stream& on) {
  constexpr std::uint32_t kBlock = 256;
  // Enough blocks for every GPU; each thread takes more elements when there are more.
  constexpr std::int64_t kMostBlocks = std::int64_t{1} << 20;
  const std::int64_t count = part.count();
  const bool wide = is_wide(count);
  const int each =
      choose(LaunchChoice::cast_elements, to.device(), count, scalar_size(to.type()), 1);
  const LaunchConfig config{.grid = {walk_blocks(count, kBlock * std::int64_t{each}, kMostBlocks)},
                            .block = {kBlock},
                            .stream = on};
  const Kernel& kernel = cast_kernel(to.type(), from.type(), wide).on(to.device());
  const auto send = [&](auto elements) {
    launch(kernel, config, part.base[kTo], part.base[kFrom], part.parameter(), elements);
  };
  wide ? send(static_cast<std::uint64_t>(count)) : send(static_cast<std::uint32_t>(count));
}

/// Whether each element lies at a multiple of its size, as the kernels read it.
bool is_aligned(const Array& array) {
  const std::size_t size = scalar_size(array.type());
  std::uint64_t bits = array.address();
  for (const std::int64_t stride : array.strides()) bits |= static_cast<std::uint64_t>(stride);
  return bits % size == 0;
}

}  // namespace

Array cast(const Array& array, ScalarType type, const Stream& stream) {
  if (type == array.type() || !is_aligned(array)) {
    Array same = copy(array, stream);
    return type == array.type() ? same : cast(same, type, stream);
  }
  Device& device = array.device();
  const Stream on = stream ? stream : Stream::legacy(device);
  Array result = Array::empty(device, array.shape(), type, stream);
  if (array.size() == 0) return result;
  const WalkPlan<2> plan = plan_strided(result.address(), result.strides(), array.address(),
                                        array.strides(), array.shape());
  plan.for_each_part([&](const WalkPlan<2>& part) { launch_cast(result, array, part, on); });
  result.use_on(on);
  array.use_on(on);
  return result;
}

}  // namespace kernwright::kernels
