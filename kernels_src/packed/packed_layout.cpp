// The layout of packed weights: how large its arrays are, and what the kernels call it.
#include "base/errors.h"
#include "base/format.h"
#include "kernels_src/family.h"
#include "kernels_src/formats/formats.h"
#include "kernels_src/packed/packed.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace kernwright::kernels {
namespace {

constexpr std::array<std::string_view, 18> kPackedNames = {
    "int4", "nf4",  "fp4",  "q4_0", "q4_1",   "q5_0",   "q5_1",  "q8_0",  "q2_k",
    "q3_k", "q4_k", "q5_k", "q6_k", "iq4_nl", "iq4_xs", "mxfp4", "nvfp4", "fp8_block"};
constexpr std::array<const char*, PackedWeights::kParts> kPackedPartNames = {
    "codes", "upper bits", "scales", "zeros or scales of scales",
    "table", "absmax",     "factor", "order"};

/// Requirements for an array; without a count it must be absent.
struct PackedPart {
  ScalarType type = ScalarType::uint8;
  std::int64_t count = -1;
};

/// Bits of a code in the first array, and in that of upper bits.
std::array<int, 2> packed_bits(PackedFormat format) {
  switch (format) {
    case PackedFormat::q2_k:
      return {2, 0};
    case PackedFormat::q3_k:
      return {2, 1};
    case PackedFormat::q5_0:
    case PackedFormat::q5_1:
    case PackedFormat::q5_k:
      return {4, 1};
    case PackedFormat::q6_k:
      return {4, 2};
    default:
      return {has_packed_bytes(format) ? 8 : 4, 0};
  }
}

/// The scales and their scales in formats of GGUF and of MX. Blocks of 128 of k have `rows`, pairs
/// of blocks have `pairs`.
std::array<PackedPart, 2> packed_scale_parts(PackedFormat format, std::int64_t rows,
                                             std::int64_t pairs) {
  constexpr ScalarType kByte = ScalarType::uint8, kHalf = ScalarType::float16;
  switch (format) {
    case PackedFormat::q4_1:
    case PackedFormat::q5_1:
      return {{{kHalf, rows * 8}, {}}};
    case PackedFormat::q2_k:
      return {{{kByte, rows * 8}, {kHalf, pairs * 2}}};
    case PackedFormat::q3_k:
      return {{{kByte, pairs * 12}, {kHalf, pairs}}};
    case PackedFormat::q4_k:
    case PackedFormat::q5_k:
      return {{{kByte, pairs * 16}, {}}};
    case PackedFormat::q6_k:
      return {{{kByte, rows * 8}, {kHalf, pairs}}};
    case PackedFormat::iq4_xs:
      return {{{kByte, pairs * 8}, {}}};
    case PackedFormat::mxfp4:
      return {{{kByte, rows * 4}, {}}};
    case PackedFormat::nvfp4:
      return {{{kByte, rows * 8}, {}}};
    default:
      return {{{kHalf, rows * 4}, {}}};
  }
}

/// The parts for so many rows and columns in the format of `w`.
std::array<PackedPart, PackedWeights::kParts> packed_parts(const PackedWeights& w, std::int64_t n,
                                                           std::int64_t k) {
  const std::int64_t tiles = (n + 15) / 16, blocks = (k + 127) / 128, all = tiles * blocks;
  const std::int64_t rows = all * 16, pairs = tiles * ((blocks + 1) / 2) * 16;
  const std::int64_t groups = w.group > 0 ? rows * (128 / w.group) : 0;
  std::array<PackedPart, PackedWeights::kParts> p{};
  auto& [codes, upper, scales, more, table, absmax, factor, order] = p;
  const auto [low_bits, upper_bits] = packed_bits(w.format);
  codes.count = all * 256 * low_bits;
  if (upper_bits > 0) upper.count = all * 256 * upper_bits;
  switch (w.format) {
    case PackedFormat::int4:
      scales = {w.parts[2] ? w.parts[2]->type() : ScalarType::float16, groups};
      if (w.parts[3]) more.count = groups;
      if (w.parts[7]) order = {ScalarType::int32, k};
      break;
    case PackedFormat::nf4:
    case PackedFormat::fp4:
      scales = {w.parts[4] ? ScalarType::uint8 : ScalarType::float32, groups};
      if (!w.parts[4]) break;
      table = {ScalarType::float32, 256};
      absmax = {ScalarType::float32,
                w.parts[5] ? std::max<std::int64_t>(1, w.parts[5]->size()) : 1};
      factor = {ScalarType::float32, 1};
      break;
    case PackedFormat::fp8_block:
      scales = {ScalarType::float32,
                ((n + w.tile[0] - 1) / w.tile[0]) * ((k + w.tile[1] - 1) / w.tile[1])};
      break;
    default: {
      const auto parts = packed_scale_parts(w.format, rows, pairs);
      scales = parts[0];
      more = parts[1];
      if (w.format == PackedFormat::nvfp4) factor = {ScalarType::float32, 1};
    }
  }
  return p;
}

/// k must be a multiple of this.
std::int64_t packed_step(const PackedWeights& w) {
  if (is_packed_gguf(w.format)) return gguf_format(packed_name(w.format)).values;
  switch (w.format) {
    case PackedFormat::mxfp4:
      return 32;
    case PackedFormat::nvfp4:
      return 16;
    case PackedFormat::fp8_block:
      return 8;
    default:
      return w.group;
  }
}

/// log2 of the group, 4 to 7.
int packed_group_shift(const PackedWeights& w) {
  return w.group > 0 ? std::countr_zero(static_cast<std::uint64_t>(w.group)) : 4;
}

}  // namespace

