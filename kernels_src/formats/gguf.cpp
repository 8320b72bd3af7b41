// Blocks of GGUF files.
#include "kernels_src/family.h"
#include "kernels_src/formats/checks.h"
#include "kernels_src/formats/formats.h"
#include "kernels_src/formats/gguf.cu.h"
#include "kernels_src/operands.h"

#include <algorithm>

namespace kernwright::kernels {
namespace {

constexpr bool has_all_columns(const GgufFormat& row) {
  return row.values % 32 == 0 && row.bytes > 0 && row.align > 0 && row.type > 0 &&
         row.file_type > 0;
}
static_assert(std::ranges::all_of(kGgufFormats, has_all_columns),
              "a row of gguf_format.def has seven columns");
static_assert(kGgufFormats.size() <= 16, "keys of kernels have 4 bits for a format");

const Family& gguf_family() {
  static const auto& made = *new Family("gguf.cu", text::gguf_cu);
  return made;
}

std::int64_t gguf_number(const GgufFormat& format) { return &format - kGgufFormats.data(); }

/// The shape with whole units of the last axis in place of whole other units.
Shape gguf_shape(const Array& array, int from, int to, const char* what, std::string_view name) {
  if (array.ndim() == 0 || array.shape().back() % from != 0)
    throw InvalidArgument(
        format("Incompatible dimensions: the last axis of {} holds whole blocks "
               "of {} {}, not {}",
               name, from, what, array.identify()));
  Shape shape = array.shape();
  shape.back() = shape.back() / from * to;
  return shape;
}

}  // namespace

const GgufFormat& gguf_format(std::string_view name) {
  for (const GgufFormat& known : kGgufFormats) {
    if (known.name == name) return known;
  }
  std::string names;
  for (const GgufFormat& known : kGgufFormats)
    names += format("{}{}", names.empty() ? "" : ", ", known.name);
  throw InvalidArgument(format("there is no GGUF format {}: {}", name, names));
}

Array dequantize_gguf(const Array& blocks, const GgufFormat& gguf, ScalarType type,
                      const Stream& stream) {
  require_type(blocks, ScalarType::uint8, "what blocks are given as");
  require_numbers(type, "the result");
  Device& device = blocks.device();
  const Stream on = stream ? stream : Stream::legacy(device);
  Shape shape = gguf_shape(blocks, gguf.bytes, gguf.values, "bytes", gguf.name);
  Array result = Array::empty(device, std::move(shape), type, stream);
  if (result.size() == 0) return result;
  const Array in = contiguous(blocks, stream);
  const std::uint64_t align = in.address() % gguf.align == 0 ? gguf.align : 1;
  const auto key = InstanceKey().type(type).add(gguf_number(gguf), 4).add(align, 4).add(0, 1);
  const LazyKernel& kernel = gguf_family().instance(key, [&] {
    return format("dequantize_blocks<{}, {}, {}>", gguf.device, device_type(type), align);
  });
  const auto count = static_cast<std::uint64_t>(result.size());
  launch(kernel.on(device), format_grid(count / 8, on), result.address(), in.address(), count);
  for (const Array& used : {in, result}) used.use_on(on);
  return result;
}

Array quantize_gguf(const Array& x, const GgufFormat& gguf, const Stream& stream) {
  require_numbers(x.type(), "what is quantised");
  Device& device = x.device();
  const Stream on = stream ? stream : Stream::legacy(device);
  Shape shape = gguf_shape(x, gguf.values, gguf.bytes, "numbers", gguf.name);
  Array result = Array::empty(device, std::move(shape), ScalarType::uint8, stream);
  if (result.size() == 0) return result;
  const Array in = contiguous(x, stream);
  const auto key = InstanceKey().type(x.type()).add(gguf_number(gguf), 4).add(1, 1);
  const LazyKernel& kernel = gguf_family().instance(
      key, [&] { return format("quantize_blocks<{}, {}>", gguf.device, device_type(x.type())); });
  const auto blocks = static_cast<std::uint64_t>(in.size() / gguf.values);
  launch(kernel.on(device), format_grid(blocks * 32, on), result.address(), in.address(), blocks);
  for (const Array& used : {in, result}) used.use_on(on);
  return result;
}

}  // namespace kernwright::kernels
