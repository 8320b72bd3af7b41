// Tensor maps: the 128-byte descriptors of tensor copies, from parameters and back.
#include "sim/tensor_map.h"

#include "base/format.h"

#include <cstring>

namespace kernwright::sim {
namespace {

// CUtensorMapDataType.
enum : int { kFloat16 = 6, kFloat32, kFloat64, kBfloat16, kFloat32Ftz, kTf32, kTf32Ftz, kTypes };

/// The descriptor's number of a type (bits 7 to 10) and whether it is a tf32 (bit 16), by
/// CUtensorMapDataType.
struct TypeCode {
  std::uint32_t number;
  bool tf32;
  std::uint32_t bytes;
};
constexpr std::array<TypeCode, kTypes> kTypeCodes{{{0, false, 1},
                                                   {1, false, 2},
                                                   {2, false, 4},
                                                   {3, false, 4},
                                                   {4, false, 8},
                                                   {5, false, 8},
                                                   {6, false, 2},
                                                   {7, false, 4},
                                                   {9, false, 8},
                                                   {10, false, 2},
                                                   {8, false, 4},
                                                   {7, true, 4},
                                                   {8, true, 4}}};

/// A field of the descriptor: bits `shift` and up of the 32-bit word at byte `word`.
struct Field {
  std::uint32_t word, shift, bits;
};
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
constexpr int kStrideUnit = 4;  ///< strides count 16 bytes

constexpr std::uint64_t mask_of(const Field& field) { return (std::uint64_t{1} << field.bits) - 1; }

void put(std::byte* bytes, const Field& field, std::uint64_t value) {
  std::uint32_t word = 0;
  std::memcpy(&word, bytes + field.word, sizeof word);
  word &= ~static_cast<std::uint32_t>(mask_of(field) << field.shift);
  word |= static_cast<std::uint32_t>((value & mask_of(field)) << field.shift);
  std::memcpy(bytes + field.word, &word, sizeof word);
}

std::uint64_t get(const std::byte* bytes, const Field& field) {
  std::uint32_t word = 0;
  std::memcpy(&word, bytes + field.word, sizeof word);
  return word >> field.shift & mask_of(field);
}

std::uint32_t swizzle_bytes(int swizzle) { return swizzle == 0 ? 0 : 16u << swizzle; }

std::string check_dimension(const TensorMap& map, std::size_t i) {
  const std::uint64_t unit = map.interleave == 2 ? 32 : 16;
  if (map.extent[i] == 0 || map.extent[i] > std::uint64_t{1} << 32)
    return format("dimension {}: an extent of {} is not in 1 to 2^32", i, map.extent[i]);
  if (map.box[i] == 0 || map.box[i] > 256)
    return format("dimension {}: a box of {} is not in 1 to 256", i, map.box[i]);
  if (map.step[i] == 0 || map.step[i] > 8)
    return format("dimension {}: an element stride of {} is not in 1 to 8", i, map.step[i]);
  if (i > 0 && (map.stride[i] % unit != 0 || map.stride[i] >= std::uint64_t{1} << 40))
    return format("dimension {}: a stride of {} bytes is no multiple of {} below 2^40", i,
                  map.stride[i], unit);
  return {};
}

}  // namespace

std::uint32_t tensor_element_bytes(int type) noexcept {
  return type >= 0 && type < kTypes ? kTypeCodes[static_cast<std::size_t>(type)].bytes : 0;
}

bool is_floating_tensor(int type) noexcept { return type >= kFloat16 && type < kTypes; }

std::string check_tensor_map(const TensorMap& map) {
  if (map.rank < 1 || map.rank > kMaxTensorRank) return format("a rank of {}", map.rank);
  const std::uint32_t element = tensor_element_bytes(map.type);
  if (element == 0) return format("there is no data type {}", map.type);
  if (map.interleave < 0 || map.interleave > 2) return format("no interleave {}", map.interleave);
  if (map.swizzle < 0 || map.swizzle > 3) return format("no swizzle {}", map.swizzle);
  if (map.l2_promotion < 0 || map.l2_promotion > 3)
    return format("no L2 promotion {}", map.l2_promotion);
  if (map.interleave != 0 && map.rank < 3) return "an interleaved tensor has a rank of 3 or more";
  const std::uint64_t unit = map.interleave == 2 ? 32 : 16;
  if (map.address % unit != 0)
    return format("the address {:#x} is no multiple of {}", map.address, unit);
  for (std::size_t i = 0; i < static_cast<std::size_t>(map.rank); ++i) {
    std::string wrong = check_dimension(map, i);
    if (!wrong.empty()) return wrong;
  }
  if (map.interleave == 2 && map.swizzle != 1) return "an interleave of 32 bytes swizzles 32 bytes";
  if (map.fills_nan && !is_floating_tensor(map.type)) return "only floating-point elements are NaN";
  if (map.interleave != 0) return {};
  const std::uint64_t row = std::uint64_t{map.box[0]} * element;
  if (row % 16 != 0) return format("a row of {} bytes in the box is no multiple of 16", row);
  if (map.swizzle != 0 && row > swizzle_bytes(map.swizzle))
    return format("a row of {} bytes in the box is longer than the {} bytes that are swizzled", row,
                  swizzle_bytes(map.swizzle));
  return {};
}

std::array<std::byte, kTensorMapBytes> encode_tensor_map(const TensorMap& map) noexcept {
  std::array<std::byte, kTensorMapBytes> result{};
  std::byte* bytes = result.data();
  const TypeCode& code = kTypeCodes[static_cast<std::size_t>(map.type)];
  std::memcpy(bytes, &map.address, sizeof map.address);
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
    put(bytes, box_field(i), map.box[i] - 1);
    if (i == 0) continue;
    put(bytes, stride_low(i), map.stride[i] >> kStrideUnit);
    put(bytes, stride_high(i), map.stride[i] >> (kStrideUnit + 32));
  }
  std::uint64_t box = code.bytes;
  for (std::size_t i = 0; i < static_cast<std::size_t>(map.rank); ++i)
    box *= map.box[i] / map.step[i];
  put(bytes, kBoxBytes, box);
  put(bytes, kAlignment, map.swizzle == 0 ? 16 : 128u << map.swizzle);
  return result;
}

std::optional<TensorMap> decode_tensor_map(const std::byte* bytes) noexcept {
  TensorMap map;
  std::memcpy(&map.address, bytes, sizeof map.address);
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
  if (map.rank > kMaxTensorRank) return std::nullopt;
  for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(map.rank); ++i) {
    map.extent[i] = get(bytes, extent_field(i)) + 1;
    map.step[i] = static_cast<std::uint32_t>(get(bytes, step_field(i))) + 1;
    map.box[i] = static_cast<std::uint32_t>(get(bytes, box_field(i))) + 1;
    if (i == 0) continue;
    map.stride[i] = (get(bytes, stride_low(i)) | get(bytes, stride_high(i)) << 32) << kStrideUnit;
  }
  if (map.address == 0 || !check_tensor_map(map).empty()) return std::nullopt;
  return map;
}

}  // namespace kernwright::sim