PackedFormat packed_format(std::string_view name) {
  const auto* const found = std::find(kPackedNames.begin(), kPackedNames.end(), name);
  if (found == kPackedNames.end())
    throw InvalidArgument(
        format("there are no packed weights of {}: {}", name, fmt::join(kPackedNames, ", ")));
  return static_cast<PackedFormat>(found - kPackedNames.begin());
}

std::string_view packed_name(PackedFormat format) {
  return kPackedNames[static_cast<std::size_t>(format)];
}

void check_packed_shape(const PackedWeights& w) {
  constexpr std::int64_t kMostRows = std::int64_t{1} << 30, kMostNumbers = std::int64_t{1} << 44;
  const std::string_view name = packed_name(w.format);
  if (w.n < 0 || w.k < 0 || w.n > kMostRows || w.k > kMostRows || w.n * w.k > kMostNumbers)
    throw InvalidArgument(
        format("packed weights have up to 2^30 rows and columns, 2^44 numbers in "
               "all, not ({}, {})",
               w.n, w.k));
  const bool grouped = w.format == PackedFormat::int4 || has_packed_absmax(w.format);
  if (grouped && w.group != 32 && w.group != 64 && w.group != 128)
    throw InvalidArgument(
        format("packed weights of {} have groups of 32, 64 or 128 numbers, not {}", name, w.group));
  const bool whole = w.tile[0] >= 1 && w.tile[0] <= kMostRows && w.tile[1] >= 128 &&
                     w.tile[1] <= kMostRows && w.tile[1] % 128 == 0;
  if (w.format == PackedFormat::fp8_block && !whole)
    throw InvalidArgument(
        format("packed weights of fp8_block have tiles with a multiple of 128 columns, not {} x {}",
               w.tile[0], w.tile[1]));
  if (w.k % packed_step(w) != 0)
    throw InvalidArgument(
        format("Incompatible dimensions: a row of packed weights of {} has a multiple of {} "
               "numbers, not {}",
               name, packed_step(w), w.k));
}

void check_packed(const PackedWeights& w) {
  check_packed_shape(w);
  const auto wanted = packed_parts(w, w.n, w.k);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const std::optional<Array>& part = w.parts[i];
    const bool needed = wanted[i].count >= 0;
    if (!part && !needed) continue;
    if (!part || !needed)
      throw InvalidArgument(format("packed weights of {} {} {}", packed_name(w.format),
                                   part ? "have no" : "lack their", kPackedPartNames[i]));
    const bool placed = part->is_contiguous() && part->address() % 16 == 0;
    if (part->type() != wanted[i].type || part->size() != wanted[i].count || !placed)
      throw InvalidArgument(
          format("Incompatible dimensions or dtypes: of packed {} of shape ({}, {}) the array of "
                 "{} has {} numbers of {} without gaps at a multiple of 16 bytes, not {}",
                 packed_name(w.format), w.n, w.k, kPackedPartNames[i], wanted[i].count,
                 scalar_name(wanted[i].type), part->identify()));
    if (&part->device() != &w.parts[0]->device())
      throw InvalidArgument(format("packed weights are not on the same device: {} and {}",
                                   part->identify(), w.parts[0]->identify()));
  }
  if (w.format == PackedFormat::int4) {
    const ScalarType type = w.parts[2]->type();
    if (type != ScalarType::float16 && type != ScalarType::bfloat16 && type != ScalarType::float32)
      throw InvalidArgument(format("scales of int4 are float16, bfloat16 or float32, not {}",
                                   w.parts[2]->identify()));
  }
  if (!has_packed_absmax(w.format) || !w.parts[4]) return;
  const std::int64_t scales = (w.n * w.k / w.group + 255) / 256;
  if (w.parts[5]->size() < scales)
    throw InvalidArgument(
        format("Incompatible dimensions: absmax of {} numbers has {} scales or "
               "more, not {}",
               w.n * w.k, scales, w.parts[5]->identify()));
}

