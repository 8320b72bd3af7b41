// Making texture and surface objects, checked before the driver is asked.
#include "core/image/texture.h"

#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "core/device_limits.h"
#include "core/graph/capture.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace kernwright {
namespace {

/// Axes of the coordinates, layers and faces left out.
std::size_t coordinate_axes(const CUDA_RESOURCE_DESC& resource,
                            const CUDA_ARRAY3D_DESCRIPTOR* array) {
  if (array == nullptr) return resource.resType == CU_RESOURCE_TYPE_LINEAR ? 1 : 2;
  if (array->Height == 0) return 1;
  return array->Depth == 0 || (array->Flags & (kArrayLayered | kArrayCubemap)) != 0 ? 2 : 3;
}

CUDA_TEXTURE_DESC describe(const TextureOptions& options, std::size_t axes) {
  CUDA_TEXTURE_DESC sampler{};
  // NOTE: an H100 filters across axes that are not there too: 1-D reads were half border.
  std::fill(std::begin(sampler.addressMode), std::end(sampler.addressMode),
            CU_TR_ADDRESS_MODE_CLAMP);
  std::copy_n(options.address.begin(), axes, sampler.addressMode);
  std::copy(options.border.begin(), options.border.end(), sampler.borderColor);
  sampler.filterMode = options.filter;
  if (options.normalized) sampler.flags |= kTextureNormalizedCoordinates;
  if (!options.normalized_floats) sampler.flags |= kTextureReadAsInteger;
  return sampler;
}

CUDA_RESOURCE_DESC describe(const CudaArray& array) {
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_ARRAY;
  resource.res.array.hArray = array.handle();
  return resource;
}

CUDA_RESOURCE_DESC describe(const TextureMemory& memory) {
  const CUarray_format type = texel_format(memory.type);
  CUDA_RESOURCE_DESC resource{};
  if (memory.height == 0) {
    resource.resType = CU_RESOURCE_TYPE_LINEAR;
    auto& linear = resource.res.linear;
    linear.devPtr = memory.address;
    linear.format = type;
    linear.numChannels = memory.channels;
    linear.sizeInBytes = memory.width * texel_bytes(type, memory.channels);
  } else {
    resource.resType = CU_RESOURCE_TYPE_PITCH2D;
    auto& rows = resource.res.pitch2D;
    rows.devPtr = memory.address;
    rows.format = type;
    rows.numChannels = memory.channels;
    rows.width = memory.width;
    rows.height = memory.height;
    rows.pitchInBytes = memory.pitch;
  }
  return resource;
}

/// Options that the driver accepts but does not follow.
std::string check_options(const TextureOptions& options, CUarray_format type, bool linear) {
  if (options.normalized_floats && (is_floating_texel(type) || texel_bytes(type, 1) == 4))
    return "integers of 8 or 16 bits alone are read as normalized floats";
  if (linear) {
    if (options.filter != CU_TR_FILTER_MODE_POINT || options.normalized)
      return "linear memory is read by tex1Dfetch, which neither filters nor takes normalized "
             "coordinates: use a CUDA array";
    return {};
  }
  for (const CUaddress_mode mode : options.address) {
    const bool repeats = mode == CU_TR_ADDRESS_MODE_WRAP || mode == CU_TR_ADDRESS_MODE_MIRROR;
    if (repeats && !options.normalized)
      return "the address modes wrap and mirror need normalized coordinates";
  }
  return {};
}

std::string memory_name(const TextureMemory& memory, const Device& device) {
  const std::string extent = memory.height == 0
                                 ? format("linear memory of {}", memory.width)
                                 : format("memory of ({}, {})", memory.height, memory.width);
  return format("texture over {} elements, {} x {} on {}", extent, memory.channels,
                scalar_name(memory.type), device.label());
}

}  // namespace

TextureObject::TextureObject(const CudaArray& array, const TextureOptions& options)
    : options_(options) {
  const CUDA_ARRAY3D_DESCRIPTOR& d = array.descriptor();
  create(array.device(), describe(array), &d, "texture over " + array.identify(), array.object());
}

TextureObject::TextureObject(Device& device, const TextureMemory& memory,
                             const TextureOptions& options)
    : options_(options) {
  create(device, describe(memory), nullptr, memory_name(memory, device), memory.owner);
}

void TextureObject::create(Device& device, const CUDA_RESOURCE_DESC& resource,
                           const CUDA_ARRAY3D_DESCRIPTOR* array, std::string name,
                           std::shared_ptr<const void> owner) {
  const bool linear = resource.resType == CU_RESOURCE_TYPE_LINEAR;
  const CUarray_format type = array != nullptr ? array->Format
                              : linear         ? resource.res.linear.format
                                               : resource.res.pitch2D.format;
  const CUDA_TEXTURE_DESC sampler = describe(options_, coordinate_axes(resource, array));
  std::string wrong = check_options(options_, type, linear);
  if (wrong.empty()) wrong = check_texture(resource, sampler, array, LimitsReader(device));
  if (!wrong.empty()) throw InvalidArgument(format("a {} cannot be made: {}", name, wrong));
  CUtexObject handle = 0;
  const ContextGuard guard(device);
  const RelaxedCapture relaxed(device);
  device.check(device.driver().cuTexObjectCreate(&handle, &resource, &sampler, nullptr),
               "cuTexObjectCreate", name);
  const auto destroy = [](const DriverApi& api, std::uint64_t gone) {
    return api.cuTexObjectDestroy(gone);
  };
  object_ = track_object(device, handle, destroy, std::move(name), std::move(owner));
}

SurfaceObject::SurfaceObject(const CudaArray& array) {
  Device& device = array.device();
  std::string name = "surface over " + array.identify();
  const CUDA_RESOURCE_DESC resource = describe(array);
  const std::string wrong = check_surface(resource, &array.descriptor());
  if (!wrong.empty()) throw InvalidArgument(format("a {} cannot be made: {}", name, wrong));
  CUsurfObject handle = 0;
  const ContextGuard guard(device);
  const RelaxedCapture relaxed(device);
  device.check(device.driver().cuSurfObjectCreate(&handle, &resource), "cuSurfObjectCreate", name);
  const auto destroy = [](const DriverApi& api, std::uint64_t gone) {
    return api.cuSurfObjectDestroy(gone);
  };
  object_ = track_object(device, handle, destroy, std::move(name), array.object());
}

}  // namespace kernwright
