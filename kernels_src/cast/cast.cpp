// One kernel per pair of types.
#include "kernels_src/cast/cast.h"

#include "base/format.h"
#include "kernels_src/cast/cast.cu.h"
#include "kernels_src/copy/copy.h"
#include "kernels_src/family.h"
#include "kernels_src/launch_choices.h"
#include "kernels_src/walk_plan.h"

#include <algorithm>
#include <array>

namespace kernwright::kernels {

namespace {

/// Elements that one access moves, and accesses of a thread.
struct CastPacks {
  int elements = 1;
  int each = 1;
  int rest = 0;  ///< elements behind the last pack
};

const LazyKernel& cast_kernel(ScalarType to, ScalarType from, const CastPacks& packs, bool wide) {
  static const auto& family = *new Family("cast.cu", text::cast_cu);
  const auto key =
      InstanceKey().type(to).type(from).add(packs.elements, 5).add(packs.each, 4).add(wide, 1);
  return family.instance(key, [&] {
    return format("cast<{}, {}, {}, {}, {}>", device_type(to), device_type(from), packs.elements,
                  packs.each, wide ? "unsigned long long" : "unsigned int");
  });
}

/// Makes neighbours along the innermost dimension packs of up to 16 bytes, where both views have
/// them side by side and aligned; of two rows of memory all but a rest, otherwise all.
CastPacks pack_views(WalkPlan<2>& plan, ScalarType to, ScalarType from) {
  CastPacks packs;
  if (plan.dims.empty()) return packs;
  const std::array<std::size_t, 2> size = {scalar_size(to), scalar_size(from)};
  const WalkDim<2>& inner = plan.dims.front();
  std::int64_t pack = 16 / static_cast<std::int64_t>(std::max(size[kTo], size[kFrom]));
  const auto fits = [&](std::uint64_t bits, std::size_t view) {
    return bits % (static_cast<std::uint64_t>(pack) * size[view]) == 0;
  };
  for (const std::size_t view : {kTo, kFrom}) {
    if (inner.stride[view] != static_cast<std::int64_t>(size[view])) return packs;
    while (pack > 1 && !fits(plan.base[view], view)) pack /= 2;
    for (std::size_t d = 1; d < plan.dims.size(); ++d) {
      while (pack > 1 && !fits(static_cast<std::uint64_t>(plan.dims[d].stride[view]), view)) {
        pack /= 2;
      }
    }
  }
  if (plan.dims.size() > 1) {
    while (inner.extent % pack != 0) pack /= 2;
  }
  packs.elements = static_cast<int>(pack);
  packs.rest = static_cast<int>(inner.extent % pack);
  pack_dims(plan.dims, pack);
  return packs;
}

void launch_cast(const Array& to, const Array& from, const WalkPlan<2>& part, CastPacks packs,
                 const Stream& on) {
  constexpr std::uint32_t kBlock = 256;
  // Enough blocks for every GPU; each thread takes more packs when there are more.
  constexpr std::int64_t kMostBlocks = std::int64_t{1} << 19;
  const std::int64_t count = part.count();
  const bool wide = is_wide(count);
  packs.each = choose(LaunchChoice::cast_packs, to.device(), count * packs.elements,
                      scalar_size(to.type()), 2);
  const std::int64_t per_block = kBlock * std::int64_t{packs.each};
  const std::uint32_t blocks = std::max(walk_blocks(count, per_block, kMostBlocks), 1U);
  const LaunchConfig config{.grid = {blocks}, .block = {kBlock}, .stream = on};
  const Kernel& kernel = cast_kernel(to.type(), from.type(), packs, wide).on(to.device());
  const auto send = [&](auto counted) {
    launch(kernel, config, part.base[kTo], part.base[kFrom], part.parameter(), counted, packs.rest);
  };
  wide ? send(static_cast<std::uint64_t>(count)) : send(static_cast<std::uint32_t>(count));
}

}  // namespace

Array cast(const Array& array, ScalarType type, const Stream& stream) {
  if (type == array.type()) return copy(array, stream);
  Device& device = array.device();
  const Stream on = stream ? stream : Stream::legacy(device);
  Array result = Array::empty(device, array.shape(), type, stream);
  if (array.size() == 0) return result;
  WalkPlan<2> plan = plan_strided(result.address(), result.strides(), array.address(),
                                  array.strides(), array.shape());
  const CastPacks packs = pack_views(plan, type, array.type());
  plan.for_each_part([&](const WalkPlan<2>& part) { launch_cast(result, array, part, packs, on); });
  result.use_on(on);
  array.use_on(on);
  return result;
}

}  // namespace kernwright::kernels
