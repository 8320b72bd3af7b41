// Merging dimensions, and launching over what is left.
#include "kernels_src/strided_plan.h"

#include "base/errors.h"
#include "core/launch_config.h"
#include "kernels_src/family.h"

#include <algorithm>
#include <limits>

namespace kernwright::kernels {

namespace {

/// The kernels' parameter; its layout is that of StridedPair in include/strided.cuh.
struct StridedPair {
  std::int64_t extent[kMaxDims];
  std::int64_t to[kMaxDims];
  std::int64_t from[kMaxDims];
  std::int32_t ndim;
};
static_assert(sizeof(StridedPair) == 200);

constexpr std::uint32_t kBlock = 256;
/// Enough blocks for every GPU; each thread takes more elements when there are more.
constexpr std::int64_t kMaxBlocks = std::int64_t{1} << 20;
/// One grid more than the count must still fit the index.
constexpr std::int64_t kNarrowCount = std::numeric_limits<std::int32_t>::max();

/// Walks a dimension of both from its other end, so that the target's stride is positive.
void flip_negative(StridedPlan& plan, StridedDim& dim) {
  if (dim.to >= 0) return;
  plan.to += static_cast<CUdeviceptr>(dim.to * (dim.extent - 1));
  plan.from += static_cast<CUdeviceptr>(dim.from * (dim.extent - 1));
  dim.to = -dim.to;
  dim.from = -dim.from;
}

void merge_neighbours(std::vector<StridedDim>& dims) {
  std::size_t last = 0;
  for (std::size_t i = 1; i < dims.size(); ++i) {
    StridedDim& inner = dims[last];
    const StridedDim& outer = dims[i];
    if (outer.to == inner.to * inner.extent && outer.from == inner.from * inner.extent) {
      inner.extent *= outer.extent;
    } else {
      dims[++last] = outer;
    }
  }
  if (!dims.empty()) dims.resize(last + 1);
}

}  // namespace

std::int64_t StridedPlan::count() const noexcept {
  std::int64_t count = 1;
  for (const StridedDim& dim : dims) count *= dim.extent;
  return count;
}

StridedPlan plan_strided(CUdeviceptr to, std::span<const std::int64_t> to_strides, CUdeviceptr from,
                         std::span<const std::int64_t> from_strides,
                         std::span<const std::int64_t> shape, std::int64_t inner_extent,
                         std::int64_t inner_stride) {
  StridedPlan plan{.to = to, .from = from, .dims = {}};
  if (inner_extent != 1) plan.dims.push_back({inner_extent, inner_stride, inner_stride});
  const std::size_t inner_dims = plan.dims.size();
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (shape[i] == 1) continue;
    StridedDim dim{shape[i], to_strides[i], from_strides[i]};
    if (dim.to == 0) {
      throw InvalidArgument(
          "the target of a copy repeats elements (a stride of 0); copy into an "
          "array of its own memory");
    }
    flip_negative(plan, dim);
    plan.dims.push_back(dim);
  }
  // Neighbouring threads write neighbouring elements, whatever the order of the axes.
  std::stable_sort(plan.dims.begin() + static_cast<std::ptrdiff_t>(inner_dims), plan.dims.end(),
                   [](const StridedDim& a, const StridedDim& b) { return a.to < b.to; });
  merge_neighbours(plan.dims);
  return plan;
}

void StridedLauncher::launch_one(const StridedPlan& plan, const Stream& stream) const {
  StridedPair view{};
  view.ndim = static_cast<std::int32_t>(plan.dims.size());
  for (std::size_t i = 0; i < plan.dims.size(); ++i) {
    view.extent[i] = plan.dims[i].extent;
    view.to[i] = plan.dims[i].to;
    view.from[i] = plan.dims[i].from;
  }
  // An empty list of dimensions is one element: strides of 0 serve.
  std::int64_t count = plan.count();
  auto narrow_count = static_cast<std::uint32_t>(count);
  const bool wide = count > kNarrowCount;
  CUdeviceptr to = plan.to;
  CUdeviceptr from = plan.from;
  void* arguments[] = {&to, &from, &view,
                       wide ? static_cast<void*>(&count) : static_cast<void*>(&narrow_count)};
  const std::int64_t per_block = std::int64_t{kBlock} * elements_each(count);
  const std::int64_t blocks = std::min((count + per_block - 1) / per_block, kMaxBlocks);
  const LaunchConfig config{
      .grid = {static_cast<std::uint32_t>(blocks)}, .block = {kBlock}, .stream = stream};
  launch_arguments(kernel(wide), config, arguments);
}

void StridedLauncher::launch(const StridedPlan& plan, const Stream& stream) const {
  if (plan.dims.size() <= kMaxDims) return launch_one(plan, stream);
  StridedPlan part = plan;
  const StridedDim outer = part.dims.back();
  part.dims.pop_back();
  for (std::int64_t i = 0; i < outer.extent; ++i) {
    launch(part, stream);
    part.to += static_cast<CUdeviceptr>(outer.to);
    part.from += static_cast<CUdeviceptr>(outer.from);
  }
}

}  // namespace kernwright::kernels
