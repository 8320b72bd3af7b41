// 4-bit codes with scales: NF4, FP4, MXFP4, NVFP4.
#include "kernels_src/family.h"
#include "kernels_src/formats/checks.h"
#include "kernels_src/formats/codes.cu.h"
#include "kernels_src/formats/formats.h"
#include "kernels_src/operands.h"

#include <bit>

namespace kernwright::kernels {

namespace {

const Family& codes_family() {
  static const auto& made = *new Family("codes.cu", text::codes_cu);
  return made;
}

const char* code_name(CodeFormat kind) {
  if (kind == CodeFormat::fp4) return "TwelfthFloat";
  return kind == CodeFormat::nf4 ? "NormalFloat" : "Float4";
}

/// Whether the first of two codes is the high half of their byte.
bool high_first(CodeFormat kind) { return kind == CodeFormat::nf4 || kind == CodeFormat::fp4; }

int block_shift(std::int64_t block) {
  if (block < 8 || block > 1 << 20 || (block & (block - 1)) != 0)
    throw InvalidArgument(format("a block has a power of two of numbers from 8 on, not {}", block));
  return std::countr_zero(static_cast<std::uint64_t>(block));
}

/// The scale types of codes.cu by format; nested where nf4 or fp4 has four arrays.
const char* code_scale_name(CodeFormat kind, bool nested) {
  if (kind == CodeFormat::mxfp4) return "PowerScale";
  if (kind == CodeFormat::nvfp4) return "Float8Scale";
  return nested ? "NestedScale" : "PlainScale";
}

/// How many numbers each array of scales has, and of what type.
void check_scales(const std::vector<Array>& scales, CodeFormat kind, std::int64_t blocks,
                  const Array& codes) {
  struct Wanted {
    const char* what;
    ScalarType type;
    std::int64_t count;
  };
  std::vector<Wanted> wanted;
  if (kind == CodeFormat::mxfp4) {
    wanted = {{"the array of scales", ScalarType::uint8, blocks}};
  } else if (kind == CodeFormat::nvfp4) {
    wanted = {{"the array of scales", ScalarType::float8_e4m3fn, blocks},
              {"the scale of all", ScalarType::float32, 1}};
  } else if (scales.size() == 1) {
    wanted = {{"absmax", ScalarType::float32, blocks}};
  } else {
    wanted = {{"the codes of absmax", ScalarType::uint8, blocks},
              {"the table of absmax", ScalarType::float32, 256},
              {"the scales of absmax", ScalarType::float32, (blocks + 255) / 256},
              {"the offset of absmax", ScalarType::float32, 1}};
  }
  if (scales.size() != wanted.size())
    throw InvalidArgument(
        format("the format has {} arrays of scales, not {}", wanted.size(), scales.size()));
  for (std::size_t i = 0; i < scales.size(); ++i) {
    require_type(scales[i], wanted[i].type, wanted[i].what);
    require_device_match(scales[i], codes, wanted[i].what);
    if (scales[i].size() != wanted[i].count)
      throw InvalidArgument(format("Incompatible dimensions: {} has {} numbers, not {}",
                                   wanted[i].what, wanted[i].count, scales[i].identify()));
  }
}

}  // namespace

Array dequantize_codes(const Array& codes, const std::vector<Array>& scales, CodeFormat kind,
                       std::int64_t block, const Shape& shape, ScalarType type,
                       const Stream& stream) {
  require_type(codes, ScalarType::uint8, "the array of codes");
  require_numbers(type, "the result");
  const int shift = block_shift(block);
  Device& device = codes.device();
  const Stream on = stream ? stream : Stream::legacy(device);
  Array result = Array::empty(device, shape, type, stream);
  const std::int64_t size = result.size();
  if (codes.size() != size / 2 + size % 2)
    throw InvalidArgument(
        format("Incompatible dimensions: {} numbers of shape {} take {} bytes of "
               "codes, not {}",
               size, shape_to_string(shape), size / 2 + size % 2, codes.identify()));
  check_scales(scales, kind, size / block + (size % block != 0), codes);
  if (size == 0) return result;
  const Array in = contiguous(codes, stream);
  const bool packed = in.address() % 4 == 0 && size % 8 == 0;
  std::array<CUdeviceptr, 4> parts{};
  std::vector<Array> held;
  for (const Array& array : scales) {
    held.push_back(contiguous(array, stream));
    parts[held.size() - 1] = held.back().address();
  }
  const bool nested = scales.size() == 4;
  const auto key = InstanceKey().type(type).add(kind, 2).add(nested, 1).add(packed, 1).add(0, 1);
  const LazyKernel& kernel = codes_family().instance(key, [&] {
    return format("dequantize_codes<{}, {}, {}, {}, {}>", code_name(kind),
                  code_scale_name(kind, nested), device_type(type), high_first(kind), packed);
  });
  const auto count = static_cast<std::uint64_t>(size);
  // The scale's struct is as many pointers as there are arrays.
  const CUdeviceptr to = result.address(), from = in.address();
  const std::array<const void*, 5> values = {&to, &from, &count, &shift, parts.data()};
  std::array<void*, 5> arguments{};
  std::transform(values.begin(), values.end(), arguments.begin(),
                 [](const void* value) { return const_cast<void*>(value); });
  launch_arguments(kernel.on(device), format_grid((count + 7) / 8, on), arguments);
  for (const Array& used : held) used.use_on(on);
  for (const Array& used : {in, result}) used.use_on(on);
  return result;
}

std::pair<Array, Array> quantize_codes(const Array& x, const std::optional<Array>& factor,
                                       CodeFormat kind, std::int64_t block,
                                       const Shape& codes_shape, const Shape& scales_shape,
                                       const Stream& stream) {
  require_numbers(x.type(), "what is quantised");
  const int shift = block_shift(block);
  Device& device = x.device();
  const Stream on = stream ? stream : Stream::legacy(device);
  ScalarType scale_type = ScalarType::float32;
  const char* scale = "ToPlainScale";
  if (kind == CodeFormat::mxfp4) {
    scale_type = ScalarType::uint8;
    scale = "ToPowerScale";
  } else if (kind == CodeFormat::nvfp4) {
    scale_type = ScalarType::float8_e4m3fn;
    scale = "ToFloat8Scale";
    if (!factor || factor->size() != 1) throw InvalidArgument("nvfp4 takes one number for all");
    require_type(*factor, ScalarType::float32, "the scale of all");
    require_device_match(*factor, x, "the scale of all");
  }
  Array codes = Array::empty(device, codes_shape, ScalarType::uint8, stream);
  Array scales = Array::empty(device, scales_shape, scale_type, stream);
  const std::int64_t size = x.size(), blocks = size / block + (size % block != 0);
  if (codes.size() != size / 2 + size % 2 || scales.size() != blocks)
    throw InvalidArgument(format("Incompatible dimensions: {} and {} for {}", codes.identify(),
                                 scales.identify(), x.identify()));
  if (size == 0) return {codes, scales};
  const Array in = contiguous(x, stream);
  const int lanes = static_cast<int>(std::min<std::int64_t>(block / 2, 32));
  const auto key = InstanceKey().type(x.type()).add(kind, 2).add(lanes, 6).add(1, 1);
  const LazyKernel& kernel = codes_family().instance(key, [&] {
    return format("quantize_codes<{}, {}, {}, {}, {}>", code_name(kind), scale,
                  device_type(x.type()), high_first(kind), lanes);
  });
  const std::array<CUdeviceptr, 2> parts = {scales.address(), factor ? factor->address() : 0};
  const LaunchConfig config = format_grid(static_cast<std::uint64_t>(blocks * lanes), on);
  launch(kernel.on(device), config, codes.address(), in.address(), static_cast<std::uint64_t>(size),
         shift, parts);
  if (factor) factor->use_on(on);
  for (const Array& used : {in, codes, scales}) used.use_on(on);
  return {codes, scales};
}

}  // namespace kernwright::kernels
