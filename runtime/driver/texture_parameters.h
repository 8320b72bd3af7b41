// The rules of the driver's functions for CUDA arrays, textures and surfaces, in words.
#pragma once

#include "driver/driver_types.h"

#include <cstdint>
#include <string>

namespace kernwright {

/// Attributes of the device that is asked for.
class DeviceLimits {
 public:
  virtual int attribute(CUdevice_attribute which) const = 0;

 protected:
  ~DeviceLimits() = default;
};

/// Bytes of one element: 1, 2 or 4 channels of a CUarray_format. 0 for a format or number of
/// channels that no array here has. Numbers, not enumerators, as a program may pass any.
std::uint32_t texel_bytes(int type, unsigned channels) noexcept;
/// Whether the format's numbers are floating-point ones.
bool is_floating_texel(int type) noexcept;

/// The axes that coordinates walk over, layers and faces left out: 1, 2 or 3.
int array_rank(const CUDA_ARRAY3D_DESCRIPTOR& array) noexcept;
/// 1 where the array has no layers, six for each cube of a cubemap.
std::uint64_t array_layers(const CUDA_ARRAY3D_DESCRIPTOR& array) noexcept;
/// "a 2-D array of (480, 640) elements", slowest axis first.
std::string describe_array(const CUDA_ARRAY3D_DESCRIPTOR& array);

// Each returns the rule that is broken, with the values; empty when there is none.
std::string check_array(const CUDA_ARRAY3D_DESCRIPTOR& array, const DeviceLimits& limits);
/// `array` describes the resource's array where it has one.
std::string check_texture(const CUDA_RESOURCE_DESC& resource, const CUDA_TEXTURE_DESC& sampler,
                          const CUDA_ARRAY3D_DESCRIPTOR* array, const DeviceLimits& limits);
std::string check_surface(const CUDA_RESOURCE_DESC& resource, const CUDA_ARRAY3D_DESCRIPTOR* array);

}  // namespace kernwright
