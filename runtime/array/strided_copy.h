// Copying a strided view of device memory into a row-major block on the host.
#pragma once

#include "driver/driver_api.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace kernwright {

class Device;

/// Copies all elements of the view to `to`, row-major; any strides (bytes), also negative and 0.
/// Dense views travel as the bytes that they cover and are gathered on the host, sparse ones in
/// pieces; never more than 32 MiB are staged. Waits for the legacy stream, and blocks.
void copy_strided_to_host(Device& device, void* to, CUdeviceptr from,
                          std::span<const std::int64_t> shape,
                          std::span<const std::int64_t> strides, std::size_t element_size);

}  // namespace kernwright