std::int64_t packed_stage_bytes(const PackedWeights& w) {
  std::int64_t bytes = 0;
  const auto parts = packed_parts(w, 16, 256);
  for (std::size_t i = 0; i < 4; ++i) {
    const bool of_tiles = i == 2 && w.format == PackedFormat::fp8_block;
    if (parts[i].count > 0 && !of_tiles)
      bytes += parts[i].count * static_cast<std::int64_t>(scalar_size(parts[i].type));
  }
  return bytes;
}

PackedArrays packed_arrays(const PackedWeights& w) {
  PackedArrays made;
  for (std::size_t i = 0; i < made.parts.size(); ++i)
    made.parts[i] = w.parts[i] ? w.parts[i]->address() : 0;
  made.rows = static_cast<std::uint32_t>(w.n);
  made.k = static_cast<std::uint32_t>(w.k);
  made.blocks = static_cast<std::uint32_t>((w.k + 127) / 128);
  made.shift = static_cast<std::uint32_t>(packed_group_shift(w) + 8);
  if (w.format != PackedFormat::fp8_block) return made;
  made.tile_rows = static_cast<std::uint32_t>(w.tile[0]);
  made.tile_blocks = static_cast<std::uint32_t>(w.tile[1] / 128);
  made.tiles_across = static_cast<std::uint32_t>((w.k + w.tile[1] - 1) / w.tile[1]);
  return made;
}

std::string packed_device_format(const PackedWeights& w, ScalarType type) {
  const char* const t = device_type(type);
  switch (w.format) {
    case PackedFormat::int4:
      return format("Packed<WholeCodes<{}, 4>, GroupScales<{}, {}, {}>, 8>", t,
                    device_type(w.parts[2]->type()), w.group, w.parts[3] ? -1 : 8);
    case PackedFormat::nf4:
    case PackedFormat::fp4: {
      const char* const table = w.format == PackedFormat::nf4 ? "NormalTable" : "TwelfthTable";
      if (w.parts[4])
        return format("Packed<TableCodes<{}, {}>, NestedScales<{}, {}>, 8>", t, table, w.group,
                      w.k % 128 == 0);
      return format("Packed<TableCodes<{}, {}>, GroupScales<Float32, {}, 0>, 8>", t, table,
                    w.group);
    }
    case PackedFormat::q4_0:
      return format("Packed<WholeCodes<{}, 4>, GroupScales<Float16, 32, 8>, 8>", t);
    case PackedFormat::q4_1:
      return format("Packed<WholeCodes<{}, 4>, AddedScales, 8>", t);
    case PackedFormat::q5_0:
      return format("Packed<WholeCodes<{}, 5>, GroupScales<Float16, 32, 16>, 8>", t);
    case PackedFormat::q5_1:
      return format("Packed<WholeCodes<{}, 5>, AddedScales, 8>", t);
    case PackedFormat::q2_k:
      return format("Packed<FewCodes<{}, 2>, TwoScales, 4>", t);
    case PackedFormat::q3_k:
      return format("Packed<FewCodes<{}, 3>, ThreeScales, 4>", t);
    case PackedFormat::iq4_nl:
      return format("Packed<TableCodes<{}, UnevenTable>, GroupScales<Float16, 32, 0>, 8>", t);
    case PackedFormat::iq4_xs:
      return format("Packed<TableCodes<{}, UnevenTable>, UnevenScales, 8>", t);
    case PackedFormat::q8_0:
      return format("Packed<ByteCodes<Int8Weights<{}>>, GroupScales<Float16, 32, 0>, 8>", t);
    case PackedFormat::q4_k:
      return format("Packed<WholeCodes<{}, 4>, BlockScales, 8>", t);
    case PackedFormat::q5_k:
      return format("Packed<WholeCodes<{}, 5>, BlockScales, 8>", t);
    case PackedFormat::q6_k:
      return format("Packed<WholeCodes<{}, 6>, SixScales, 4>", t);
    case PackedFormat::mxfp4:
      return format("Packed<Float4Codes<{}>, PowerScales, 8>", t);
    case PackedFormat::nvfp4:
      return format("Packed<Float4Codes<{}>, TinyScales, 4>", t);
    default:
      return format("Packed<ByteCodes<Float8Weights<{}>>, TileScales, 8>", t);
  }
}

std::uint64_t packed_key(const PackedWeights& w) {
  return InstanceKey()
      .add(w.format, 5)
      .type(w.parts[2]->type())
      .add(packed_group_shift(w) - 4, 2)
      .add(w.parts[3].has_value(), 1)
      .add(w.parts[4].has_value(), 1)
      .add(w.parts[4] && w.k % 128 == 0, 1);
}

}  // namespace kernwright::kernels
