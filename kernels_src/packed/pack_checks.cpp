// The arrays that each format of packed weights is made from.
#include "kernels_src/packed/pack_checks.h"

#include "base/errors.h"
#include "base/format.h"
#include "kernels_src/formats/checks.h"
#include "kernels_src/formats/formats.h"

namespace kernwright::kernels {
namespace {

void require_pack(const Array& array, ScalarType type, std::int64_t count, const PackCall& call,
                  const char* what) {
  require_type(array, type, what);
  require_device_match(array, call.blocks[0], what);
  if (array.size() != count)
    throw InvalidArgument(
        format("Incompatible dimensions: weights of shape ({}, {}) have {} "
               "numbers of {}, not {}",
               call.n, call.k, count, what, array.identify()));
}

/// int32 words (k / 8, n) or (k, n / 8), scales and zeros of groups of k.
void check_words(const PackCall& call) {
  const Array& scales = call.blocks[1];
  const std::int64_t groups = call.k / call.group;
  require_numbers(scales.type(), "the type of scales");
  if (call.n % 8 != 0 || call.k % 8 != 0)
    throw InvalidArgument(
        format("Incompatible dimensions: words of 8 codes make ({}, {}) weights", call.n, call.k));
  require_pack(call.blocks[0], ScalarType::int32, call.n * call.k / 8, call, "codes");
  require_pack(scales, scales.type(), groups * call.n, call, "scales");
  if (call.blocks.size() == 3)
    require_pack(call.blocks[2], ScalarType::int32, groups * call.n / 8, call, "zeros");
  if (call.groups) require_pack(*call.groups, ScalarType::int32, call.k, call, "groups of columns");
}

void check_pack_gguf(const PackCall& call) {
  const GgufFormat& gguf = gguf_format(packed_traits(call.format).name);
  require_pack(call.blocks[0], ScalarType::uint8, call.n * call.k / gguf.values * gguf.bytes, call,
               "bytes of blocks");
}

void check_blocks(const PackCall& call) {
  const std::int64_t size = call.n * call.k;
  const PackedTraits& traits = packed_traits(call.format);
  switch (traits.kind) {
    case PackedKind::words:
      return check_words(call);
    case PackedKind::absmax: {
      const std::int64_t blocks = size / call.group;
      require_pack(call.blocks[0], ScalarType::uint8, size / 2, call, "codes");
      if (call.blocks.size() == 2)
        return require_pack(call.blocks[1], ScalarType::float32, blocks, call, "absmax");
      require_pack(call.blocks[1], ScalarType::uint8, blocks, call, "codes of absmax");
      require_pack(call.blocks[2], ScalarType::float32, 256, call, "the table of absmax");
      require_pack(call.blocks[3], ScalarType::float32, (blocks + 255) / 256, call,
                   "scales of absmax");
      return require_pack(call.blocks[4], ScalarType::float32, 1, call, "the offset of absmax");
    }
    case PackedKind::float4:
      require_pack(call.blocks[0], ScalarType::uint8, size / 2, call, "codes");
      if (!traits.has_factor)
        return require_pack(call.blocks[1], ScalarType::uint8, size / traits.group, call,
                            "exponents");
      require_pack(call.blocks[1], ScalarType::float8_e4m3fn, size / traits.group, call, "scales");
      return require_pack(call.blocks[2], ScalarType::float32, 1, call, "the scale of all");
    case PackedKind::tiles:
      require_pack(call.blocks[0], ScalarType::float8_e4m3fn, size, call, "weights");
      require_device_match(call.blocks[1], call.blocks[0], "scales");
      require_type(call.blocks[1], ScalarType::float32, "the array of scales");
      return require_shape(
          call.blocks[1],
          {(call.n + call.tile[0] - 1) / call.tile[0], (call.k + call.tile[1] - 1) / call.tile[1]},
          "the array of scales");
    default:
      return check_pack_gguf(call);
  }
}

std::size_t least_pack_blocks(PackedFormat format) {
  const PackedTraits& traits = packed_traits(format);
  if (traits.has_factor) return 3;
  return traits.kind == PackedKind::gguf ? 1 : 2;
}

bool pack_count_fits(const PackCall& call) {
  const std::size_t count = call.blocks.size(), least = least_pack_blocks(call.format);
  if (count == least) return true;
  const PackedKind kind = packed_traits(call.format).kind;
  return (kind == PackedKind::words && count == 3) || (kind == PackedKind::absmax && count == 5);
}

}  // namespace

void check_pack(const PackCall& call) {
  if (!pack_count_fits(call))
    throw InvalidArgument(format("these weights are no {} arrays", call.blocks.size()));
  PackedWeights shape;
  shape.format = call.format;
  shape.n = call.n;
  shape.k = call.k;
  shape.group = call.group;
  shape.tile = call.tile;
  check_packed_shape(shape);
  check_blocks(call);
  if (call.groups && call.source != PackedSource::gptq)
    throw InvalidArgument("only weights of GPTQ have a list of groups");
}

}  // namespace kernwright::kernels
