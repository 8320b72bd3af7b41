// Tensor maps: the 128-byte descriptors of tensor copies, from parameters and back.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace kernwright::sim {

inline constexpr int kMaxTensorRank = 5;
inline constexpr std::size_t kTensorMapBytes = 128;

/// What cuTensorMapEncodeTiled takes, in its numbering (CUtensorMapDataType, ...). Dimension 0 is
/// the one whose elements follow each other in memory.
struct TensorMap {
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

  bool operator==(const TensorMap&) const = default;
};

/// Bytes of an element of CUtensorMapDataType `type`; 0 for no type.
std::uint32_t tensor_element_bytes(int type) noexcept;
bool is_floating_tensor(int type) noexcept;

/// What the driver would refuse: empty when all is well.
std::string check_tensor_map(const TensorMap& map);

/// The descriptor of a map that check_tensor_map() accepts: byte for byte that of the driver 580 on
/// an H200.
std::array<std::byte, kTensorMapBytes> encode_tensor_map(const TensorMap& map) noexcept;

/// Nothing for bytes that no map has.
std::optional<TensorMap> decode_tensor_map(const std::byte* bytes) noexcept;

}  // namespace kernwright::sim
