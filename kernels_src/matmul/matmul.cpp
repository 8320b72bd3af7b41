// Broadcasts the dimensions in front, merges them, and launches one kernel for all products; large
// products of 16-bit floats go to the tensor cores.
#include "kernels_src/matmul/matmul.h"

#include "base/errors.h"
#include "base/format.h"
#include "kernels_src/family.h"
#include "kernels_src/gemm/gemm.h"
#include "kernels_src/gemm/mma_gemm.h"
#include "kernels_src/gemv/linear.h"
#include "kernels_src/matmul/matmul.cu.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace kernwright::kernels {
namespace {

constexpr std::int64_t kTile = 64;
constexpr unsigned kThreads = 256;
constexpr std::size_t kMaxBatchDims = 6;
constexpr std::int64_t kMostBlocks = 65535;  // of the grid's y and z
constexpr double kLeastProducts = 1 << 20;   // of elements, that go to the tensor cores

// As in matmul.cu.
struct Batch {
  std::int64_t extent[kMaxBatchDims] = {}, a[kMaxBatchDims] = {}, b[kMaxBatchDims] = {},
               c[kMaxBatchDims] = {};
  std::int32_t ndim = 0;
};
struct Matrices {
  CUdeviceptr a, b, c;
  std::int64_t rows, columns, inner;
  std::int64_t a_row, a_column, b_row, b_column, c_row, c_column;
};

struct BatchDim {
  std::int64_t extent, a, b, c;
};

[[noreturn]] void refuse_shapes(const Array& a, const Array& b) {
  throw InvalidArgument(
      format("Incompatible dimensions for a matrix product: {} and {}; the last of the first must "
             "equal the one before the last of the second, and those in front must broadcast",
             a.identify(), b.identify()));
}

/// Dimension `d` of the broadcast batch, counted from its last: extent and stride of one side.
std::pair<std::int64_t, std::int64_t> batch_dim(const Array& array, int d) {
  const int at = array.ndim() - 3 - d;
  if (at < 0) return {1, 0};
  const auto index = static_cast<std::size_t>(at);
  const std::int64_t extent = array.shape()[index];
  return {extent, extent == 1 ? 0 : array.strides()[index]};
}

/// The innermost dimension first; the strides of the product are filled in later.
std::vector<BatchDim> broadcast_batch(const Array& a, const Array& b) {
  std::vector<BatchDim> dims;
  for (int d = 0; d < std::max(a.ndim(), b.ndim()) - 2; ++d) {
    const auto [a_extent, a_stride] = batch_dim(a, d);
    const auto [b_extent, b_stride] = batch_dim(b, d);
    if (a_extent != b_extent && a_extent != 1 && b_extent != 1) refuse_shapes(a, b);
    dims.push_back({a_extent == 1 ? b_extent : a_extent, a_stride, b_stride, 0});
  }
  return dims;
}

/// Neighbours that follow each other in all three become one.
Batch merged(const std::vector<BatchDim>& dims, const Array& a, const Array& b) {
  std::vector<BatchDim> kept;
  for (const BatchDim& dim : dims) {
    if (dim.extent == 1) continue;
    if (!kept.empty()) {
      BatchDim& last = kept.back();
      if (dim.a == last.a * last.extent && dim.b == last.b * last.extent &&
          dim.c == last.c * last.extent) {
        last.extent *= dim.extent;
        continue;
      }
    }
    kept.push_back(dim);
  }
  if (kept.size() > kMaxBatchDims) {
    throw InvalidArgument(
        format("a matrix product of {} and {} has more than {} dimensions in "
               "front; reshape() them to fewer",
               a.identify(), b.identify(), kMaxBatchDims));
  }
  Batch batch;
  batch.ndim = static_cast<std::int32_t>(kept.size());
  for (std::size_t d = 0; d < kept.size(); ++d) {
    batch.extent[d] = kept[d].extent;
    batch.a[d] = kept[d].a;
    batch.b[d] = kept[d].b;
    batch.c[d] = kept[d].c;
  }
  return batch;
}

const LazyKernel& matmul_kernel(ScalarType type) {
  static const auto& family = *new Family("matmul.cu", text::matmul_cu);
  return family.instance(InstanceKey().type(type),
                         [&] { return format("matmul<{}>", device_type(type)); });
}

void require_product(const Array& a, const Array& b) {
  if (&a.device() != &b.device() || a.type() != b.type()) {
    throw InvalidArgument(format("a matrix product wants the same device and type: {} and {}",
                                 a.identify(), b.identify()));
  }
  if (a.ndim() < 2 || b.ndim() < 2 || a.shape().back() != b.shape()[b.shape().size() - 2]) {
    refuse_shapes(a, b);
  }
}

}  // namespace

Array plain_matmul(const Array& a, const Array& b, const Stream& stream) {
  require_product(a, b);
  std::vector<BatchDim> dims = broadcast_batch(a, b);
  const std::int64_t rows = a.shape()[a.shape().size() - 2], columns = b.shape().back();
  Shape shape;
  for (std::size_t d = dims.size(); d-- > 0;) shape.push_back(dims[d].extent);
  shape.push_back(rows);
  shape.push_back(columns);
  Device& device = a.device();
  Array result = Array::empty(device, std::move(shape), a.type(), stream);
  if (result.size() == 0) return result;
  const Shape& strides = result.strides();
  for (std::size_t d = 0; d < dims.size(); ++d) dims[d].c = strides[strides.size() - 3 - d];
  const auto stride = [](const Array& of, int from_end) {
    return of.strides()[of.strides().size() - static_cast<std::size_t>(from_end)];
  };
  const Matrices matrices{a.address(),  b.address(),      result.address(),  rows,
                          columns,      a.shape().back(), stride(a, 2),      stride(a, 1),
                          stride(b, 2), stride(b, 1),     stride(result, 2), stride(result, 1)};
  const Batch batch = merged(dims, a, b);
  const std::int64_t products = result.size() / (rows * columns);
  const std::int64_t row_tiles = (rows + kTile - 1) / kTile;
  const Stream on = stream ? stream : Stream::legacy(device);
  const LaunchConfig config{.grid = {static_cast<std::uint32_t>((columns + kTile - 1) / kTile),
                                     static_cast<std::uint32_t>(std::min(row_tiles, kMostBlocks)),
                                     static_cast<std::uint32_t>(std::min(products, kMostBlocks))},
                            .block = {kThreads},
                            .stream = on};
  launch(matmul_kernel(a.type()).on(device), config, matrices, batch, products, row_tiles);
  result.use_on(on);
  a.use_on(on);
  b.use_on(on);
  return result;
}

namespace {

bool is_large_product(const Array& a, const Array& b) {
  if (a.shape().back() == 0) return false;
  const auto rows = static_cast<double>(a.size()) / static_cast<double>(a.shape().back());
  return rows * static_cast<double>(b.size()) >= kLeastProducts;
}

}  // namespace

bool takes_tiles(const Array& a, const Array& b) {
  return has_fast_gemm(a, b) && is_large_product(a, b);
}

Array matmul(const Array& a, const Array& b, const Stream& stream) {
  require_product(a, b);
  if (const std::optional<Array> few = few_rows_product(a, b, stream)) return *few;
  if (takes_tiles(a, b)) return Gemm{.a = a, .b = b}.run(stream);
  if (a.type() == ScalarType::int8 && is_large_product(a, b) && has_mma(a)) {
    return Gemm{.a = a, .b = b, .type = ScalarType::int8}.run(stream);
  }
  return plain_matmul(a, b, stream);
}

}  // namespace kernwright::kernels
