// Matrices of weights with scales beside them.
#include "base/math.h"
#include "kernels_src/family.h"
#include "kernels_src/formats/checks.h"
#include "kernels_src/formats/formats.h"
#include "kernels_src/formats/weights.cu.h"
#include "kernels_src/operands.h"

namespace kernwright::kernels {

namespace {

const Family& weights_family() {
  static const auto& made = *new Family("weights.cu", text::weights_cu);
  return made;
}

/// Threads along x, rows along y.
LaunchConfig weights_grid(std::uint64_t across, std::uint64_t rows, const Stream& on) {
  LaunchConfig config = format_grid(across, on);
  config.grid.y = static_cast<std::uint32_t>(std::min<std::uint64_t>(rows, 65535));
  return config;
}

/// The numbering of the tiles of the last two axes.
struct Tiles {
  std::uint64_t matrices, rows, columns;
  std::uint32_t tile_rows, tile_columns;
  Shape scales;

  std::uint64_t down() const { return ceil_div(rows, tile_rows); }
};

Tiles split_tiles(const Array& array, std::array<std::int64_t, 2> tile) {
  for (const std::int64_t extent : tile) {
    if (extent < 1 || extent > 16384)
      throw InvalidArgument(
          format("a tile has 1 to 16384 rows and columns, not {} x {}", tile[0], tile[1]));
  }
  if (array.ndim() < 2)
    throw InvalidArgument(
        format("tiles are of matrices: two axes or more, not {}", array.identify()));
  Tiles tiles{};
  const Shape& shape = array.shape();
  tiles.rows = static_cast<std::uint64_t>(shape[shape.size() - 2]);
  tiles.columns = static_cast<std::uint64_t>(shape.back());
  if (tiles.rows >= std::uint64_t{1} << 31)
    throw InvalidArgument(format("a matrix in tiles has less than 2**31 rows, not {}", tiles.rows));
  tiles.tile_rows = static_cast<std::uint32_t>(tile[0]);
  tiles.tile_columns = static_cast<std::uint32_t>(tile[1]);
  if (array.size() > 0)
    tiles.matrices = static_cast<std::uint64_t>(array.size()) / tiles.rows / tiles.columns;
  tiles.scales = shape;
  for (std::size_t i = 0; i < 2; ++i) {
    std::int64_t& extent = tiles.scales[shape.size() - 2 + i];
    extent = (extent + tile[i] - 1) / tile[i];
  }
  return tiles;
}

/// Groups of rows in (groups, words) and (groups, columns); columns are `columns` words of eight.
void check_groups(const Array& codes, const Array& zeros, const Array& scales,
                  std::int64_t columns) {
  for (const Array* array : {&codes, &zeros}) {
    const char* const what = array == &codes ? "codes" : "zeros";
    require_type(*array, ScalarType::int32, what);
    if (array->ndim() != 2)
      throw InvalidArgument(format("{} have two axes, not {}", what, array->identify()));
    require_device_match(*array, codes, what);
  }
  require_numbers(scales.type(), "the type of scales");
  require_device_match(scales, codes, "scales");
  if (columns % 8 != 0)
    throw InvalidArgument(
        format("Incompatible dimensions: columns are a multiple of 8, not {}", columns));
  const std::int64_t groups = scales.ndim() == 2 ? scales.shape()[0] : 0;
  require_shape(scales, {groups, columns}, "scales");
  require_shape(zeros, {groups, columns / 8}, "zeros");
}

/// Rows of each group, where rows are cut into equal ones.
std::uint64_t rows_per_group(std::int64_t rows, const Array& scales) {
  const std::int64_t groups = scales.shape()[0];
  if (groups == 0 || rows % groups != 0 || rows / groups >= std::int64_t{1} << 31)
    throw InvalidArgument(
        format("Incompatible dimensions: {} rows are no equal parts of {} groups", rows, groups));
  return static_cast<std::uint64_t>(rows / groups);
}

}  // namespace

Array dequantize_tiles(const Array& values, const Array& scales, std::array<std::int64_t, 2> tile,
                       ScalarType type, const Stream& stream) {
  if (values.type() != ScalarType::float8_e4m3fn && values.type() != ScalarType::float8_e5m2)
    throw InvalidArgument(
        format("values in tiles are float8_e4m3fn or float8_e5m2, not {}", values.identify()));
  require_numbers(type, "the result");
  require_type(scales, ScalarType::float32, "the array of scales");
  require_device_match(scales, values, "the array of scales");
  const Tiles tiles = split_tiles(values, tile);
  require_shape(scales, tiles.scales, "the array of scales");
  Device& device = values.device();
  const Stream on = stream ? stream : Stream::legacy(device);
  Array result = Array::empty(device, values.shape(), type, stream);
  if (result.size() == 0) return result;
  const Array in = contiguous(values, stream), factors = contiguous(scales, stream);
  std::uint64_t width = 16 / scalar_size(type);
  if (in.address() % width != 0 || tiles.columns % width != 0 || tiles.tile_columns % width != 0)
    width = 1;
  const auto key = InstanceKey().type(type).type(in.type()).add(width, 4).add(0, 2);
  const LazyKernel& kernel = weights_family().instance(key, [&] {
    return format("dequantize_tiles<{}, {}, {}>", device_type(type), device_type(in.type()), width);
  });
  const std::uint64_t rows = tiles.matrices * tiles.rows;
  launch(kernel.on(device), weights_grid(tiles.columns / width, rows, on), result.address(),
         in.address(), factors.address(), rows, static_cast<std::uint32_t>(tiles.rows),
         tiles.columns, tiles.tile_rows, tiles.tile_columns);
  for (const Array& used : {in, factors, result}) used.use_on(on);
  return result;
}

std::pair<Array, Array> quantize_tiles(const Array& x, std::array<std::int64_t, 2> tile,
                                       const Stream& stream) {
  require_numbers(x.type(), "what is quantised");
  const Tiles tiles = split_tiles(x, tile);
  Device& device = x.device();
  const Stream on = stream ? stream : Stream::legacy(device);
  Array values = Array::empty(device, x.shape(), ScalarType::float8_e4m3fn, stream);
  Array scales = Array::empty(device, tiles.scales, ScalarType::float32, stream);
  if (x.size() == 0) return {values, scales};
  const Array in = contiguous(x, stream);
  const auto key = InstanceKey().type(x.type()).add(1, 2);
  const LazyKernel& kernel = weights_family().instance(
      key, [&] { return format("quantize_tiles<{}>", device_type(x.type())); });
  const std::uint64_t down = tiles.matrices * tiles.down();
  LaunchConfig config = weights_grid(1, down, on);
  config.grid.x = static_cast<std::uint32_t>(tiles.scales.back());
  launch(kernel.on(device), config, values.address(), scales.address(), in.address(), down,
         static_cast<std::uint32_t>(tiles.rows), tiles.columns, tiles.tile_rows,
         tiles.tile_columns);
  for (const Array& used : {in, values, scales}) used.use_on(on);
  return {values, scales};
}

Array dequantize_gptq(const Array& codes, const Array& zeros, const Array& scales,
                      const std::optional<Array>& groups, int zero_offset, ScalarType type,
                      const Stream& stream) {
  require_numbers(type, "the result");
  const std::int64_t columns = codes.ndim() == 2 ? codes.shape()[1] : 0;
  check_groups(codes, zeros, scales, columns);
  const std::int64_t rows = codes.shape()[0] * 8;
  Device& device = codes.device();
  const Stream on = stream ? stream : Stream::legacy(device);
  Array listed;
  if (groups) {
    require_type(*groups, ScalarType::int32, "the array of groups");
    require_shape(*groups, {rows}, "the array of groups");
    require_device_match(*groups, codes, "the array of groups");
    listed = contiguous(*groups, stream);
  }
  Array result = Array::empty(device, {rows, columns}, type, stream);
  if (result.size() == 0) return result;
  const auto group_rows =
      static_cast<std::uint32_t>(groups ? std::uint64_t{1} : rows_per_group(rows, scales));
  const Array in = contiguous(codes, stream), offsets = contiguous(zeros, stream);
  const Array factors = contiguous(scales, stream);
  const auto key =
      InstanceKey().type(type).type(scales.type()).add(groups.has_value(), 1).add(2, 2);
  const LazyKernel& kernel = weights_family().instance(key, [&] {
    return format("dequantize_gptq<{}, {}, {}>", device_type(type), device_type(scales.type()),
                  groups.has_value());
  });
  const auto words = static_cast<std::uint64_t>(rows / 8);
  const CUdeviceptr list = groups ? listed.address() : 0;
  launch(kernel.on(device), weights_grid(static_cast<std::uint64_t>(columns), words, on),
         result.address(), in.address(), offsets.address(), factors.address(), list, words,
         static_cast<std::uint64_t>(columns), group_rows,
         static_cast<std::int32_t>(scales.shape()[0]), zero_offset);
  for (const Array& used : {in, offsets, factors, result}) used.use_on(on);
  if (groups) listed.use_on(on);
  return result;
}

Array dequantize_awq(const Array& codes, const Array& zeros, const Array& scales, ScalarType type,
                     const Stream& stream) {
  require_numbers(type, "the result");
  const std::int64_t words = codes.ndim() == 2 ? codes.shape()[1] : 0;
  check_groups(codes, zeros, scales, words * 8);
  const std::int64_t rows = codes.shape()[0];
  Device& device = codes.device();
  const Stream on = stream ? stream : Stream::legacy(device);
  Array result = Array::empty(device, {rows, words * 8}, type, stream);
  if (result.size() == 0) return result;
  const auto group_rows = static_cast<std::uint32_t>(rows_per_group(rows, scales));
  const Array in = contiguous(codes, stream), offsets = contiguous(zeros, stream);
  const Array factors = contiguous(scales, stream);
  const auto key = InstanceKey().type(type).type(scales.type()).add(3, 2);
  const LazyKernel& kernel = weights_family().instance(key, [&] {
    return format("dequantize_awq<{}, {}>", device_type(type), device_type(scales.type()));
  });
  launch(kernel.on(device),
         weights_grid(static_cast<std::uint64_t>(words), static_cast<std::uint64_t>(rows), on),
         result.address(), in.address(), offsets.address(), factors.address(),
         static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(words), group_rows);
  for (const Array& used : {in, offsets, factors, result}) used.use_on(on);
  return result;
}

}  // namespace kernwright::kernels
