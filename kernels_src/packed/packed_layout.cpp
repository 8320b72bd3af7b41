// The layout of packed weights: how large its arrays are, and what the kernels call it.
#include "base/errors.h"
#include "base/format.h"
#include "base/math.h"
#include "kernels_src/family.h"
#include "kernels_src/packed/packed.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <string>

namespace kernwright::kernels {
namespace {

constexpr std::array<const char*, PackedWeights::kParts> kPackedPartNames = {
    "codes", "upper bits", "scales", "zeros or scales of scales",
    "table", "absmax",     "factor", "order"};

/// Requirements for an array; without a count it must be absent.
struct PackedPart {
  ScalarType type = ScalarType::uint8;
  std::int64_t count = -1;
};

/// Scales as units of a format. Blocks of 128 of k have `rows`, pairs of blocks have `pairs`.
PackedPart packed_unit_part(const PackedUnits& units, std::int64_t rows, std::int64_t pairs) {
  if (units.bytes == 0) return {};
  const std::int64_t count = units.step == 256 ? pairs : rows * (128 / units.step);
  return {units.type, count * units.bytes / static_cast<std::int64_t>(scalar_size(units.type))};
}

/// The parts for so many rows and columns in the format of `w`.
std::array<PackedPart, PackedWeights::kParts> packed_parts(const PackedWeights& w, std::int64_t n,
                                                           std::int64_t k) {
  const std::int64_t tiles = ceil_div(n, 16), blocks = ceil_div(k, 128), all = tiles * blocks;
  const std::int64_t rows = all * 16, pairs = tiles * ((blocks + 1) / 2) * 16;
  const std::int64_t groups = w.group > 0 ? rows * (128 / w.group) : 0;
  std::array<PackedPart, PackedWeights::kParts> p{};
  auto& [codes, upper, scales, more, table, absmax, factor, order] = p;
  const PackedTraits& traits = w.traits();
  codes.count = all * 256 * traits.bits;
  if (traits.upper_bits > 0) upper.count = all * 256 * traits.upper_bits;
  if (traits.has_factor) factor = {ScalarType::float32, 1};
  switch (traits.kind) {
    case PackedKind::words:
      scales = {w.parts[2] ? w.parts[2]->type() : ScalarType::float16, groups};
      if (w.parts[3]) more.count = groups;
      if (w.parts[7]) order = {ScalarType::int32, k};
      break;
    case PackedKind::absmax:
      scales = {w.parts[4] ? ScalarType::uint8 : ScalarType::float32, groups};
      if (!w.parts[4]) break;
      table = {ScalarType::float32, 256};
      absmax = {ScalarType::float32,
                w.parts[5] ? std::max<std::int64_t>(1, w.parts[5]->size()) : 1};
      factor = {ScalarType::float32, 1};
      break;
    case PackedKind::tiles:
      scales = {ScalarType::float32,
                ((n + w.tile[0] - 1) / w.tile[0]) * ((k + w.tile[1] - 1) / w.tile[1])};
      break;
    default:
      scales = packed_unit_part(traits.units, rows, pairs);
      more = packed_unit_part(traits.super_units, rows, pairs);
  }
  return p;
}

/// k must be a multiple of this.
std::int64_t packed_step(const PackedWeights& w) {
  return w.traits().has_group_sizes() ? w.group : w.traits().block;
}

/// log2 of the group, 4 to 7.
int packed_group_shift(const PackedWeights& w) {
  return w.group > 0 ? std::countr_zero(static_cast<std::uint64_t>(w.group)) : 4;
}

}  // namespace

PackedFormat packed_format(std::string_view name) {
  const auto* const found = std::find_if(kPackedTraits.begin(), kPackedTraits.end(),
                                         [&](const PackedTraits& row) { return row.name == name; });
  if (found != kPackedTraits.end()) return static_cast<PackedFormat>(found - kPackedTraits.begin());
  std::string names;
  for (const PackedTraits& row : kPackedTraits)
    names += format("{}{}", names.empty() ? "" : ", ", row.name);
  throw InvalidArgument(format("there are no packed weights of {}: {}", name, names));
}

void check_packed_shape(const PackedWeights& w) {
  constexpr std::int64_t kMostRows = std::int64_t{1} << 30, kMostNumbers = std::int64_t{1} << 44;
  const PackedTraits& traits = w.traits();
  const std::string_view name = traits.name;
  if (w.n < 0 || w.k < 0 || w.n > kMostRows || w.k > kMostRows || w.n * w.k > kMostNumbers)
    throw InvalidArgument(
        format("packed weights have up to 2^30 rows and columns, 2^44 numbers in "
               "all, not ({}, {})",
               w.n, w.k));
  if (traits.has_group_sizes() && w.group != 32 && w.group != 64 && w.group != 128)
    throw InvalidArgument(
        format("packed weights of {} have groups of 32, 64 or 128 numbers, not {}", name, w.group));
  const bool whole = w.tile[0] >= 1 && w.tile[0] <= kMostRows && w.tile[1] >= 128 &&
                     w.tile[1] <= kMostRows && w.tile[1] % 128 == 0;
  if (traits.kind == PackedKind::tiles && !whole)
    throw InvalidArgument(
        format("packed weights of {} have tiles with a multiple of 128 columns, not {} x {}", name,
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
      throw InvalidArgument(format("packed weights of {} {} {}", w.traits().name,
                                   part ? "have no" : "lack their", kPackedPartNames[i]));
    const bool placed = part->is_contiguous() && part->address() % 16 == 0;
    if (part->type() != wanted[i].type || part->size() != wanted[i].count || !placed)
      throw InvalidArgument(
          format("Incompatible dimensions or dtypes: of packed {} of shape ({}, {}) the array of "
                 "{} has {} numbers of {} without gaps at a multiple of 16 bytes, not {}",
                 w.traits().name, w.n, w.k, kPackedPartNames[i], wanted[i].count,
                 scalar_name(wanted[i].type), part->identify()));
    if (&part->device() != &w.parts[0]->device())
      throw InvalidArgument(format("packed weights are not on the same device: {} and {}",
                                   part->identify(), w.parts[0]->identify()));
  }
  if (w.traits().kind == PackedKind::words) {
    const ScalarType type = w.parts[2]->type();
    if (type != ScalarType::float16 && type != ScalarType::bfloat16 && type != ScalarType::float32)
      throw InvalidArgument(format("scales of {} are float16, bfloat16 or float32, not {}",
                                   w.traits().name, w.parts[2]->identify()));
  }
  if (w.traits().kind != PackedKind::absmax || !w.parts[4]) return;
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
    const bool tile_scales = i == 2 && w.traits().kind == PackedKind::tiles;
    if (parts[i].count > 0 && !tile_scales)
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
  made.blocks = static_cast<std::uint32_t>(ceil_div(w.k, 128));
  made.shift = static_cast<std::uint32_t>(packed_group_shift(w) + 8);
  if (w.traits().kind != PackedKind::tiles) return made;
  made.tile_rows = static_cast<std::uint32_t>(w.tile[0]);
  made.tile_blocks = static_cast<std::uint32_t>(w.tile[1] / 128);
  made.tiles_across = static_cast<std::uint32_t>((w.k + w.tile[1] - 1) / w.tile[1]);
  return made;
}

std::string packed_device_format(const PackedWeights& w, ScalarType type) {
  const PackedTraits& traits = w.traits();
  std::string codes = traits.codes, scales = traits.scales;
  codes.replace(codes.find("{}"), 2, device_type(type));
  if (traits.kind == PackedKind::words) {
    scales = format("GroupScales<{}, {}, {}>", device_type(w.parts[2]->type()), w.group,
                    w.parts[3] ? -1 : 8);
  } else if (traits.kind == PackedKind::absmax) {
    scales = w.parts[4] ? format("NestedScales<{}, {}>", w.group, w.k % 128 == 0)
                        : format("GroupScales<Float32, {}, 0>", w.group);
  }
  return format("Packed<{}, {}, {}>", codes, scales, traits.run);
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
