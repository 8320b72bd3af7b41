// Checks, views as rows, and the widths of accesses.
#include "kernels_src/operands.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/math.h"
#include "base/scalar_type.h"
#include "kernels_src/copy/copy.h"

#include <bit>
#include <utility>

namespace kernwright::kernels {
namespace {

constexpr std::uint64_t kAccessBytes = 16;
constexpr std::int64_t kPackThreads = 256;
constexpr std::int64_t kManyPackBlocks = 1024;  ///< above, threads take several packs each

/// The stride from row to row in elements, or -1 where the rows are not equally spaced.
std::int64_t equal_row_stride(const Array& array) {
  const auto size = static_cast<std::int64_t>(scalar_size(array.type()));
  const int last = array.ndim() - 1;
  const Shape &shape = array.shape(), &strides = array.strides();
  const auto at = [](const Shape& values, int i) { return values[static_cast<std::size_t>(i)]; };
  if (at(shape, last) > 1 && at(strides, last) != size) return -1;
  std::int64_t stride = 0, outer = 1;  // of the innermost dimension of rows, and how many it spans
  for (int d = last - 1; d >= 0; --d) {
    if (at(shape, d) == 1) continue;
    if (stride == 0) stride = at(strides, d);
    if (at(strides, d) != stride * outer) return -1;
    outer *= at(shape, d);
  }
  if (stride == 0) return outer == 1 ? at(shape, last) : -1;
  return stride > 0 && stride % size == 0 ? stride / size : -1;
}

}  // namespace

void require_floating(const Array& array, const char* function, const char* name) {
  if (is_floating(array.type())) return;
  throw ArgumentError(
      format("{}: {} is a {}, and must have real floating elements; convert it "
             "with .astype(\"float32\")",
             function, name, array.identify()));
}

void require_one_device(const Array& a, const char* a_name, const Array& b, const char* b_name) {
  if (&a.device() == &b.device()) return;
  throw InvalidArgument(
      format("{} and {} must be on the same device: {} and {}; copy one with "
             ".to(device)",
             a_name, b_name, a.identify(), b.identify()));
}

void require_alike(const Array& a, const char* a_name, const Array& b, const char* b_name) {
  require_one_device(a, a_name, b, b_name);
  if (a.shape() == b.shape() && a.type() == b.type()) return;
  throw InvalidArgument(
      format("Incompatible dimensions or dtypes: {} is a {}, {} a {}; they must "
             "have the same shape and dtype",
             a_name, a.identify(), b_name, b.identify()));
}

Array contiguous(const Array& array, const Stream& stream) {
  return array.is_contiguous() ? array : copy(array, stream);
}

Array reshaped(const Array& array, Shape shape, const Stream& stream) {
  const std::size_t size = scalar_size(array.type());
  const bool is_view = reshape_strides(array.shape(), array.strides(), shape, size).has_value();
  return (is_view ? array : copy(array, stream)).reshape(std::move(shape));
}

RowView row_view(const Array& array, const Stream& stream) {
  if (array.ndim() == 0) return {array, 1, 1, 1};
  const std::int64_t cols = array.shape().back();
  const std::int64_t rows = cols == 0 ? 0 : array.size() / cols;
  if (array.is_contiguous()) return {array, rows, cols, cols};
  const std::int64_t stride = equal_row_stride(array);
  if (stride >= cols) return {array, rows, cols, stride};
  return {copy(array, stream), rows, cols, cols};
}

int pack_width(ScalarType type, std::initializer_list<std::uint64_t> bits) {
  std::uint64_t all = kAccessBytes;
  for (const std::uint64_t each : bits) all |= each;
  const std::uint64_t bytes = std::uint64_t{1} << std::countr_zero(all);
  const std::uint64_t size = scalar_size(type);
  return bytes <= size ? 1 : static_cast<int>(bytes / size);
}

PackGrid pack_grid(std::int64_t packs, int width, const Stream& stream, LaunchChoice choice,
                   int many) {
  PackGrid grid;
  const std::int64_t blocks = ceil_div(packs, kPackThreads);
  // Narrower packs, of unaligned arrays, count as packs of larger elements.
  const std::size_t element = kAccessBytes / static_cast<std::size_t>(width);
  grid.packs_each =
      choose(choice, stream.device(), packs * width, element, blocks > kManyPackBlocks ? many : 1);
  grid.wide = packs > (std::int64_t{1} << 30) / width;
  const std::int64_t needed = ceil_div(blocks, grid.packs_each);
  grid.config.grid = {static_cast<std::uint32_t>(needed)};
  grid.config.block = {static_cast<std::uint32_t>(kPackThreads)};
  grid.config.stream = stream;
  return grid;
}

const char* index_type(bool wide) noexcept { return wide ? "unsigned long long" : "unsigned int"; }

}  // namespace kernwright::kernels
