// The kept axes, and the reduced ones.
#include "kernels_src/axes.h"

#include "array/shape.h"
#include "base/scalar_type.h"

namespace kernwright::kernels {

AxesPlan plan_axes(const Array& array, const std::vector<bool>& goes,
                   std::span<const std::int64_t> to_strides, bool ordered) {
  AxesPlan plan{.from = array.address(), .kept = {}, .reduced = {}};
  std::size_t stays = to_strides.size();
  for (std::size_t i = goes.size(); i-- > 0;) {
    Axis axis{array.shape()[i], {0, array.strides()[i]}};
    if (!goes[i]) axis.stride[kTo] = to_strides[--stays];
    if (axis.extent == 1) continue;
    if (goes[i] && !ordered && axis.stride[kFrom] < 0 && axis.extent > 0) {
      plan.from += static_cast<CUdeviceptr>(axis.stride[kFrom] * (axis.extent - 1));
      axis.stride[kFrom] = -axis.stride[kFrom];
    }
    (goes[i] ? plan.reduced : plan.kept).push_back(axis);
  }
  order_dims(plan.kept, kFrom);
  ordered ? merge_dims(plan.reduced) : order_dims(plan.reduced, kFrom);
  return plan;
}

bool repeats_elements(const Array& array) {
  for (std::size_t i = 0; i < array.shape().size(); ++i) {
    if (array.strides()[i] == 0 && array.shape()[i] > 1) return true;
  }
  return false;
}

}  // namespace kernwright::kernels
