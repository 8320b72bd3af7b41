// Chooses the packs of a row.
#include "kernels_src/movement/triangle.h"

#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "kernels_src/copy/copy.h"
#include "kernels_src/family.h"
#include "kernels_src/movement/triangle.cu.h"
#include "kernels_src/walk_plan.h"

#include <algorithm>
#include <array>
#include <bit>

namespace kernwright::kernels {

namespace {

constexpr std::uint32_t kTriangleThreads = 256;

const Family& triangle_family() {
  static const auto& family = *new Family("triangle.cu", text::triangle_cu);
  return family;
}

const char* triangle_unit(std::size_t size) {
  constexpr std::array units = {"UInt8", "UInt16", "UInt32", "UInt64", "Unit16"};
  return units[static_cast<std::size_t>(std::countr_zero(size))];
}

const LazyKernel& triangle_kernel(std::size_t size, std::int64_t pack, bool wide) {
  const InstanceKey key = InstanceKey().add(0, 1).add(size, 5).add(pack, 5).add(wide, 1);
  return triangle_family().instance(key, [&] {
    return format("triangle<{}, {}, {}>", triangle_unit(size), pack, wide ? "UInt64" : "UInt32");
  });
}

const LazyKernel& diagonal_kernel(std::size_t size) {
  const InstanceKey key = InstanceKey().add(1, 1).add(size, 5).add(0, 6);
  return triangle_family().instance(
      key, [&] { return format("diagonal_matrix<{}>", triangle_unit(size)); });
}

/// Elements of a row that may be moved at once.
std::int64_t triangle_row_pack(const Array& x) {
  const auto item = static_cast<std::int64_t>(scalar_size(x.type()));
  if (x.shape().back() > 1 && x.strides().back() != item) return 1;
  std::uint64_t bits = 16 | x.address() | static_cast<std::uint64_t>(x.shape().back() * item);
  for (std::size_t d = 0; d + 1 < x.shape().size(); ++d) {
    bits |= static_cast<std::uint64_t>(x.strides()[d]);
  }
  return std::clamp((std::int64_t{1} << std::countr_zero(bits)) / item, std::int64_t{1},
                    std::int64_t{8});
}

void require_triangle_matrix(const Array& x, bool whole) {
  if (x.ndim() >= 2 && (!whole || x.ndim() == 2)) return;
  throw InvalidArgument(
      format("{} is no matrix{}", x.identify(), whole ? "" : ": two axes are needed at least"));
}

/// How long diagonal k is.
std::int64_t diagonal_length(std::int64_t rows, std::int64_t columns, std::int64_t k) {
  const std::int64_t length = k >= 0 ? std::min(rows, columns - k) : std::min(rows + k, columns);
  return std::max(length, std::int64_t{0});
}

}  // namespace

Array triangle(const Array& x, std::int64_t k, bool upper, const Stream& stream) {
  require_triangle_matrix(x, false);
  Device& device = x.device();
  Array result = Array::empty(device, x.shape(), x.type(), stream);
  if (x.size() == 0) return result;
  const Stream on = stream ? stream : Stream::legacy(device);
  const std::int64_t rows = x.shape()[x.shape().size() - 2], columns = x.shape().back();
  k = std::clamp(k, -rows - 1, columns + 1);
  const std::int64_t pack = triangle_row_pack(x);
  WalkPlan<1> plan{.base = {x.address()}, .dims = {}};
  plan.add(columns / pack, {x.strides().back() * pack});
  for (std::size_t d = x.shape().size() - 1; d-- > 0;) plan.add(x.shape()[d], {x.strides()[d]});
  if (plan.dims.size() > kWalkDims) return triangle(copy(x, stream), k, upper, stream);
  const std::int64_t count = plan.count();
  const bool wide = is_wide(count);
  const LaunchConfig config{
      .grid = {walk_blocks(count, kTriangleThreads)}, .block = {kTriangleThreads}, .stream = on};
  const Kernel& kernel = triangle_kernel(scalar_size(x.type()), pack, wide).on(device);
  const auto send = [&](auto units) {
    launch(kernel, config, result.address(), x.address(), plan.parameter(), rows, columns, k, upper,
           units);
  };
  wide ? send(static_cast<std::uint64_t>(count)) : send(static_cast<std::uint32_t>(count));
  result.use_on(on);
  x.use_on(on);
  return result;
}

Array diagonal_matrix(const Array& values, std::int64_t rows, std::int64_t columns, std::int64_t k,
                      const Stream& stream) {
  if (rows < 0 || columns < 0) {
    throw InvalidArgument(format("a matrix cannot have {} rows and {} columns", rows, columns));
  }
  const std::int64_t length = diagonal_length(rows, columns, k);
  if (values.ndim() > 1 || (values.ndim() == 1 && values.size() != length)) {
    throw InvalidArgument(
        format("Incompatible dimensions: diagonal {} of {} rows and {} columns "
               "has {} elements, got {}",
               k, rows, columns, length, values.identify()));
  }
  Device& device = values.device();
  Array result = Array::empty(device, {rows, columns}, values.type(), stream);
  if (result.size() == 0) return result;
  const Stream on = stream ? stream : Stream::legacy(device);
  const std::int64_t stride = values.ndim() == 0 ? 0 : values.strides()[0];
  k = std::clamp(k, -rows - 1, columns + 1);
  const LaunchConfig config{.grid = {walk_blocks(result.size(), kTriangleThreads)},
                            .block = {kTriangleThreads},
                            .stream = on};
  launch(diagonal_kernel(scalar_size(values.type())).on(device), config, result.address(),
         values.address(), stride, rows, columns, k);
  result.use_on(on);
  values.use_on(on);
  return result;
}

Array diagonal(const Array& x, std::int64_t k, const Stream& stream) {
  require_triangle_matrix(x, true);
  return copy(x.diagonal(k, 0, 1), stream);
}

}  // namespace kernwright::kernels
