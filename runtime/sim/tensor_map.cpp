// Tensor maps: the 128-byte descriptors of tensor copies, from parameters and back.
#include "sim/tensor_map.h"

#include <cstring>

namespace kernwright::sim {
namespace {

constexpr std::size_t kTypes = 13;

/// The descriptor's number of a type (bits 7 to 10) and whether it is a tf32 (bit 16), by
/// CUtensorMapDataType.
struct TypeCode {
  std::uint32_t number;
  bool tf32;
};
constexpr std::array<TypeCode, kTypes> kTypeCodes{{{0, false},
                                                   {1, false},
                                                   {2, false},
                                                   {3, false},
                                                   {4, false},
                                                   {5, false},
                                                   {6, false},
                                                   {7, false},
                                                   {9, false},
                                                   {10, false},
                                                   {8, false},
                                                   {7, true},
                                                   {8, true}}};

/// A field of the descriptor: bits `shift` and up of the 32-bit word at byte `word`.
struct Field {
  std::uint32_t word, shift, bits;
};
constexpr Field kIm2col{0x08, 0, 1};
constexpr Field kRank{0x08, 4, 3};  ///< less one
constexpr Field kType{0x08, 7, 4};
constexpr Field kInterleave{0x08, 11, 2};
constexpr Field kSwizzle{0x08, 13, 2};
constexpr Field kFillNan{0x08, 15, 1};
constexpr Field kIsTf32{0x08, 16, 1};
constexpr Field kL2Promotion{0x08, 17, 2};
constexpr Field kBoxBytes{0x40, 0, 32};   ///< that a copy moves, element strides rounded down
constexpr Field kAlignment{0x48, 0, 32};  ///< of the box in shared memory: how far a swizzle spans
constexpr Field stride_low(std::uint32_t dimension) { return {0x0c + 4 * (dimension - 1), 0, 32}; }
constexpr Field stride_high(std::uint32_t dimension) { return {0x1c, 4 * (dimension - 1), 4}; }
constexpr Field extent_field(std::uint32_t dimension) { return {0x20 + 4 * dimension, 0, 32}; }
constexpr Field step_field(std::uint32_t dimension) { return {0x34, 3 * dimension, 3}; }
constexpr Field box_field(std::uint32_t dimension) {
  return dimension == 0 ? Field{0x34, 24, 8} : Field{0x38, 8 * (dimension - 1), 8};
}
constexpr Field kPixels{0x3c, 0, 10};  ///< of im2col, less one
/// Fields of im2col, in place of the outer extents of the box: corners of W, H and D. Each gets an
/// equal share of the bits of half a word.
constexpr Field corner_field(int rank, std::uint32_t i, bool is_upper) {
  const std::uint32_t bits = rank == 3 ? 16 : rank == 4 ? 8 : 5;
  return {0x38, (is_upper ? 16 : 0) + bits * i, bits};
}
constexpr int kStrideUnit = 4;  ///< strides count 16 bytes

constexpr std::uint64_t bitmask(const Field& field) { return (std::uint64_t{1} << field.bits) - 1; }

void put(std::byte* bytes, const Field& field, std::uint64_t value) {
  std::uint32_t word = 0;
  std::memcpy(&word, bytes + field.word, sizeof word);
  word &= ~static_cast<std::uint32_t>(bitmask(field) << field.shift);
  word |= static_cast<std::uint32_t>((value & bitmask(field)) << field.shift);
  std::memcpy(bytes + field.word, &word, sizeof word);
}

std::uint64_t get(const std::byte* bytes, const Field& field) {
  std::uint32_t word = 0;
  std::memcpy(&word, bytes + field.word, sizeof word);
  return word >> field.shift & bitmask(field);
}

/// The signed number in a field.
int get_signed(const std::byte* bytes, const Field& field) {
  const auto value = static_cast<std::int64_t>(get(bytes, field));
  const std::int64_t sign = std::int64_t{1} << (field.bits - 1);
  return static_cast<int>((value ^ sign) - sign);
}

void put_box(std::byte* bytes, const TensorMapParameters& map) {
  put(bytes, box_field(0), map.box[0] - 1);
  const auto rank = static_cast<std::uint32_t>(map.rank);
  std::uint64_t count = map.im2col ? std::uint64_t{map.box[0]} * map.pixels : 1;
  if (map.im2col) {
    put(bytes, kPixels, map.pixels - 1);
    for (std::uint32_t i = 0; i + 2 < rank; ++i) {
      put(bytes, corner_field(map.rank, i, false), static_cast<std::uint64_t>(map.lower[i]));
      put(bytes, corner_field(map.rank, i, true), static_cast<std::uint64_t>(map.upper[i]));
    }
  } else {
    for (std::uint32_t i = 1; i < rank; ++i) put(bytes, box_field(i), map.box[i] - 1);
    for (std::uint32_t i = 0; i < rank; ++i) count *= map.box[i] / map.step[i];
  }
  put(bytes, kBoxBytes, count * tensor_element_bytes(map.type));
}

void get_box(const std::byte* bytes, TensorMapParameters& map) {
  const auto rank = static_cast<std::uint32_t>(map.rank);
  map.box[0] = static_cast<std::uint32_t>(get(bytes, box_field(0))) + 1;
  if (!map.im2col) {
    for (std::uint32_t i = 1; i < rank; ++i)
      map.box[i] = static_cast<std::uint32_t>(get(bytes, box_field(i))) + 1;
    return;
  }
  map.pixels = static_cast<std::uint32_t>(get(bytes, kPixels)) + 1;
  for (std::uint32_t i = 0; i + 2 < rank; ++i) {
    map.lower[i] = get_signed(bytes, corner_field(map.rank, i, false));
    map.upper[i] = get_signed(bytes, corner_field(map.rank, i, true));
  }
}

}  // namespace

std::array<std::byte, kTensorMapBytes> encode_tensor_map(const TensorMapParameters& map) noexcept {
  std::array<std::byte, kTensorMapBytes> result{};
  std::byte* bytes = result.data();
  const TypeCode& code = kTypeCodes[static_cast<std::size_t>(map.type)];
  std::memcpy(bytes, &map.address, sizeof map.address);
  put(bytes, kIm2col, map.im2col ? 1 : 0);
  put(bytes, kRank, static_cast<std::uint64_t>(map.rank - 1));
  put(bytes, kType, code.number);
  put(bytes, kIsTf32, code.tf32 ? 1 : 0);
  put(bytes, kInterleave, static_cast<std::uint64_t>(map.interleave));
  put(bytes, kSwizzle, static_cast<std::uint64_t>(map.swizzle));
  put(bytes, kFillNan, map.fills_nan ? 1 : 0);
  put(bytes, kL2Promotion, static_cast<std::uint64_t>(map.l2_promotion));
  for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(map.rank); ++i) {
    put(bytes, extent_field(i), map.extent[i] - 1);
    put(bytes, step_field(i), map.step[i] - 1);
    if (i == 0) continue;
    put(bytes, stride_low(i), map.stride[i] >> kStrideUnit);
    put(bytes, stride_high(i), map.stride[i] >> (kStrideUnit + 32));
  }
  put_box(bytes, map);
  put(bytes, kAlignment, map.swizzle == 0 ? 16 : 128u << map.swizzle);
  return result;
}

