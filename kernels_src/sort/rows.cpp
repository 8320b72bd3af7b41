// Rows, chunks, and counts that come to the host.
#include "kernels_src/sort/rows.h"

#include "array/shape.h"
#include "base/errors.h"
#include "base/format.h"
#include "base/math.h"
#include "core/device.h"
#include "kernels_src/copy/copy.h"
#include "memory/transfer.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace kernwright::kernels {

Array without_gaps(const Array& array, const Stream& stream) {
  return array.is_contiguous() ? array : copy(array, stream);
}

Rows rows_along(const Array& array, int axis, const Stream& stream) {
  axis = normalize_axis(axis, array.ndim());
  std::vector<int> axes(static_cast<std::size_t>(array.ndim()));
  std::iota(axes.begin(), axes.end(), 0);
  std::rotate(axes.begin() + axis, axes.begin() + axis + 1, axes.end());
  Array data = without_gaps(array.transpose(axes), stream);
  const std::int64_t length = data.shape().back();
  const std::int64_t count = length > 0 ? data.size() / length : 0;
  return {std::move(data), count, length, axis};
}

Array from_rows(const Array& rows, int axis, const Stream& stream) {
  std::vector<int> axes(static_cast<std::size_t>(rows.ndim()));
  std::iota(axes.begin(), axes.end(), 0);
  std::rotate(axes.begin() + axis, axes.end() - 1, axes.end());
  return without_gaps(rows.transpose(axes), stream);
}

void require_order(const Array& array, const char* function) {
  if (!is_complex(array.type())) return;
  throw ArgumentError(
      format("{}() got {}: complex numbers have no order; sort by their real part or "
             "magnitude",
             function, array.identify()));
}

void require_one_device(const Array& a, const Array& b) {
  if (&a.device() == &b.device()) return;
  throw InvalidArgument(
      format("all arrays must be on the same device: {} and {}; copy one with .to(device)",
             a.identify(), b.identify()));
}

int multiprocessors(const Device& device) {
  return device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
}

DeviceOrder device_order(ScalarType type, bool descending) {
  DeviceOrder order{.flip = descending ? ~std::uint64_t{0} : 0};
  switch (type) {  // one above infinity, or the only NaN where there is none
    case ScalarType::float8_e4m3fn:
      order.nan = 0x7f;
      break;
    case ScalarType::float8_e5m2:
      order.nan = 0x7d;
      break;
    case ScalarType::float16:
      order.nan = 0x7c01;
      break;
    case ScalarType::bfloat16:
      order.nan = 0x7f81;
      break;
    case ScalarType::float32:
      order.nan = 0x7f80'0001;
      break;
    case ScalarType::float64:
      order.nan = 0x7ff0'0000'0000'0001;
      break;
    default:
      break;
  }
  if (order.nan != 0) order.turned = ~std::uint64_t{0};
  if (order.nan != 0 || is_signed_integer(type)) {
    order.sign = std::uint64_t{1} << (8 * scalar_size(type) - 1);
  }
  return order;
}

ScalarType key_bits_type(ScalarType type) {
  switch (scalar_size(type)) {
    case 1:
      return ScalarType::uint8;
    case 2:
      return ScalarType::uint16;
    case 4:
      return ScalarType::uint32;
    default:
      return ScalarType::uint64;
  }
}

LaunchConfig block_config(std::int64_t count, const Stream& stream) {
  return {.grid = {static_cast<std::uint32_t>(count)},
          .block = {static_cast<std::uint32_t>(kSortBlock)},
          .stream = stream};
}

LaunchConfig spread(const Device& device, std::int64_t count, const Stream& stream) {
  const std::int64_t most = std::int64_t{multiprocessors(device)} * 16;
  return block_config(std::clamp(ceil_div(count, kSortBlock), std::int64_t{1}, most), stream);
}

Chunks make_chunks(const Device& device, std::int64_t elements, std::int64_t tile) {
  const std::int64_t most = std::min(std::int64_t{1024}, std::int64_t{multiprocessors(device)} * 8);
  const std::int64_t tiles = ceil_div(elements, tile);
  const std::int64_t size = ceil_div(tiles, std::min(tiles, most)) * tile;
  return {.size = size, .count = ceil_div(elements, size)};
}

void use_all_on(const Stream& stream, std::initializer_list<const Array*> arrays) {
  for (const Array* const array : arrays) {
    if (array->owner() != nullptr) array->use_on(stream);
  }
}

std::int64_t sum_on_host(const Array& counts, const Stream& stream) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(counts.size()));
  counts.to_host(values.data(), stream);
  return std::accumulate(values.begin(), values.end(), std::int64_t{0});
}

}  // namespace kernwright::kernels
