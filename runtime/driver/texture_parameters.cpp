// The rules of CUDA arrays, textures and surfaces, from the driver's manual.
#include "driver/texture_parameters.h"

#include "base/format.h"

#include <array>

namespace kernwright {
namespace {

constexpr unsigned kKnownArrayFlags = kArrayLayered | kArraySurface | kArrayCubemap | kArrayGather;
constexpr unsigned kKnownTextureFlags =
    kTextureReadAsInteger | kTextureNormalizedCoordinates | kTextureNoTrilinearOptimization;

/// The largest width, height and depth (or layers); an attribute of 0: there is no such axis.
struct Extents {
  CUdevice_attribute width, height, depth;
};
constexpr auto kNoAxis = static_cast<CUdevice_attribute>(0);

/// Kinds of array: 1-D, 2-D, 3-D, layered 1-D, layered 2-D, cubemap, layered cubemap.
constexpr std::array<Extents, 7> kTextureExtents{{
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH, kNoAxis, kNoAxis},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT,
     kNoAxis},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT,
     CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH, kNoAxis,
     CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH,
     CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT,
     CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH,
     CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH, kNoAxis},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH,
     CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH,
     CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS},
}};
constexpr std::array<Extents, 7> kSurfaceExtents{{
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_WIDTH, kNoAxis, kNoAxis},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_HEIGHT,
     kNoAxis},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_HEIGHT,
     CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_DEPTH},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_WIDTH, kNoAxis,
     CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_LAYERS},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_WIDTH,
     CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_HEIGHT,
     CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_LAYERS},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_WIDTH,
     CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_WIDTH, kNoAxis},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH,
     CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH,
     CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS},
}};

constexpr Extents kGatherExtents{CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_WIDTH,
                                 CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_HEIGHT, kNoAxis};

bool is_layered(const CUDA_ARRAY3D_DESCRIPTOR& array) { return (array.Flags & kArrayLayered) != 0; }
bool is_cubemap(const CUDA_ARRAY3D_DESCRIPTOR& array) { return (array.Flags & kArrayCubemap) != 0; }

std::size_t array_kind(const CUDA_ARRAY3D_DESCRIPTOR& array) {
  if (is_cubemap(array)) return is_layered(array) ? 6 : 5;
  if (is_layered(array)) return array.Height == 0 ? 3 : 4;
  return static_cast<std::size_t>(array_rank(array)) - 1;
}

constexpr const char* kKinds[] = {
    "1-D", "2-D", "3-D", "layered 1-D", "layered 2-D", "cubemap", "layered cubemap"};

std::string too_large(const char* what, std::uint64_t extent, CUdevice_attribute which,
                      const DeviceLimits& limits) {
  if (which == kNoAxis) return {};
  const auto limit = static_cast<std::uint64_t>(limits.attribute(which));
  if (extent <= limit) return {};
  return format("a {} of {} is above the device's limit of {}", what, extent, limit);
}

std::string check_extents(const CUDA_ARRAY3D_DESCRIPTOR& array, const Extents& most,
                          const DeviceLimits& limits) {
  std::string wrong = too_large("width", array.Width, most.width, limits);
  if (wrong.empty()) wrong = too_large("height", array.Height, most.height, limits);
  const char* const last = is_layered(array) ? "number of layers" : "depth";
  return wrong.empty() ? too_large(last, array.Depth, most.depth, limits) : wrong;
}

std::string check_format(int type, unsigned channels) {
  if (texel_bytes(type, 1) == 0) return format("there is no format {}", type);
  if (texel_bytes(type, channels) == 0)
    return format("elements have 1, 2 or 4 channels, not {}", channels);
  return {};
}

