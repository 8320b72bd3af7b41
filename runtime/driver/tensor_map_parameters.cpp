// The parameters of the driver's functions for tensor maps, and the driver's rules for them.
#include "driver/tensor_map_parameters.h"

#include "base/format.h"
#include "driver/driver_types.h"

namespace kernwright {
namespace {

constexpr std::uint64_t kMaxExtent = std::uint64_t{1} << 32;
constexpr std::uint64_t kStrideLimit = std::uint64_t{1} << 40;
constexpr std::uint32_t kMaxBox = 256, kMaxStep = 8, kMaxPixels = 1024;
/// The limit of driver 580 on an H200, as much as the shared memory of its multiprocessors (found
/// by trying; the manual has no such rule).
constexpr std::uint64_t kMaxCopyBytes = 228 * 1024;

constexpr int kTypes = CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ + 1;
constexpr std::array<std::uint8_t, kTypes> kElementBytes{1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};

constexpr const char* kInterleaves[] = {"none", "16B", "32B"};
constexpr const char* kSwizzles[] = {"none", "32B", "64B", "128B"};

/// Addresses and strides are multiples of it.
std::uint64_t address_unit(const TensorMapParameters& map) {
  return std::max(16u, tensor_slice_bytes(map));
}

/// The axis of the array that dimension `i` is.
std::size_t array_axis(const TensorMapParameters& map, std::size_t i) {
  return static_cast<std::size_t>(map.rank) - 1 - i;
}

std::string check_modes(const TensorMapParameters& map) {
  const int least = map.im2col ? 3 : 1;
  if (map.rank < least || map.rank > kMaxTensorRank)
    return format("{} tensor map has {} to {} axes, not {}", map.im2col ? "an im2col" : "a", least,
                  kMaxTensorRank, map.rank);
  if (tensor_element_bytes(map.type) == 0)
    return format("there is no tensor map data type {}", map.type);
  if (map.interleave < 0 || map.interleave > CU_TENSOR_MAP_INTERLEAVE_32B)
    return format("there is no interleave {}", map.interleave);
  if (map.swizzle < 0 || map.swizzle > CU_TENSOR_MAP_SWIZZLE_128B)
    return format("there is no swizzle {}", map.swizzle);
  if (map.l2_promotion < 0 || map.l2_promotion > CU_TENSOR_MAP_L2_PROMOTION_L2_256B)
    return format("there is no L2 promotion {}", map.l2_promotion);
  if (map.interleave != CU_TENSOR_MAP_INTERLEAVE_NONE && map.rank < 3)
    return format("interleave {} needs 3 axes or more, not {}", kInterleaves[map.interleave],
                  map.rank);
  if (map.interleave == CU_TENSOR_MAP_INTERLEAVE_32B && map.swizzle != CU_TENSOR_MAP_SWIZZLE_32B)
    return format("interleave 32B needs swizzle 32B, not {}", kSwizzles[map.swizzle]);
  if (map.fills_nan && !is_floating_tensor(map.type))
    return "only elements of a floating-point type can be filled with NaN";
  return {};
}

std::string check_dimension(const TensorMapParameters& map, std::size_t i) {
  const std::size_t axis = array_axis(map, i);
  if (map.extent[i] == 0 || map.extent[i] > kMaxExtent)
    return format("axis {}: an extent of {} is not in 1 to 2^32", axis, map.extent[i]);
  if (i > 0 && map.stride[i] % address_unit(map) != 0)
    return format("axis {}: a stride of {} bytes is no multiple of {}", axis, map.stride[i],
                  address_unit(map));
  if (i > 0 && map.stride[i] >= kStrideLimit)
    return format("axis {}: a stride of {} bytes is not below 2^40", axis, map.stride[i]);
  if (!map.im2col && (map.box[i] == 0 || map.box[i] > kMaxBox))
    return format("axis {}: a box of {} elements is not in 1 to {}", axis, map.box[i], kMaxBox);
  if (map.step[i] == 0 || map.step[i] > kMaxStep)
    return format("axis {}: an element stride of {} is not in 1 to {}", axis, map.step[i],
                  kMaxStep);
  return {};
}

std::string check_pixels(const TensorMapParameters& map) {
  if (map.box[0] == 0 || map.box[0] > kMaxBox)
    return format("{} channels per pixel are not in 1 to {}", map.box[0], kMaxBox);
  if (map.pixels == 0 || map.pixels > kMaxPixels)
    return format("{} pixels per column are not in 1 to {}", map.pixels, kMaxPixels);
  const int limit = tensor_corner_limit(map.rank);
  for (std::size_t i = 0; i + 2 < static_cast<std::size_t>(map.rank); ++i) {
    // W is dimension 0 where the channels are interleaved.
    const std::size_t d = map.interleave == CU_TENSOR_MAP_INTERLEAVE_NONE ? i + 1 : i;
    const std::size_t axis = array_axis(map, d);
    for (const bool is_upper : {false, true}) {
      const int corner = (is_upper ? map.upper : map.lower)[i];
      if (corner < -limit || corner >= limit)
        return format(
            "axis {}: the {} corner of the pixel box, {}, is not in {} to {}, which {} "
            "axes allow",
            axis, is_upper ? "upper" : "lower", corner, -limit, limit - 1, map.rank);
    }
    const auto last = static_cast<std::int64_t>(map.extent[d]) - 1 + map.upper[i];
    if (last < map.lower[i])
      return format("axis {}: the pixel box from {} to {} is empty (extent {}, upper corner {})",
                    axis, map.lower[i], last, map.extent[d], map.upper[i]);
  }
  return {};
}

/// Rows of the box in shared memory.
std::string check_row(const TensorMapParameters& map) {
  const std::uint32_t element = tensor_element_bytes(map.type);
  const std::uint64_t row = std::uint64_t{map.box[0]} * element;
  const auto text = [&] {
    return format("axis {}: a box of {} elements of {} byte{} has rows of {} bytes",
                  array_axis(map, 0), map.box[0], element, element == 1 ? "" : "s", row);
  };
  if (row % 16 != 0) return text() + ", no multiple of 16";
  if (map.interleave != CU_TENSOR_MAP_INTERLEAVE_NONE) return {};
  const std::uint64_t span = 16u << map.swizzle;
  if (map.swizzle != CU_TENSOR_MAP_SWIZZLE_NONE && row > span)
    return text() +
           format(", longer than the {} bytes of swizzle {}", span, kSwizzles[map.swizzle]);
  return {};
}

std::string too_large(const TensorMapParameters& map, std::uint64_t bytes) {
  return format("{} of {} bytes {} larger than {}, what a multiprocessor's shared memory holds",
                map.im2col ? "columns" : "a box", bytes, map.im2col ? "are" : "is", kMaxCopyBytes);
}

/// The driver divides by element strides and drops the rest.
std::string check_bytes(const TensorMapParameters& map) {
  std::uint64_t bytes = tensor_element_bytes(map.type);
  if (map.im2col) {
    bytes *= std::uint64_t{map.box[0]} * map.pixels;
  } else {
    for (std::size_t i = 0; i < static_cast<std::size_t>(map.rank); ++i)
      bytes *= map.box[i] / map.step[i];
  }
  return bytes <= kMaxCopyBytes ? std::string{} : too_large(map, bytes);
}

}  // namespace

std::uint32_t tensor_element_bytes(int type) noexcept {
  return type >= 0 && type < kTypes ? kElementBytes[static_cast<std::size_t>(type)] : 0;
}

bool is_floating_tensor(int type) noexcept {
  return type >= CU_TENSOR_MAP_DATA_TYPE_FLOAT16 && type < kTypes;
}

int tensor_corner_limit(int rank) noexcept { return rank == 3 ? 32768 : rank == 4 ? 128 : 16; }

std::string check_tensor_map(const TensorMapParameters& map) {
  std::string wrong = check_modes(map);
  if (!wrong.empty()) return wrong;
  if (map.address % address_unit(map) != 0)
    return format("the address {:#x} is no multiple of {} bytes", map.address, address_unit(map));
  for (std::size_t i = 0; i < static_cast<std::size_t>(map.rank); ++i) {
    wrong = check_dimension(map, i);
    if (!wrong.empty()) return wrong;
  }
  if (map.im2col) wrong = check_pixels(map);
  if (wrong.empty()) wrong = check_row(map);
  return wrong.empty() ? check_bytes(map) : wrong;
}

std::uint32_t tensor_slice_bytes(const TensorMapParameters& map) noexcept {
  switch (map.interleave) {
    case CU_TENSOR_MAP_INTERLEAVE_16B:
      return 16;
    case CU_TENSOR_MAP_INTERLEAVE_32B:
      return 32;
    default:
      return 0;
  }
}

std::string check_slices(const TensorMapParameters& map) {
  const std::uint32_t slice = tensor_slice_bytes(map);
  if (slice == 0) return {};
  const std::uint32_t element = tensor_element_bytes(map.type);
  const auto channels = static_cast<std::size_t>(map.rank) - 2;
  if (map.im2col && map.box[0] * element != slice)
    return format("{} channels of {} byte{} per pixel: interleave {} takes one slice, {} bytes",
                  map.box[0], element, element == 1 ? "" : "s", kInterleaves[map.interleave],
                  slice);
  if (!map.im2col && map.box[channels] != 1)
    return format("axis {}: a box of {} slices: with an interleave a copy takes one",
                  array_axis(map, channels), map.box[channels]);
  const std::uint64_t bytes = tensor_box_bytes(map);
  return bytes <= kMaxCopyBytes ? std::string{} : too_large(map, bytes);
}

std::uint64_t tensor_box_bytes(const TensorMapParameters& map) noexcept {
  const std::uint32_t slice = tensor_slice_bytes(map);
  // Without an interleave the elements of a row follow each other, whatever its element stride.
  const std::uint64_t row =
      slice != 0 ? slice : std::uint64_t{map.box[0]} * tensor_element_bytes(map.type);
  if (map.im2col) return row * map.pixels;
  std::uint64_t bytes = row;
  const auto rank = static_cast<std::size_t>(map.rank);
  for (std::size_t i = slice != 0 ? 0 : 1; i < rank; ++i) {
    if (slice != 0 && i == rank - 2) continue;  // one slice of the channels
    bytes *= (map.box[i] + map.step[i] - 1) / map.step[i];
  }
  return bytes;
}

}  // namespace kernwright
