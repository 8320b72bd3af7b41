// Chooses between rows in registers and rows of several blocks.
#include "kernels_src/quantize/quantize.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/math.h"
#include "core/device.h"
#include "jit/kernels_ahead.h"
#include "kernels_src/cast/cast.h"
#include "kernels_src/copy/copy.h"
#include "kernels_src/family.h"
#include "kernels_src/quantize/quantize.cu.h"
#include "memory/transfer.h"

#include <algorithm>
#include <utility>

namespace kernwright::kernels {

namespace {

constexpr std::uint32_t kQuantizeThreads = 256;
constexpr std::uint64_t kQuantizePacks = 4;  // of a thread, in registers
constexpr std::uint64_t kLeastQuantizePart = 16384;
constexpr std::uint64_t kMostQuantizeParts = 1024;
constexpr std::uint64_t kMostQuantizeRows = 65535;

const Family& quantize_family() {
  static const auto& made = *new Family("quantize.cu", text::quantize_cu);
  return made;
}

/// One place that decides how rows are cut.
struct QuantizePlan {
  std::uint64_t rows, columns;
  std::uint64_t width;  ///< elements of a load
  std::uint32_t lanes;  ///< threads that hold a row; 0: rows are cut into parts
  std::uint64_t part, parts;
};

QuantizePlan plan_quantize(const Array& in, const Array& out, std::uint64_t rows, bool given) {
  QuantizePlan plan{};
  plan.rows = rows;
  plan.columns = static_cast<std::uint64_t>(in.size()) / rows;
  plan.width = 16 / scalar_size(in.type());
  const bool packed =
      in.address() % 16 == 0 && out.address() % plan.width == 0 && plan.columns % plan.width == 0;
  if (!packed) plan.width = 1;
  for (const std::uint32_t lanes : {32u, 256u, 1024u}) {
    if (!given && plan.lanes == 0 && plan.columns <= lanes * kQuantizePacks * plan.width)
      plan.lanes = lanes;
  }
  // Few rows leave processors idle, unless several blocks share each.
  if (plan.lanes > 32 && rows < 64 && plan.columns >= kLeastQuantizePart) plan.lanes = 0;
  const std::uint64_t unit = kQuantizeThreads * plan.width;
  const std::uint64_t fair = ceil_div(plan.columns, kMostQuantizeParts);
  plan.part = std::max(kLeastQuantizePart, ceil_div(fair, unit) * unit);
  plan.parts = ceil_div(plan.columns, plan.part);
  return plan;
}

const LazyKernel& quantize_short_kernel(ScalarType to, ScalarType from, const QuantizePlan& plan) {
  const auto key =
      InstanceKey().type(to).type(from).add(plan.lanes, 11).add(plan.width, 4).add(0, 2);
  return quantize_family().instance(key, [&] {
    return format("quantize_short<{}, {}, {}, {}, {}>", device_type(to), device_type(from),
                  plan.lanes, kQuantizePacks, plan.width);
  });
}

void quantize_short(const Array& in, const Quantized& result, const QuantizePlan& plan,
                    const Stream& on) {
  const std::uint64_t block_rows = plan.lanes == 32 ? kQuantizeThreads / 32 : 1;
  LaunchConfig config;
  config.grid = {static_cast<std::uint32_t>(ceil_div(plan.rows, block_rows))};
  config.block = {std::max(plan.lanes, kQuantizeThreads)};
  config.stream = on;
  launch(quantize_short_kernel(result.values.type(), in.type(), plan).on(in.device()), config,
         result.values.address(), result.scales.address(), in.address(), plan.rows, plan.columns);
}

void quantize_parts(const Array& in, const Quantized& result, const QuantizePlan& plan, bool given,
                    const Stream& on, const Stream& stream) {
  Device& device = in.device();
  LaunchConfig config;
  const std::uint64_t y = std::min(plan.rows, kMostQuantizeRows);
  config.grid = {static_cast<std::uint32_t>(plan.parts), static_cast<std::uint32_t>(y),
                 static_cast<std::uint32_t>(ceil_div(plan.rows, y))};
  config.block = {kQuantizeThreads};
  config.stream = on;
  const ScalarType to = result.values.type();
  const LazyKernel& quantizing = quantize_family().instance(
      InstanceKey().type(to).type(in.type()).add(plan.width, 4).add(2, 2), [&] {
        return format("quantize_parts<{}, {}, {}>", device_type(to), device_type(in.type()),
                      plan.width);
      });
  KernelsAhead kernels;
  Array partial;
  CUdeviceptr found = 0;
  if (!given) {
    kernels.begin(quantizing, device);
    partial = Array::empty(device, {static_cast<std::int64_t>(plan.rows * plan.parts)},
                           ScalarType::float32, stream);
    found = partial.address();
    const auto key = InstanceKey().type(in.type()).add(plan.width, 4).add(1, 2);
    const LazyKernel& kernel = quantize_family().instance(
        key, [&] { return format("part_maxima<{}, {}>", device_type(in.type()), plan.width); });
    launch(kernel.on(device), config, found, in.address(), plan.rows, plan.columns, plan.part);
    partial.use_on(on);
  }
  const std::uint64_t scale_stride = result.scales.size() == 1 ? 0 : 1;
  launch(kernels.on(quantizing, device), config, result.values.address(), result.scales.address(),
         in.address(), found, plan.rows, plan.columns, plan.part, scale_stride);
}

bool is_quantized_type(ScalarType type) { return type == ScalarType::int8 || is_float8(type); }

bool is_quantizable(ScalarType type) { return is_half(type) || type == ScalarType::float32; }

/// Rows of an array: what the last axis holds.
std::int64_t quantize_row_count(const Array& array) {
  if (array.size() == 0) return 0;
  return array.ndim() == 0 ? 1 : array.size() / array.shape().back();
}

Array quantize_scales(const Array& scales, std::int64_t rows, const Array& values,
                      const Stream& stream) {
  if ((scales.size() != 1 && scales.size() != rows) || &scales.device() != &values.device())
    throw InvalidArgument(
        format("scales have one number, or one for each of {} rows on the same device, not {}",
               rows, scales.identify()));
  if (scales.type() != ScalarType::float32) return cast(scales, ScalarType::float32, stream);
  return scales.is_contiguous() ? scales : copy(scales, stream);
}

void require_quantizable(const Array& x, ScalarType type) {
  if (!is_quantizable(x.type()))
    throw InvalidArgument(
        format("what is quantised is float16, bfloat16 or float32, not {}", scalar_name(x.type())));
  if (!is_quantized_type(type))
    throw InvalidArgument(format("quantised numbers are int8, float8_e4m3fn or float8_e5m2, not {}",
                                 scalar_name(type)));
}

}  // namespace

Quantized quantize_rows(const Array& x, ScalarType type, QuantizeScope scope,
                        const std::optional<Array>& scales, const Stream& stream) {
  require_quantizable(x, type);
  Device& device = x.device();
  const Stream on = stream ? stream : Stream::legacy(device);
  const std::int64_t rows = quantize_row_count(x);
  Shape scale_shape;
  if (scope == QuantizeScope::row && x.ndim() > 0)
    scale_shape = Shape(x.shape().begin(), x.shape().end() - 1);
  Quantized result;
  if (scales) {
    result.scales = quantize_scales(*scales, x.size() == 0 ? scales->size() : rows, x, stream);
  }
  result.values = Array::empty(device, x.shape(), type, stream);
  if (!scales) result.scales = Array::empty(device, scale_shape, ScalarType::float32, stream);
  if (x.size() == 0) {
    if (!scales && result.scales.size() > 0)
      fill(device, result.scales.address(), 0, sizeof(float),
           static_cast<std::size_t>(result.scales.size()), on);
    return result;
  }
  const Array in = x.is_contiguous() ? x : copy(x, stream);
  const bool whole = !scales && scope == QuantizeScope::tensor;
  const auto planned_rows = static_cast<std::uint64_t>(whole ? 1 : rows);
  const QuantizePlan plan = plan_quantize(in, result.values, planned_rows, scales.has_value());
  if (plan.lanes > 0) {
    quantize_short(in, result, plan, on);
  } else {
    quantize_parts(in, result, plan, scales.has_value(), on, stream);
  }
  for (const Array& used : {in, result.values, result.scales}) used.use_on(on);
  return result;
}

Quantized quantize_blocks(const Array& x, std::int64_t block, ScalarType type,
                          const Stream& stream) {
  require_quantizable(x, type);
  if (x.ndim() == 0 || (block != 16 && block != 32 && block != 64 && block != 128 && block != 256))
    throw InvalidArgument(
        format("blocks are of 16, 32, 64, 128 or 256 numbers of the last axis, not {} of {}", block,
               x.identify()));
  Device& device = x.device();
  const Stream on = stream ? stream : Stream::legacy(device);
  const std::int64_t rows = quantize_row_count(x), columns = x.shape().back();
  const std::int64_t places = ceil_div(columns, block);
  if (places > std::int64_t{kMostQuantizeRows})
    throw InvalidArgument(format("a row has at most {} blocks, not {}", kMostQuantizeRows, places));
  // Rows of the scales begin at multiples of 16 bytes.
  const std::int64_t stride = (rows + 3) / 4 * 4;
  Shape shape = x.shape();
  shape.back() = places;
  Quantized result;
  result.values = Array::empty(device, x.shape(), type, stream);
  if (x.size() == 0) {
    result.scales = Array::empty(device, shape, ScalarType::float32, stream);
    return result;
  }
  const Array turned =
      Array::empty(device, {places, stride}, ScalarType::float32, stream).slice(1, 0, rows, 1);
  const Array in = x.is_contiguous() ? x : copy(x, stream);
  std::int64_t width = static_cast<std::int64_t>(16 / scalar_size(in.type()));
  if (in.address() % 16 != 0 || columns % width != 0) width = 1;
  const auto key = InstanceKey().type(type).type(in.type()).add(block, 9).add(width, 4).add(3, 2);
  const LazyKernel& kernel = quantize_family().instance(key, [&] {
    return format("quantize_blocks<{}, {}, {}, {}>", device_type(type), device_type(in.type()),
                  block, width);
  });
  const std::int64_t block_rows = kQuantizeThreads / std::min<std::int64_t>(32, block / width);
  const std::int64_t parts = ceil_div(rows, block_rows);
  LaunchConfig config;
  config.grid = {static_cast<std::uint32_t>(std::min<std::int64_t>(parts, 1 << 20)),
                 static_cast<std::uint32_t>(places)};
  config.block = {kQuantizeThreads};
  config.stream = on;
  launch(kernel.on(device), config, result.values.address(), turned.address(), in.address(),
         static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(columns),
         static_cast<std::uint64_t>(stride));
  for (const Array& used : {in, result.values, turned}) used.use_on(on);
  result.scales = turned.transpose().reshape(std::move(shape));
  return result;
}

Array dequantize_rows(const Array& values, const Array& scales, ScalarType type,
                      const Stream& stream) {
  if (!is_quantized_type(values.type()))
    throw InvalidArgument(format("quantised numbers are int8, float8_e4m3fn or float8_e5m2, not {}",
                                 scalar_name(values.type())));
  if (!is_quantizable(type))
    throw InvalidArgument(
        format("the result is float16, bfloat16 or float32, not {}", scalar_name(type)));
  Device& device = values.device();
  const Stream on = stream ? stream : Stream::legacy(device);
  Array result = Array::empty(device, values.shape(), type, stream);
  if (result.size() == 0) return result;
  const std::int64_t rows = quantize_row_count(values);
  const Array factors = quantize_scales(scales, rows, values, stream);
  const Array in = values.is_contiguous() ? values : copy(values, stream);
  const auto count = static_cast<std::uint64_t>(in.size());
  const std::uint64_t columns = count / static_cast<std::uint64_t>(rows);
  std::uint64_t width = 16 / scalar_size(type);
  if (in.address() % width != 0 || columns % width != 0) width = 1;
  const bool wide = count >= (std::uint64_t{1} << 30);
  const auto key = InstanceKey().type(type).type(in.type()).add(width, 4).add(wide, 1).add(3, 2);
  const LazyKernel& kernel = quantize_family().instance(key, [&] {
    return format("dequantize<{}, {}, {}, {}>", device_type(type), device_type(in.type()), width,
                  wide ? "UInt64" : "UInt32");
  });
  const std::uint64_t blocks = (count / width + kQuantizeThreads - 1) / kQuantizeThreads;
  LaunchConfig config;
  config.grid = {static_cast<std::uint32_t>(std::min<std::uint64_t>(blocks, 1 << 16))};
  config.block = {kQuantizeThreads};
  config.stream = on;
  const std::uint64_t stride = factors.size() == 1 ? 0 : 1;
  if (wide) {
    launch(kernel.on(device), config, result.address(), in.address(), factors.address(), count,
           columns, stride);
  } else {
    launch(kernel.on(device), config, result.address(), in.address(), factors.address(),
           static_cast<std::uint32_t>(count), static_cast<std::uint32_t>(columns),
           static_cast<std::uint32_t>(stride));
  }
  for (const Array& used : {in, factors, result}) used.use_on(on);
  return result;
}

}  // namespace kernwright::kernels
