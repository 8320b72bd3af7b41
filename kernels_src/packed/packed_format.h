// The formats of packed weights, a row of columns each.
#pragma once

#include "base/scalar_type.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kernwright::kernels {

enum class PackedFormat : std::uint8_t {
#define KW_PACKED(name, ...) name,
#include "kernels_src/packed/packed_format.def"
#undef KW_PACKED
};

/// Where weights come from.
enum class PackedKind : std::uint8_t {
  words,   ///< int32 words of GPTQ or AWQ: groups of codes with a scale, with zeros or without
  absmax,  ///< of bitsandbytes: codes count all numbers in turn, blocks have their absmax
  gguf,    ///< blocks of GGUF files
  float4,  ///< float4_e2m1 with scales in an array of their own
  tiles,   ///< float8 with a float32 scale for each tile
};

/// Scales of a format of GGUF or of float4, in units as a block of the format holds them.
struct PackedUnits {
  ScalarType type = ScalarType::uint8;
  int bytes = 0;   ///< of a unit; 0: there are none
  int step = 0;    ///< numbers that share a unit, 16 to 256
  int offset = 0;  ///< of the first unit in a block, in bytes
};

struct PackedTraits {
  std::string_view name{};  ///< as Python and messages name the format
  PackedKind kind = PackedKind::gguf;
  int block = 32;           ///< a row has a multiple of so many numbers, or of a group of them
  const char* codes = "";   ///< the device's type of codes; {} stands for the type of pairs
  const char* scales = "";  ///< and of scales; empty: made of the weights' group, types and zeros
  int bits = 4, upper_bits = 0;  ///< of a code in the first array, and in that of upper bits
  int run = 8;                   ///< codes in turn that a lane decodes at a time
  int group = 32;                ///< numbers that share a scale, where the weights do not tell
  bool has_table = false;        ///< codes stand for the 16 numbers of a table
  bool has_offset = false;       ///< codes have a zero point, a base or minima: sums of x come off
  bool is_exact = false;         ///< a code times its scale is exact in float16 and bfloat16
  bool has_factor = false;       ///< one float32 scales all numbers
  bool has_unit_scales = false;  ///< 256 numbers share one scale of scales (unit_weights.cuh)
  bool has_warpgroups = true;    ///< packed_wgmma.cu takes the format
  PackedUnits units{}, super_units{};  ///< scales, and scales of scales
  const char* source = "";             ///< where repack.cu finds codes
  int source_offset = 0;               ///< of the codes of "Field" in a block, in bytes

  // Measured.
  bool two_teams = false;        ///< packed_wgmma.cu gains by two teams of 8 warps for 64 rows of x
  bool always_arranged = false;  ///< there codes are never read in x's order
  bool spreads_at_32 = false;    ///< there codes are read in x's order for 32 rows of x, too
  bool slow_tiles = false;       ///< 9 to 16 rows of x gain by packed_wgmma.cu
  int ring_depth = 8192;         ///< k up to which 2 to 8 rows of x gain by packed_ring.cu
  int wgmma_depth = 4096;        ///< k above which 9 to 16 rows gain by packed_wgmma.cu instead

  constexpr bool has_byte_codes() const { return bits == 8; }
  constexpr bool has_short_groups() const { return group == 16; }
  constexpr bool has_group_sizes() const {
    return kind == PackedKind::words || kind == PackedKind::absmax;
  }
};

inline constexpr auto kPackedTraits = [] {
  constexpr ScalarType kHalf = ScalarType::float16;
  return std::array{
#define KW_PACKED(format, ...) PackedTraits{.name = #format, __VA_ARGS__},
#include "kernels_src/packed/packed_format.def"
#undef KW_PACKED
  };
}();

constexpr const PackedTraits& packed_traits(PackedFormat format) {
  return kPackedTraits[static_cast<std::size_t>(format)];
}
/// The format of a name, "q4_k". Throws InvalidArgument that lists the names.
PackedFormat packed_format(std::string_view name);

}  // namespace kernwright::kernels
