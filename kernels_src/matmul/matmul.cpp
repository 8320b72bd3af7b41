// Launches one kernel for all products; those of float32 and float64, and large ones of 16-bit
// floats, go to kernels of their own.
#include "kernels_src/matmul/matmul.h"

#include "base/errors.h"
#include "base/format.h"
#include "kernels_src/family.h"
#include "kernels_src/gemm/fma/fma_gemm.h"
#include "kernels_src/gemm/gemm.h"
#include "kernels_src/gemm/gemm_layout.h"
#include "kernels_src/gemm/mma/mma_gemm.h"
#include "kernels_src/gemm/product_choices.h"
#include "kernels_src/gemv/linear.h"
#include "kernels_src/matmul/matmul.cu.h"
#include "kernels_src/matmul/matmul_batch.h"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace kernwright::kernels {
namespace {

constexpr std::int64_t kTile = 64;
constexpr unsigned kThreads = 256;
constexpr std::int64_t kMostBlocks = 65535;  // of the grid's y and z
constexpr double kLeastProducts = 1 << 20;   // of elements, that go to the tensor cores

// As in matmul.cu.
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

void require_product(const Array& a, const Array& b) {
  if (&a.device() != &b.device() || a.type() != b.type()) {
    throw InvalidArgument(format("a matrix product wants the same device and type: {} and {}",
                                 a.identify(), b.identify()));
  }
  if (a.ndim() < 2 || b.ndim() < 2 || a.shape().back() != b.shape()[b.shape().size() - 2]) {
    refuse_matrix_shapes(a, b);
  }
}

}  // namespace

Array plain_matmul(const Array& a, const Array& b, const Stream& stream) {
  require_product(a, b);
  const ProductBatch batch = matrix_batch(a, b);
  Device& device = a.device();
  Array result = Array::empty(device, gemm_shape(a, b), a.type(), stream);
  if (result.size() == 0) return result;
  const auto stride = [](const Array& of, int from_end) {
    return of.strides()[of.strides().size() - static_cast<std::size_t>(from_end)];
  };
  const std::int64_t rows = a.shape()[a.shape().size() - 2], columns = b.shape().back();
  const Matrices matrices{a.address(),  b.address(),      result.address(), rows,
                          columns,      a.shape().back(), stride(a, 2),     stride(a, 1),
                          stride(b, 2), stride(b, 1)};
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

bool planned_tiles(const Array& a, const Array& b) {
  const auto plan = product_plan(a.device(), product_key(a, b, a.type()));
  return plan && plan->kernel != ProductKernel::skinny;
}

bool takes_tiles(const Array& a, const Array& b) {
  if (a.type() == ScalarType::float32) return has_fma(a);
  return has_fast_gemm(a, b) && is_large_product(a, b);
}

Array matmul(const Array& a, const Array& b, const Stream& stream) {
  require_product(a, b);
  if (planned_tiles(a, b)) return Gemm{.a = a, .b = b}.run(stream);
  if (const std::optional<Array> few = few_rows_product(a, b, stream)) return *few;
  if (takes_tiles(a, b) || has_fma(a)) return Gemm{.a = a, .b = b}.run(stream);
  if (a.type() == ScalarType::int8 && is_large_product(a, b) && has_mma(a)) {
    return Gemm{.a = a, .b = b, .type = ScalarType::int8}.run(stream);
  }
  return plain_matmul(a, b, stream);
}

Array tf32_matmul(const Array& a, const Array& b, const Stream& stream) {
  require_product(a, b);
  if (a.type() != ScalarType::float32) {
    throw ArgumentError(format("tf32 is a precision of float32, not of {}", a.identify()));
  }
  if (const std::optional<Array> few = few_rows_product(a, b, stream)) return *few;
  return Gemm{.a = a, .b = b, .tf32 = true}.run(stream);
}

}  // namespace kernwright::kernels
