// Strides for tensor maps, and batches in two dimensions.
#include "kernels_src/gemm/gemm_layout.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/math.h"
#include "kernels_src/copy/copy.h"
#include "kernels_src/matmul/matmul_batch.h"

#include <algorithm>
#include <utility>

namespace kernwright::kernels {
namespace {

constexpr std::int64_t kMapUnit = 16;      // of addresses and strides, in bytes
constexpr std::int64_t kPaddedUnit = 128;  // of the strides of copies that tiles read fast
constexpr std::int64_t kMostExtent = 2'000'000'000;  // coordinates are of 32 bits

std::size_t axis_from_end(const Array& array, int from_end) {
  return array.shape().size() - static_cast<std::size_t>(from_end);
}

bool is_map_stride(std::int64_t stride) { return stride > 0 && stride % kMapUnit == 0; }

/// Whether the elements of the dense axis follow each other, with lines fit for the steps of maps.
/// Lines may overlap, as the windows of a convolution do.
bool is_dense(const Array& array, int dense, int other) {
  const auto element = static_cast<std::int64_t>(scalar_size(array.type()));
  const std::int64_t extent = extent_from_end(array, dense);
  if (extent != 1 && stride_from_end(array, dense) != element) return false;
  return extent_from_end(array, other) == 1 || is_map_stride(stride_from_end(array, other));
}

bool has_map_batch(const Array& array) {
  for (int d = 3; d <= array.ndim(); ++d) {
    if (extent_from_end(array, d) != 1 && !is_map_stride(stride_from_end(array, d))) {
      return false;
    }
  }
  return array.address() % kMapUnit == 0;
}

/// Dimensions with repeated memory have the extent 1.
Array without_repeats(const Array& array) {
  Array once = array;
  for (int d = 3; d <= once.ndim(); ++d) {
    if (stride_from_end(once, d) == 0 && extent_from_end(once, d) > 1) {
      once = once.slice(static_cast<int>(axis_from_end(once, d)), 0, 1, 1);
    }
  }
  return once;
}

/// Bytes between the lines of a copy. Lines that begin inside of lines of L2 load slower: large
/// products took up to 1.7 times as long on an H100.
std::int64_t padded_pitch(std::int64_t bytes) {
  const std::int64_t unit = bytes < 4 * kPaddedUnit ? kMapUnit : kPaddedUnit;
  return round_up(bytes, unit);
}

/// Whether a copy has dense rows: unless the columns are dense.
bool copies_dense_rows(const Array& array) {
  const auto element = static_cast<std::int64_t>(scalar_size(array.type()));
  return extent_from_end(array, 2) == 1 || stride_from_end(array, 2) != element ||
         stride_from_end(array, 1) == element;
}

/// For a copy into lines of whole units.
GemmOperand padded_copy(const Array& array, const Stream& stream, std::optional<bool> wanted_rows) {
  const auto element = static_cast<std::int64_t>(scalar_size(array.type()));
  const bool dense_rows = wanted_rows.value_or(copies_dense_rows(array));
  const int dense = dense_rows ? 1 : 2;
  Shape shape = array.shape();
  const std::size_t last = axis_from_end(array, 1), before = axis_from_end(array, 2);
  if (!dense_rows) std::swap(shape[last], shape[before]);
  const std::int64_t wanted = shape[last];
  shape[last] = padded_pitch(wanted * element) / element;
  Array copy = Array::empty(array.device(), std::move(shape), array.type(), stream)
                   .slice(static_cast<int>(last), 0, wanted, 1);
  if (dense == 2) {
    std::vector<int> axes(array.shape().size());
    for (std::size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int>(i);
    std::swap(axes[last], axes[before]);
    copy = copy.transpose(axes);
  }
  return {std::move(copy), dense_rows, array};
}

}  // namespace

std::int64_t operand_pitch(std::int64_t bytes) noexcept {
  return bytes % kMapUnit == 0 ? bytes : padded_pitch(bytes);
}

void GemmOperand::fill(const Stream& stream) const {
  if (source) copy_elements(array, *source, stream);
}

GemmOperand gemm_operand(const Array& array, const Stream& stream, std::optional<bool> dense_rows) {
  GemmOperand operand = plan_operand(array, stream, dense_rows);
  operand.fill(stream);
  operand.source.reset();
  return operand;
}

const Kernel& kernel_for(std::initializer_list<const GemmOperand*> operands,
                         const LazyKernel& kernel, Device& device, KernelsAhead& kernels,
                         const Stream& stream) {
  std::vector<const GemmOperand*> copied;
  for (const GemmOperand* each : operands) {
    if (each->source) copied.push_back(each);
  }
  if (!copied.empty()) kernels.begin(kernel, device);
  if (copied.size() == 2) {
    copy_two(copied[0]->array, *copied[0]->source, copied[1]->array, *copied[1]->source, stream);
  } else {
    for (const GemmOperand* each : copied) each->fill(stream);
  }
  return kernels.on(kernel, device);
}

bool has_dense_rows(const Array& array) {
  const Array once = without_repeats(array);
  if (!has_map_batch(once)) return copies_dense_rows(once);
  return is_dense(once, 1, 2) || (!is_dense(once, 2, 1) && copies_dense_rows(once));
}

GemmOperand plan_operand(const Array& array, const Stream& stream, std::optional<bool> dense_rows) {
  Array once = without_repeats(array);
  if (has_map_batch(once)) {
    if (dense_rows.value_or(true) && is_dense(once, 1, 2)) return {std::move(once), true};
    if (!dense_rows.value_or(false) && is_dense(once, 2, 1)) return {std::move(once), false};
  }
  return padded_copy(once, stream, dense_rows);
}

GemmOperands plan_operands(const Array& a, const Array& b, const Stream& stream) {
  if (is_half(a.type())) return {plan_operand(a, stream), plan_operand(b, stream)};
  return {plan_operand(a, stream, true), plan_operand(b, stream, false)};
}

std::optional<GemmLayout> gemm_layout(const GemmOperand& a, const GemmOperand& b,
                                      const Shape& shape) {
  GemmLayout layout;
  layout.rows = extent_from_end(a.array, 2);
  layout.inner = extent_from_end(a.array, 1);
  layout.columns = extent_from_end(b.array, 1);
  layout.a_stride = stride_from_end(a.array, a.dense_rows ? 2 : 1);
  layout.b_stride = stride_from_end(b.array, b.dense_rows ? 2 : 1);
  std::vector<BatchDim> dims = batch_dims(a.array, b.array, shape);
  if (a.dense_rows && !dims.empty() && dims.front().b == 0 && dims.front().a != 0 &&
      (layout.rows == 1 || dims.front().a == layout.rows * layout.a_stride)) {
    if (layout.rows == 1) layout.a_stride = dims.front().a;
    layout.rows *= dims.front().extent;
    dims.erase(dims.begin());
  }
  if (dims.size() > 2) return std::nullopt;
  if (!dims.empty()) layout.within = dims[0];
  if (dims.size() > 1) layout.outer = dims[1];
  const std::int64_t most = std::max({layout.rows, layout.columns, layout.inner});
  if (most > kMostExtent || layout.batches() > kMostExtent) return std::nullopt;
  const double tiles = static_cast<double>(layout.rows / 64 + 8) *
                       static_cast<double>(layout.columns / 64 + 8) *
                       static_cast<double>(layout.batches());
  if (tiles > 1e8) return std::nullopt;
  return layout;
}

}  // namespace kernwright::kernels
