// Sorting and merging axes.
#include "kernels_src/axes.h"

#include "array/shape.h"
#include "base/scalar_type.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

namespace kernwright::kernels {

namespace {

static_assert(sizeof(KeptAxes) == 104 && sizeof(ReducedAxes) == 72);

std::int64_t extents_product(const std::vector<Axis>& axes) {
  std::int64_t count = 1;
  for (const Axis& axis : axes) count *= axis.extent;
  return count;
}

/// Axes along which nothing moves come last.
std::int64_t axis_distance(const Axis& axis) {
  return axis.from == 0 ? std::numeric_limits<std::int64_t>::max() : std::abs(axis.from);
}

void sort_plan_axes(std::vector<Axis>& axes) {
  std::stable_sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) {
    return axis_distance(a) < axis_distance(b);
  });
}

void merge_plan_axes(std::vector<Axis>& axes) {
  std::size_t last = 0;
  for (std::size_t i = 1; i < axes.size(); ++i) {
    Axis& inner = axes[last];
    const Axis& outer = axes[i];
    if (outer.from == inner.from * inner.extent && outer.to == inner.to * inner.extent) {
      inner.extent *= outer.extent;
    } else {
      axes[++last] = outer;
    }
  }
  if (!axes.empty()) axes.resize(last + 1);
}

}  // namespace

std::int64_t AxesPlan::outputs() const noexcept { return extents_product(kept); }

std::int64_t AxesPlan::length() const noexcept { return extents_product(reduced); }

AxesPlan plan_axes(const Array& array, const std::vector<bool>& goes,
                   std::span<const std::int64_t> to_strides, bool ordered) {
  AxesPlan plan{.from = array.address(), .kept = {}, .reduced = {}};
  std::size_t stays = to_strides.size();
  for (std::size_t i = goes.size(); i-- > 0;) {
    Axis axis{array.shape()[i], 0, array.strides()[i]};
    if (!goes[i]) axis.to = to_strides[--stays];
    if (axis.extent == 1) continue;
    if (goes[i] && !ordered && axis.from < 0 && axis.extent > 0) {
      plan.from += static_cast<CUdeviceptr>(axis.from * (axis.extent - 1));
      axis.from = -axis.from;
    }
    (goes[i] ? plan.reduced : plan.kept).push_back(axis);
  }
  sort_plan_axes(plan.kept);
  if (!ordered) sort_plan_axes(plan.reduced);
  merge_plan_axes(plan.kept);
  merge_plan_axes(plan.reduced);
  return plan;
}

KeptAxes kept_axes(const std::vector<Axis>& axes) {
  KeptAxes made{};
  made.ndim = static_cast<std::int32_t>(axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    made.extent[i] = axes[i].extent;
    made.to[i] = axes[i].to;
    made.from[i] = axes[i].from;
  }
  return made;
}

ReducedAxes reduced_axes(const std::vector<Axis>& axes) {
  ReducedAxes made{};
  made.ndim = static_cast<std::int32_t>(axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    made.extent[i] = axes[i].extent;
    made.from[i] = axes[i].from;
  }
  return made;
}

bool elements_are_aligned(const Array& array) {
  std::uint64_t bits = array.address();
  for (const std::int64_t stride : array.strides()) bits |= static_cast<std::uint64_t>(stride);
  return bits % scalar_size(array.type()) == 0;
}

bool repeats_elements(const Array& array) {
  for (std::size_t i = 0; i < array.shape().size(); ++i) {
    if (array.strides()[i] == 0 && array.shape()[i] > 1) return true;
  }
  return false;
}

}  // namespace kernwright::kernels
