// Tensor maps: the 128-byte descriptors of tensor copies, from parameters and back.
#pragma once

#include "driver/tensor_map_parameters.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace kernwright::sim {

/// The descriptor of a map accepted by check_tensor_map(): byte for byte the one of driver 580 on
/// an H200; tests/gpu compares them.
std::array<std::byte, kTensorMapBytes> encode_tensor_map(const TensorMapParameters& map) noexcept;

/// Nothing for bytes not possible in a map.
std::optional<TensorMapParameters> decode_tensor_map(const std::byte* bytes) noexcept;

/// The field names of tensormap.replace.
enum class TensorMapField : std::uint8_t {
  address,
  rank,    ///< less one
  box,     ///< of a dimension
  extent,  ///< of a dimension
  stride,  ///< in bytes; of the dimension behind the named one
  step,    ///< of a dimension
  type,    ///< the manual's number
  interleave,
  swizzle,
  fill,
};

/// Changes one field of a descriptor and nothing else, as tensormap.replace does on an H200;
/// tests/gpu compares the bytes. `dimension` is below kMaxTensorRank. Returns where its 32-bit
/// words begin in the descriptor, one or two; kTensorMapBytes for none.
std::array<std::uint32_t, 2> replace_tensor_map_field(std::byte* bytes, TensorMapField field,
                                                      std::uint32_t dimension,
                                                      std::uint64_t value) noexcept;

}  // namespace kernwright::sim
