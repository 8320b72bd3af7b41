// Phases, paddings and extents of the product.
#include "kernels_src/conv/conv_plan.h"

#include "base/math.h"

#include <algorithm>
#include <numeric>

namespace kernwright::kernels {
namespace {

constexpr std::int64_t kUnit = 16;             // bytes; of the lines that tensor maps take
constexpr std::int32_t kManyRows = 128;        // that fill tiles of products
constexpr std::int64_t kMostGridRows = 65535;  // of a grid's third dimension

ConvAxis conv_axis(const ConvGeometry& given, std::size_t axis, bool transposed) {
  const std::int32_t size = given.kernel[axis], stride = given.stride[axis];
  const std::int32_t padding = given.padding[axis], dilation = given.dilation[axis];
  if (!transposed)
    return {.taps = size,
            .stride = stride,
            .dilation = dilation,
            .first = -padding,
            .count = given.out[axis]};
  // Without a stride the taps are as far apart as the dilation. Else all distances may occur.
  const std::int32_t apart = stride == 1 ? dilation : 1;
  const std::int32_t taps = (size - 1) * dilation / (stride * apart) + 1;
  const std::int32_t first_row = padding / stride;
  return {.taps = taps,
          .stride = 1,
          .dilation = apart,
          .first = first_row - (taps - 1) * apart,
          .count = (given.out[axis] - 1 + padding) / stride - first_row + 1,
          .shuffle = stride,
          .offset = padding - first_row * stride};
}

}  // namespace

ConvPlan::ConvPlan(const ConvGeometry& geometry, const ConvSizes& sizes, std::size_t element,
                   std::int32_t spare, bool may_part)
    : y(conv_axis(geometry, 0, sizes.transposed)), x(conv_axis(geometry, 1, sizes.transposed)) {
  step = std::gcd(x.stride, x.dilation);
  row_step = x.stride / step;
  period = x.dilation / step;
  phases = std::min(period, x.count);
  const std::int32_t beyond = ceil_div(std::max(x.taps - row_step, 0), row_step);
  columns = ceil_div(x.count, period) + beyond;
  const auto bytes = static_cast<std::int64_t>(element);
  const std::int64_t position = std::int64_t{row_step} * y.taps * bytes;
  padded_channels = sizes.channels + spare;
  while (position * padded_channels % kUnit != 0) ++padded_channels;
  rows = sizes.batch * phases * y.count * columns;
  const std::int64_t unit = kUnit / bytes;
  positions = rows * row_step;
  parted = may_part && period == 1 && y.count == 1 && y.shuffle == 1 && x.shuffle == 1 &&
           x.count >= kManyRows;
  all_rows = parted ? x.count : ceil_div(rows, unit) * unit;
  all_positions = parted ? positions : (all_rows + beyond) * row_step;
  row_elements = std::int64_t{row_step} * y.taps * padded_channels;
  inner = std::int64_t{x.taps} * y.taps * padded_channels;
  products = std::int64_t{sizes.outputs} * y.shuffle * x.shuffle;
}

bool is_direct(const ConvGeometry& geometry, const ConvSizes& sizes) {
  constexpr std::int64_t kShortSum = 32, kFewOutputs = 4, kLongSum = 512;
  std::int64_t taps = 1, residues = 1;
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const std::int64_t shuffle = sizes.transposed ? geometry.stride[axis] : 1;
    taps *= ceil_div(geometry.kernel[axis], shuffle);
    residues *= shuffle;
  }
  const std::int64_t sum = taps * sizes.channels;
  return sum <= kShortSum || (sizes.outputs * residues <= kFewOutputs && sum <= kLongSum) ||
         std::int64_t{geometry.groups} * geometry.kernel[0] * geometry.dilation[0] > kMostGridRows;
}

}  // namespace kernwright::kernels
