// The parameters of the driver's functions for tensor maps, and the driver's rules for them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace kernwright {

inline constexpr int kMaxTensorRank = 5;
inline constexpr std::size_t kTensorMapBytes = 128;

/// The arguments of cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col, in their numbering
/// (CUtensorMapDataType, ...) and order: elements along dimension 0 follow each other in memory.
/// Numbers, not enumerators, as a program may pass any.
///
/// With an interleave, dimension 0 counts slices of 16 or 32 bytes instead; these follow each other
/// whatever the type. The last but one dimension is then the channels' slices. A copy takes the
/// slice at its coordinate whatever the box says: W, (H, (D,)) C/8, N for NC/8HWC8, as an H200 has
/// it.
struct TensorMapParameters {
  std::uint64_t address = 0;
  int rank = 1;
  int type = 0;                                        ///< CUtensorMapDataType
  std::array<std::uint64_t, kMaxTensorRank> extent{};  ///< elements
  std::array<std::uint64_t, kMaxTensorRank> stride{};  ///< bytes; [0] is unused
  std::array<std::uint32_t, kMaxTensorRank> box{};     ///< elements that a copy walks over
  std::array<std::uint32_t, kMaxTensorRank> step{};    ///< takes every step-th of them
  int interleave = 0;                                  ///< 0 none, 1 16 B, 2 32 B
  int swizzle = 0;                                     ///< 0 none, 1 32 B, 2 64 B, 3 128 B
  int l2_promotion = 0;                                ///< 0 none, 1 64 B, 2 128 B, 3 256 B
  bool fills_nan = false;                              ///< elements outside read as NaN, else 0

  /// The rest is for im2col alone. There box[0] counts the channels of a pixel, and the other
  /// extents of the box are unused: copies walk over pixels of a bounding box. Its corners are
  /// given for W, H and D (as far as the rank has them) from the tensor's own corners on.
  bool im2col = false;
  std::array<int, kMaxTensorRank - 2> lower{}, upper{};
  std::uint32_t pixels = 0;  ///< that a copy takes

  bool operator==(const TensorMapParameters&) const = default;
};

/// Bytes of an element of CUtensorMapDataType `type`; 0 for none that compute capability 9.0 has.
std::uint32_t tensor_element_bytes(int type) noexcept;
bool is_floating_tensor(int type) noexcept;

/// Offsets of a bounding box's corners are in -limit to limit - 1 for a tensor of that rank.
int tensor_corner_limit(int rank) noexcept;

/// The driver's rule broken by the parameters, with the values; empty when none. Names axes as in
/// the array: the last one is dimension 0.
std::string check_tensor_map(const TensorMapParameters& map);

/// Bytes of a slice of interleaved channels, 16 or 32; 0 without an interleave.
std::uint32_t tensor_slice_bytes(const TensorMapParameters& map) noexcept;

/// The error in the box of an interleaved map accepted by the driver: a copy takes less or more
/// than the box. Empty without an error, and without an interleave.
std::string check_slices(const TensorMapParameters& map);

/// Bytes of shared memory filled by a copy, those for elements outside the tensor included. The
/// parameters must be valid for check_tensor_map().
std::uint64_t tensor_box_bytes(const TensorMapParameters& map) noexcept;

}  // namespace kernwright