std::string check_shape(const CUDA_ARRAY3D_DESCRIPTOR& array) {
  if (array.Width == 0) return "an array has a width of at least 1";
  if (array.Flags & ~kKnownArrayFlags)
    return format("array flags {:#x} are not supported", array.Flags & ~kKnownArrayFlags);
  if (is_cubemap(array)) {
    if (array.Width != array.Height)
      return format("the faces of a cubemap are squares, not {} by {}", array.Width, array.Height);
    if (is_layered(array) ? array.Depth == 0 || array.Depth % 6 != 0 : array.Depth != 6)
      return format("a cubemap has six faces{}, not {}", is_layered(array) ? " a layer" : "",
                    array.Depth);
    return {};
  }
  if (is_layered(array) && array.Depth == 0) return "a layered array has at least one layer";
  if (!is_layered(array) && array.Depth != 0 && array.Height == 0)
    return "an array with a depth has a height";
  return {};
}

std::string check_address(std::uint64_t address, const DeviceLimits& limits) {
  const auto unit =
      static_cast<std::uint64_t>(limits.attribute(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT));
  if (address != 0 && address % unit == 0) return {};
  return format("the address {:#x} is no multiple of {} bytes", address, unit);
}

/// Common checks of both texture resources in ordinary memory.
std::string check_memory(std::uint64_t address, std::uint64_t elements,
                         const DeviceLimits& limits) {
  return elements == 0 ? "a texture has at least one element" : check_address(address, limits);
}

std::string check_linear(const CUDA_RESOURCE_DESC& resource, const DeviceLimits& limits) {
  const auto& memory = resource.res.linear;
  std::string wrong = check_format(memory.format, memory.numChannels);
  if (!wrong.empty()) return wrong;
  const std::uint64_t elements =
      memory.sizeInBytes / texel_bytes(memory.format, memory.numChannels);
  wrong = check_memory(memory.devPtr, elements, limits);
  if (!wrong.empty()) return wrong;
  return too_large("texture over linear memory", elements,
                   CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH, limits);
}

std::string check_pitched(const CUDA_RESOURCE_DESC& resource, const DeviceLimits& limits) {
  const auto& memory = resource.res.pitch2D;
  std::string wrong = check_format(memory.format, memory.numChannels);
  if (wrong.empty())
    wrong = check_memory(memory.devPtr, std::uint64_t{memory.width} * memory.height, limits);
  if (!wrong.empty()) return wrong;
  wrong =
      too_large("width", memory.width, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH, limits);
  if (wrong.empty())
    wrong = too_large("height", memory.height, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT,
                      limits);
  if (wrong.empty())
    wrong = too_large("pitch", memory.pitchInBytes,
                      CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH, limits);
  if (!wrong.empty()) return wrong;
  const auto unit =
      static_cast<std::uint64_t>(limits.attribute(CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT));
  if (memory.pitchInBytes % unit != 0)
    return format("a pitch of {} bytes is no multiple of {}", memory.pitchInBytes, unit);
  const std::uint64_t row = memory.width * texel_bytes(memory.format, memory.numChannels);
  if (memory.pitchInBytes < row)
    return format("a pitch of {} bytes is shorter than a row of {}", memory.pitchInBytes, row);
  return {};
}

std::string check_sampler(const CUDA_TEXTURE_DESC& sampler, int type) {
  for (const CUaddress_mode mode : sampler.addressMode) {
    if (mode < CU_TR_ADDRESS_MODE_WRAP || mode > CU_TR_ADDRESS_MODE_BORDER)
      return format("there is no address mode {}", static_cast<int>(mode));
  }
  if (sampler.filterMode != CU_TR_FILTER_MODE_POINT &&
      sampler.filterMode != CU_TR_FILTER_MODE_LINEAR)
    return format("there is no filter mode {}", static_cast<int>(sampler.filterMode));
  if (sampler.flags & ~kKnownTextureFlags)
    return format("texture flags {:#x} are not supported", sampler.flags & ~kKnownTextureFlags);
  if (sampler.maxAnisotropy > 1) return "anisotropic filtering is not supported";
  const bool promoted = (sampler.flags & kTextureReadAsInteger) == 0 && texel_bytes(type, 1) < 4 &&
                        !is_floating_texel(type);
  if (sampler.filterMode == CU_TR_FILTER_MODE_LINEAR && !promoted && !is_floating_texel(type))
    return "integers cannot be filtered linearly: read those of 8 or 16 bits as normalized floats";
  return {};
}

}  // namespace

