// Checks and launches of the solvers.
#include "kernels_src/linalg/batches.h"

#include "array/shape.h"
#include "base/errors.h"
#include "base/format.h"
#include "kernels_src/copy/copy.h"

#include <limits>
#include <numeric>
#include <utility>
#include <vector>

namespace kernwright::kernels {

namespace {

constexpr std::int64_t kMostMatrices = std::numeric_limits<std::int32_t>::max();
constexpr std::uint32_t kStagedBytes = 40 * 1024;  // beside the sums of a block, below 48 KB

int narrow_extent(std::int64_t extent, const Array& array) {
  if (extent > std::numeric_limits<std::int32_t>::max() / 2) {
    throw InvalidArgument(format("the matrices of {} are too large", array.identify()));
  }
  return static_cast<int>(extent);
}

}  // namespace

MatrixBatch::MatrixBatch(const Array& array, const char* function, const Stream& stream)
    : array_(array), on_(stream ? stream : Stream::legacy(array.device())) {
  const ScalarType type = array.type();
  if (type != ScalarType::float32 && type != ScalarType::float64 && type != ScalarType::complex64 &&
      type != ScalarType::complex128) {
    throw ArgumentError(
        format("{}() takes float32, float64, complex64 or complex128, got a {}: "
               "convert it with .astype()",
               function, array.identify()));
  }
  if (array.ndim() < 2) {
    throw InvalidArgument(format("{}() takes matrices, which have two dimensions or more, got a {}",
                                 function, array.identify()));
  }
  batch_.assign(array.shape().begin(), array.shape().end() - 2);
  for (const std::int64_t extent : batch_) count_ *= extent;
  rows_ = narrow_extent(array.shape()[array.shape().size() - 2], array);
  columns_ = narrow_extent(array.shape().back(), array);
  if (count_ > kMostMatrices) {
    throw InvalidArgument(format("{}() takes at most {} matrices, got a {}: pass it in parts",
                                 function, kMostMatrices, array.identify()));
  }
}

ScalarType MatrixBatch::real_type() const noexcept { return real_part_type(type()); }

ScalarType MatrixBatch::complex_type() const noexcept {
  return real_type() == ScalarType::float32 ? ScalarType::complex64 : ScalarType::complex128;
}

void MatrixBatch::require_square(const char* function) const {
  if (rows_ == columns_) return;
  throw InvalidArgument(format("Incompatible dimensions: {}() takes square matrices, got a {}",
                               function, array_.identify()));
}

Array MatrixBatch::row_major() const { return copy(array_, on_); }

Array MatrixBatch::column_major() const { return copy(swapped(array_), on_); }

Array MatrixBatch::make(const Shape& tail, ScalarType type) const {
  Shape shape = batch_;
  for (const std::int64_t extent : tail) shape.push_back(extent);
  return Array::empty(device(), std::move(shape), type, on_);
}

std::uint32_t MatrixBatch::shared_bytes(std::int64_t elements, ScalarType type) const noexcept {
  const auto bytes = static_cast<std::uint64_t>(elements) * scalar_size(type);
  return bytes <= kStagedBytes ? static_cast<std::uint32_t>(bytes) : 0;
}

LaunchConfig MatrixBatch::blocks(int extent, std::uint32_t shared_bytes) const {
  const std::uint32_t threads = extent <= 8 ? 32 : extent <= 32 ? 128 : extent <= 128 ? 256 : 512;
  LaunchConfig config = blocks(std::int64_t{1}, Dim3{threads});
  config.shared_bytes = shared_bytes;
  return config;
}

LaunchConfig MatrixBatch::blocks(std::int64_t tiles, Dim3 block) const {
  if (count_ * tiles > kMostMatrices) {
    throw InvalidArgument(
        format("{} are too many matrices for one call: pass them in parts", array_.identify()));
  }
  return {.grid = {static_cast<std::uint32_t>(count_ * tiles)}, .block = block, .stream = on_};
}

const Kernel& MatrixBatch::kernel(const Family& family, int number, const char* name,
                                  const char* rest) const {
  return family
      .instance(InstanceKey().add(number, 4).type(type()),
                [&] { return format("{}<{}{}>", name, device_type(type()), rest); })
      .on(device());
}

Array swapped(const Array& matrices) {
  std::vector<int> axes(static_cast<std::size_t>(matrices.ndim()));
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
  return matrices.transpose(axes);
}

}  // namespace kernwright::kernels
