// Tensor maps: the 128-byte descriptors of tensor copies, from parameters and back.
#pragma once

#include "driver/tensor_map_parameters.h"

#include <array>
#include <cstddef>
#include <optional>

namespace kernwright::sim {

/// The descriptor of a map that check_tensor_map() accepts: byte for byte that of the driver 580 on
/// an H200, for which tests/gpu compares them.
std::array<std::byte, kTensorMapBytes> encode_tensor_map(const TensorMapParameters& map) noexcept;

/// Nothing for bytes that no map has.
std::optional<TensorMapParameters> decode_tensor_map(const std::byte* bytes) noexcept;

}  // namespace kernwright::sim