std::uint32_t texel_bytes(int type, unsigned channels) noexcept {
  if (channels != 1 && channels != 2 && channels != 4) return 0;
  switch (type) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return channels;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return 2 * channels;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
      return 4 * channels;
    default:
      return 0;
  }
}

bool is_floating_texel(int type) noexcept {
  return type == CU_AD_FORMAT_HALF || type == CU_AD_FORMAT_FLOAT;
}

int array_rank(const CUDA_ARRAY3D_DESCRIPTOR& array) noexcept {
  if (array.Height == 0) return 1;
  return array.Depth == 0 || is_layered(array) || is_cubemap(array) ? 2 : 3;
}

std::uint64_t array_layers(const CUDA_ARRAY3D_DESCRIPTOR& array) noexcept {
  return is_layered(array) || is_cubemap(array) ? array.Depth : 1;
}

std::string describe_array(const CUDA_ARRAY3D_DESCRIPTOR& array) {
  std::string shape;
  for (const std::size_t extent : {array.Depth, array.Height}) {
    if (extent != 0) shape += format("{}, ", extent);
  }
  return format("a {} array of ({}{}) elements", kKinds[array_kind(array)], shape, array.Width);
}

std::string check_array(const CUDA_ARRAY3D_DESCRIPTOR& array, const DeviceLimits& limits) {
  std::string wrong = check_format(array.Format, array.NumChannels);
  if (wrong.empty()) wrong = check_shape(array);
  if (!wrong.empty()) return wrong;
  const std::size_t kind = array_kind(array);
  wrong = check_extents(array, kTextureExtents[kind], limits);
  if (wrong.empty() && (array.Flags & kArraySurface) != 0)
    wrong = check_extents(array, kSurfaceExtents[kind], limits);
  if (!wrong.empty() || (array.Flags & kArrayGather) == 0) return wrong;
  if (kind != 1) return "texture gather is for 2-D arrays without layers";
  return check_extents(array, kGatherExtents, limits);
}

std::string check_texture(const CUDA_RESOURCE_DESC& resource, const CUDA_TEXTURE_DESC& sampler,
                          const CUDA_ARRAY3D_DESCRIPTOR* array, const DeviceLimits& limits) {
  if (resource.flags != 0) return "a resource has no flags";
  switch (resource.resType) {
    case CU_RESOURCE_TYPE_ARRAY:
      return array == nullptr ? "there is no such array" : check_sampler(sampler, array->Format);
    case CU_RESOURCE_TYPE_LINEAR: {
      std::string wrong = check_linear(resource, limits);
      CUDA_TEXTURE_DESC rest = sampler;  // address modes and filter are ignored
      for (CUaddress_mode& mode : rest.addressMode) mode = CU_TR_ADDRESS_MODE_CLAMP;
      rest.filterMode = CU_TR_FILTER_MODE_POINT;
      return wrong.empty() ? check_sampler(rest, resource.res.linear.format) : wrong;
    }
    case CU_RESOURCE_TYPE_PITCH2D: {
      std::string wrong = check_pitched(resource, limits);
      return wrong.empty() ? check_sampler(sampler, resource.res.pitch2D.format) : wrong;
    }
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
      return "mipmapped arrays are not supported: use a CUDA array, which has one level";
    default:
      return format("there is no resource type {}", static_cast<int>(resource.resType));
  }
}

std::string check_surface(const CUDA_RESOURCE_DESC& resource,
                          const CUDA_ARRAY3D_DESCRIPTOR* array) {
  if (resource.flags != 0) return "a resource has no flags";
  if (resource.resType != CU_RESOURCE_TYPE_ARRAY || array == nullptr)
    return "a surface is over a CUDA array";
  if ((array->Flags & kArraySurface) == 0)
    return "the CUDA array was not made for surfaces: make it with the flag for surfaces";
  return {};
}

}  // namespace kernwright
