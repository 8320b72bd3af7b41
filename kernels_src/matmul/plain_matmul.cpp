// Launches one kernel for products of all types.
#include "kernels_src/matmul/plain_matmul.h"

#include "base/format.h"
#include "base/math.h"
#include "kernels_src/family.h"
#include "kernels_src/matmul/matmul.cu.h"
#include "kernels_src/matmul/matmul_batch.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace kernwright::kernels {
namespace {

constexpr std::int64_t kTile = 64;
constexpr unsigned kThreads = 256;
constexpr std::int64_t kMostBlocks = 65535;  // of the grid's y and z

/// `Matrices` of matmul.cu has the same fields.
struct Matrices {
  CUdeviceptr a, b, c;
  std::int64_t rows, columns, inner;
  std::int64_t a_row, a_column, b_row, b_column;
};

const LazyKernel& matmul_kernel(ScalarType type) {
  static const auto& family = *new Family("matmul.cu", text::matmul_cu);
  return family.instance(InstanceKey().type(type),
                         [&] { return format("matmul<{}>", device_type(type)); });
}

}  // namespace

Array plain_matmul(const Array& a, const Array& b, const Stream& stream) {
  require_product(a, b);
  Shape shape = product_shape(a, b);
  const ProductBatch batch = matrix_batch(a, b, shape);
  Device& device = a.device();
  Array result = Array::empty(device, std::move(shape), a.type(), stream);
  if (result.size() == 0) return result;
  const std::int64_t rows = extent_from_end(a, 2), columns = b.shape().back();
  const Matrices matrices{a.address(),
                          b.address(),
                          result.address(),
                          rows,
                          columns,
                          a.shape().back(),
                          stride_from_end(a, 2),
                          stride_from_end(a, 1),
                          stride_from_end(b, 2),
                          stride_from_end(b, 1)};
  const std::int64_t products = result.size() / (rows * columns);
  const std::int64_t row_tiles = ceil_div(rows, kTile);
  const Stream on = stream ? stream : Stream::legacy(device);
  const LaunchConfig config{.grid = {static_cast<std::uint32_t>(ceil_div(columns, kTile)),
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

}  // namespace kernwright::kernels
