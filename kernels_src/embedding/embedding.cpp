// Lookups: as many lanes a row as it has packs.
#include "kernels_src/embedding/embedding.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/math.h"
#include "kernels_src/embedding/embedding.cu.h"
#include "kernels_src/family.h"
#include "kernels_src/operands.h"
#include "memory/transfer.h"

#include <algorithm>
#include <bit>

namespace kernwright::kernels {
namespace {

constexpr std::int64_t kEmbedThreads = 256;

const LazyKernel& embed_kernel(ScalarType type, ScalarType id, int width, int lanes) {
  static const auto& family = *new Family("embedding.cu", text::embedding_cu);
  const auto key = InstanceKey().type(type).type(id).add(width, 5).add(lanes, 9);
  return family.instance(key, [&] {
    return format("embed<{}, {}, {}, {}>", device_type(type), device_type(id), width, lanes);
  });
}

void check_embedding(const Array& ids, const Array& table) {
  require_floating(table, "embedding", "table");
  require_one_device(ids, "ids", table, "table");
  if (ids.type() != ScalarType::int32 && ids.type() != ScalarType::int64) {
    throw ArgumentError(
        format("embedding: ids is a {}, and must be of int32 or int64", ids.identify()));
  }
  if (table.ndim() != 2) {
    throw InvalidArgument(
        format("Incompatible dimensions: table is a {}, and must have two "
               "dimensions",
               table.identify()));
  }
}

[[noreturn]] void refuse_id(const Array& ids, std::int64_t place, const Array& table) {
  std::int64_t id = 0;
  const Array one = ids.reshape({-1}).slice(0, place, 1, 1);
  std::int32_t narrow = 0;
  if (ids.type() == ScalarType::int32) {
    one.to_host(&narrow);
    id = narrow;
  } else {
    one.to_host(&id);
  }
  throw InvalidArgument(format("embedding: id {} (element {} of ids) is outside of the table, a {}",
                               id, place, table.identify()));
}

}  // namespace

Array embedding(const Array& ids, const Array& table, double scale, bool check,
                const Stream& stream) {
  check_embedding(ids, table);
  Device& device = table.device();
  const Stream on = stream ? stream : Stream::legacy(device);
  const std::int64_t cols = table.shape()[1], count = ids.size();
  Shape shape = ids.shape();
  shape.push_back(cols);
  Array result = Array::empty(device, std::move(shape), table.type(), on);
  if (count == 0 || (cols == 0 && !check)) return result;
  const Array numbers = contiguous(ids, on);
  const RowView rows = row_view(table, on);
  const std::uint64_t size = scalar_size(table.type());
  const int width =
      pack_width(table.type(), {rows.array.address(), result.address(),
                                static_cast<std::uint64_t>(rows.stride | cols) * size});
  const auto packs = static_cast<std::uint64_t>(std::max<std::int64_t>(1, cols / width));
  const int lanes = static_cast<int>(std::min<std::uint64_t>(std::bit_ceil(packs), 128));
  const std::int64_t rows_each = kEmbedThreads / lanes;
  const std::int64_t blocks = ceil_div(count, rows_each);
  const LaunchConfig config{.grid = {static_cast<std::uint32_t>(blocks)},
                            .block = {static_cast<std::uint32_t>(kEmbedThreads)},
                            .stream = on,
                            .programmatic_dependent = overlaps_launches(device, blocks)};
  std::optional<Array> bad;
  if (check) {
    bad = Array::empty(device, {}, ScalarType::uint64, on);
    fill(device, bad->address(), ~std::uint64_t{0}, 8, 1, on);
  }
  const Kernel& kernel = embed_kernel(table.type(), numbers.type(), width, lanes).on(device);
  dispatch_compute(table.type(), [&](auto zero) {
    launch(kernel, config, numbers.address(), rows.array.address(), result.address(), count,
           table.shape()[0], cols, rows.stride, static_cast<decltype(zero)>(scale),
           bad ? bad->address() : CUdeviceptr{0});
  });
  for (const Array* each : {&numbers, &rows.array, static_cast<const Array*>(&result)})
    each->use_on(on);
  if (bad) {
    std::uint64_t place = 0;
    bad->use_on(on);
    bad->to_host(&place, on);
    if (place != ~std::uint64_t{0}) refuse_id(numbers, static_cast<std::int64_t>(place), table);
  }
  return result;
}

}  // namespace kernwright::kernels
