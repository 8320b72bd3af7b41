// The order in which copies are walked.
#include "kernels_src/walk_plan.h"

#include "base/errors.h"

namespace kernwright::kernels {

WalkPlan<2> plan_strided(std::uint64_t to, std::span<const std::int64_t> to_strides,
                         std::uint64_t from, std::span<const std::int64_t> from_strides,
                         std::span<const std::int64_t> shape, std::int64_t inner) {
  WalkPlan<2> plan{.base = {to, from}, .dims = {}};
  if (inner != 1) plan.dims.push_back({inner, {1, 1}});
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (shape[i] == 1) continue;
    WalkDim<2> dim{shape[i], {to_strides[i], from_strides[i]}};
    if (dim.stride[kTo] == 0) {
      throw InvalidArgument(
          "the target of a copy repeats elements (a stride of 0); copy into an "
          "array of its own memory");
    }
    if (dim.stride[kTo] < 0) {
      for (const std::size_t view : {kTo, kFrom}) {
        plan.base[view] += static_cast<std::uint64_t>(dim.stride[view] * (dim.extent - 1));
        dim.stride[view] = -dim.stride[view];
      }
    }
    plan.dims.push_back(dim);
  }
  // Neighbouring threads write neighbouring elements, whatever the order of the axes.
  order_dims(plan.dims, kTo);
  return plan;
}

}  // namespace kernwright::kernels
