// The formats of weights, for kernwright.nn.quant.
#include "bindings/kernels/bind_kernels.h"
#include "bindings/kernels/kernel_calls.h"
#include "bindings/values/dtype.h"
#include "kernels_src/formats/formats.h"

#include <string>
#include <vector>

namespace kernwright::python {
namespace {

using kernels::CodeFormat;

std::vector<Array> scale_operands(const py::tuple& scales) {
  std::vector<Array> made;
  for (const py::handle each : scales) made.push_back(array_operand(each, "blocks"));
  return made;
}

/// Each name, with the numbers and bytes of a block, and the numbers of the format in files.
py::dict gguf_formats() {
  py::dict made;
  for (const kernels::GgufFormat& row : kernels::kGgufFormats)
    made[row.name.data()] = std::array{row.values, row.bytes, row.type, row.file_type};
  return made;
}

Array dequantize_gguf(const py::object& blocks, const std::string& name, const py::object& dtype) {
  const Array array = array_operand(blocks, "blocks");
  const ScalarType type = scalar_argument(dtype);
  return on_current_stream(array, [&](const Stream& on) {
    return kernels::dequantize_gguf(array, kernels::gguf_format(name), type, on);
  });
}

Array quantize_gguf(const py::object& x, const std::string& name) {
  const Array array = array_operand(x, "x");
  return on_current_stream(array, [&](const Stream& on) {
    return kernels::quantize_gguf(array, kernels::gguf_format(name), on);
  });
}

Array dequantize_codes(const py::object& codes, const py::tuple& scales, int kind,
                       std::int64_t block, const std::vector<std::int64_t>& shape,
                       const py::object& dtype) {
  const Array array = array_operand(codes, "blocks");
  const std::vector<Array> parts = scale_operands(scales);
  const ScalarType type = scalar_argument(dtype);
  const Shape extents(shape.begin(), shape.end());
  return on_current_stream(array, [&](const Stream& on) {
    return kernels::dequantize_codes(array, parts, static_cast<CodeFormat>(kind), block, extents,
                                     type, on);
  });
}

py::tuple quantize_codes(const py::object& x, const py::object& factor, int kind,
                         std::int64_t block, const std::vector<std::int64_t>& codes,
                         const std::vector<std::int64_t>& scales) {
  const Array array = array_operand(x, "x");
  const std::optional<Array> number = optional_operand(factor, "factor");
  const Shape codes_shape(codes.begin(), codes.end()), scales_shape(scales.begin(), scales.end());
  auto made = on_current_stream(array, [&](const Stream& on) {
    return kernels::quantize_codes(array, number, static_cast<CodeFormat>(kind), block, codes_shape,
                                   scales_shape, on);
  });
  return py::make_tuple(std::move(made.first), std::move(made.second));
}

py::tuple quantize_tiles(const py::object& x, std::array<std::int64_t, 2> tile) {
  const Array array = array_operand(x, "x");
  auto made = on_current_stream(
      array, [&](const Stream& on) { return kernels::quantize_tiles(array, tile, on); });
  return py::make_tuple(std::move(made.first), std::move(made.second));
}

Array dequantize_tiles(const py::object& values, const py::object& scales,
                       std::array<std::int64_t, 2> tile, const py::object& dtype) {
  const Array array = array_operand(values, "blocks"), factors = array_operand(scales, "blocks");
  const ScalarType type = scalar_argument(dtype);
  return on_current_stream(array, [&](const Stream& on) {
    return kernels::dequantize_tiles(array, factors, tile, type, on);
  });
}

Array dequantize_gptq(const py::object& codes, const py::object& zeros, const py::object& scales,
                      const py::object& groups, int zero_offset, const py::object& dtype) {
  const Array array = array_operand(codes, "blocks"), offsets = array_operand(zeros, "blocks");
  const Array factors = array_operand(scales, "blocks");
  const std::optional<Array> listed = optional_operand(groups, "blocks");
  const ScalarType type = scalar_argument(dtype);
  return on_current_stream(array, [&](const Stream& on) {
    return kernels::dequantize_gptq(array, offsets, factors, listed, zero_offset, type, on);
  });
}

Array dequantize_awq(const py::object& codes, const py::object& zeros, const py::object& scales,
                     const py::object& dtype) {
  const Array array = array_operand(codes, "blocks"), offsets = array_operand(zeros, "blocks");
  const Array factors = array_operand(scales, "blocks");
  const ScalarType type = scalar_argument(dtype);
  return on_current_stream(array, [&](const Stream& on) {
    return kernels::dequantize_awq(array, offsets, factors, type, on);
  });
}

Array pack_nibbles(const py::object& x) {
  const Array array = array_operand(x, "x");
  return on_current_stream(array,
                           [&](const Stream& on) { return kernels::pack_nibbles(array, on); });
}

Array unpack_nibbles(const py::object& packed, bool is_signed, std::int64_t length) {
  const Array array = array_operand(packed, "packed");
  return on_current_stream(array, [&](const Stream& on) {
    return kernels::unpack_nibbles(array, is_signed, length, on);
  });
}

}  // namespace

void bind_formats(py::module_& m) {
  m.def("_pack_nibbles", &pack_nibbles);
  m.def("_unpack_nibbles", &unpack_nibbles);
  m.def("_gguf_formats", &gguf_formats);
  m.def("_dequantize_gguf", dequantize_gguf);
  m.def("_quantize_gguf", quantize_gguf);
  m.def("_dequantize_codes", dequantize_codes);
  m.def("_quantize_codes", quantize_codes);
  m.def("_dequantize_tiles", dequantize_tiles);
  m.def("_quantize_tiles", quantize_tiles);
  m.def("_dequantize_gptq", dequantize_gptq);
  m.def("_dequantize_awq", dequantize_awq);
}

}  // namespace kernwright::python
