// Checks and operands of products of groups.
#include "kernels_src/gemm/grouped/grouped_rows.h"

#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "kernels_src/activations/activations.h"
#include "kernels_src/cast/cast.h"
#include "kernels_src/elementwise/elementwise.h"
#include "kernels_src/gemm/mma/mma_gemm.h"
#include "kernels_src/matmul/matmul_batch.h"
#include "kernels_src/operands.h"
#include "memory/transfer.h"

namespace kernwright::kernels {
namespace {

constexpr std::int64_t kMostGroups = 2048;  // their table is in shared memory
constexpr std::int64_t kMostGroupedRows = 1'000'000'000;

}  // namespace

Array as_grouped_rows(const Array& array, const Stream& on) {
  if (array.ndim() == 2) return array;
  return reshaped(array, {array.shape()[0] * array.shape()[1], array.shape()[2]}, on);
}

std::size_t table_bytes(std::int64_t groups) {
  constexpr std::size_t kDealt = 16;  // of product_tiles.cuh
  return static_cast<std::size_t>(groups + 1) * 8 + kDealt * 4;
}

std::size_t skew_bytes(const GemmTile& tile) {
  return static_cast<std::size_t>((tile.stages - 1) * 128 + kGroupedSkews * 4);
}

int multiprocessor_count(const Array& array) {
  return array.device().attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
}

void require_groups(const RowGroups& groups, std::int64_t count, const Array& x) {
  const Array& numbers = groups.numbers;
  require_one_device(numbers, "the numbers of groups", x, "x");
  if (numbers.type() != ScalarType::int32 && numbers.type() != ScalarType::int64) {
    throw ArgumentError(
        format("the numbers of groups are int32 or int64, not {}", numbers.identify()));
  }
  const std::int64_t wanted = count + (groups.kind == RowGroups::Kind::offsets ? 1 : 0);
  if (numbers.shape() != Shape{wanted}) {
    throw InvalidArgument(format("Incompatible dimensions: {} groups want {} numbers, not {}",
                                 count, wanted, numbers.identify()));
  }
  if (count > kMostGroups) {
    throw InvalidArgument(format("there are {} groups, and at most {}", count, kMostGroups));
  }
}

void require_grouped_type(const Array& array, const char* name) {
  if (!is_half(array.type()) && array.type() != ScalarType::float32) {
    const bool narrow = is_float8(array.type());
    throw ArgumentError(format(
        "{} of grouped rows is float16, bfloat16 or float32, not {}: {}", name, array.identify(),
        narrow ? "float8 has the scales scale_a and scale_b" : "convert it with astype()"));
  }
  require_grouped_device(array);
}

void require_grouped_device(const Array& array) {
  const Capabilities can = array.device().capabilities();
  if (!can.bf16 || !can.async_copy) {
    throw ArgumentError(
        format("products of grouped rows need compute capability 8.0: {}", array.identify()));
  }
}

MmaSide mma_side(const GemmOperand& operand, std::int64_t stride, std::int64_t step,
                 std::int64_t lines, std::int64_t length) {
  const auto unit = static_cast<std::int64_t>(scalar_size(operand.array.type()));
  return {operand.array.address(), stride, step, 0, lines, length * unit};
}

CUtensorMap line_map(const Array& array, std::int64_t rows, std::int64_t dense, std::int64_t stride,
                     int tma_rows) {
  const auto element = static_cast<std::int64_t>(scalar_size(array.type()));
  return gemm_map(array.device(), {.address = array.address(),
                                   .shape = {1, 1, rows, dense},
                                   .strides = {0, rows * stride, stride, element},
                                   .type = array.type(),
                                   .tma_rows = static_cast<std::uint32_t>(tma_rows),
                                   .tma_columns = static_cast<std::uint32_t>(128 / element)});
}

CUtensorMap ragged_map(const Array& array, std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t kTmaRows = 16;
  const auto element = static_cast<std::int64_t>(scalar_size(array.type()));
  const std::int64_t stride = columns * element;
  return gemm_map(array.device(),
                  {.address = array.address() - static_cast<CUdeviceptr>(kTmaRows * stride),
                   .shape = {1, rows + 1, kTmaRows, columns},
                   .strides = {0, stride, stride, element},
                   .type = array.type(),
                   .tma_rows = static_cast<std::uint32_t>(kTmaRows),
                   .tma_columns = static_cast<std::uint32_t>(128 / element),
                   .rank = 3});
}

ProductGroups product_groups(const RowGroups& groups, const Array& numbers, std::int64_t rows,
                             std::int64_t capacity) {
  const auto kind = [&] {
    switch (groups.kind) {
      case RowGroups::Kind::ends:
        return GroupKind::ends;
      case RowGroups::Kind::offsets:
        return GroupKind::offsets;
      default:
        return capacity > 0 ? GroupKind::apart : GroupKind::counts;
    }
  }();
  const std::int64_t count = numbers.shape()[0] - (groups.kind == RowGroups::Kind::offsets ? 1 : 0);
  return {numbers.address(), kind, static_cast<std::int32_t>(count),
          static_cast<std::int32_t>(capacity > 0 ? capacity : rows), 0};
}

GemmLayout grouped_layout(const GemmOperand& a, const GemmOperand& b) {
  const std::optional<GemmLayout> layout = gemm_layout(a, b, product_shape(a.array, b.array));
  if (layout && layout->rows <= kMostGroupedRows) return *layout;
  throw InvalidArgument(format("a product of groups is too large: {} and {}", a.array.identify(),
                               b.array.identify()));
}

Array gate_product(Device& device, const Shape& shape, const ProductEpilogue& ending,
                   ScalarType type, const Stream& on,
                   const std::function<void(const Array&, const ProductEpilogue&)>& run) {
  const Array product = Array::empty(device, shape, ScalarType::float32, on);
  // Rows of no group are 0, as the gate reads them too.
  fill(device, product.address(), 0, 4, static_cast<std::size_t>(product.size()), on);
  ProductEpilogue plain = ending;
  const ProductEpilogue rest = take_gate(plain);
  run(product, plain);
  const Array gated = run_rest(product, rest, {}, on);
  return type == ScalarType::float32 ? gated : cast(gated, type, on);
}

void leave_table(GemmTile& tile, std::int64_t groups, bool block_scales) {
  const auto bytes = [&] {
    return tile.shared_bytes(true, block_scales) + table_bytes(groups) +
           (block_scales ? skew_bytes(tile) : 0);
  };
  while (tile.stages > 2 && bytes() > kMostGroupedShared) {
    --tile.stages;
  }
}

}  // namespace kernwright::kernels