std::optional<TensorMapParameters> decode_tensor_map(const std::byte* bytes) noexcept {
  TensorMapParameters map;
  std::memcpy(&map.address, bytes, sizeof map.address);
  map.im2col = get(bytes, kIm2col) != 0;
  map.rank = static_cast<int>(get(bytes, kRank)) + 1;
  map.type = -1;
  for (std::size_t t = 0; t < kTypeCodes.size(); ++t) {
    const TypeCode& code = kTypeCodes[t];
    if (code.number == get(bytes, kType) && code.tf32 == (get(bytes, kIsTf32) != 0))
      map.type = static_cast<int>(t);
  }
  map.interleave = static_cast<int>(get(bytes, kInterleave));
  map.swizzle = static_cast<int>(get(bytes, kSwizzle));
  map.fills_nan = get(bytes, kFillNan) != 0;
  map.l2_promotion = static_cast<int>(get(bytes, kL2Promotion));
  if (map.rank > kMaxTensorRank || (map.im2col && map.rank < 3)) return std::nullopt;
  for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(map.rank); ++i) {
    map.extent[i] = get(bytes, extent_field(i)) + 1;
    map.step[i] = static_cast<std::uint32_t>(get(bytes, step_field(i))) + 1;
    if (i == 0) continue;
    map.stride[i] = (get(bytes, stride_low(i)) | get(bytes, stride_high(i)) << 32) << kStrideUnit;
  }
  get_box(bytes, map);
  if (map.address == 0 || !check_tensor_map(map).empty()) return std::nullopt;
  return map;
}

std::array<std::uint32_t, 2> replace_tensor_map_field(std::byte* bytes, TensorMapField field,
                                                      std::uint32_t dimension,
                                                      std::uint64_t value) noexcept {
  constexpr std::uint64_t kTf32 = 11, kNumberBehind = 4;  // in the manual's order of types
  const auto replace = [bytes](const Field& place, std::uint64_t word) {
    put(bytes, place, word);
    return std::array{place.word, static_cast<std::uint32_t>(kTensorMapBytes)};
  };
  switch (field) {
    case TensorMapField::address: std::memcpy(bytes, &value, sizeof value); return {0, 4};
    case TensorMapField::rank: return replace(kRank, value);
    case TensorMapField::box: return replace(box_field(dimension), value - 1);
    case TensorMapField::extent: return replace(extent_field(dimension), value - 1);
    case TensorMapField::stride:
      put(bytes, stride_low(dimension + 1), value >> kStrideUnit);
      put(bytes, stride_high(dimension + 1), value >> (kStrideUnit + 32));
      return {stride_low(dimension + 1).word, stride_high(dimension + 1).word};
    case TensorMapField::step: return replace(step_field(dimension), value - 1);
    case TensorMapField::type:
      put(bytes, kIsTf32, value < kTf32 ? 0 : 1);
      return replace(kType, value < kTf32 ? value : value - kNumberBehind);
    case TensorMapField::interleave: return replace(kInterleave, value);
    case TensorMapField::swizzle: return replace(kSwizzle, value);
    case TensorMapField::fill: return replace(kFillNan, value);
  }
  return {};
}

}  // namespace kernwright::sim
