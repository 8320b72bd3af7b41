// Driver functions of texture and surface objects: the rules of driver/texture_parameters.h.
#include "driver/texture_parameters.h"
#include "sim/device/memory/checked_range.h"
#include "sim/device/profile.h"
#include "sim/device/sim_driver.h"

#include <algorithm>

namespace kernwright::sim {
namespace {

using ptx::Geometry;

/// Null if the resource is no array, or an unknown one.
std::shared_ptr<CudaArray> find_array(const CUDA_RESOURCE_DESC& resource) {
  if (resource.resType != CU_RESOURCE_TYPE_ARRAY) return nullptr;
  return sim_driver().arrays.find(resource.res.array.hArray);
}

Geometry array_geometry(const CUDA_ARRAY3D_DESCRIPTOR& array) {
  const bool layered = (array.Flags & kArrayLayered) != 0;
  if ((array.Flags & kArrayCubemap) != 0) return layered ? Geometry::acube : Geometry::cube;
  if (layered) return array.Height == 0 ? Geometry::a1d : Geometry::a2d;
  constexpr Geometry kByRank[] = {Geometry::d1, Geometry::d2, Geometry::d3};
  return kByRank[array_rank(array) - 1];
}

std::uint32_t extent(std::size_t count) {
  return static_cast<std::uint32_t>(std::max<std::size_t>(count, 1));
}

TextureSource array_source(const CudaArray& array) {
  const CUDA_ARRAY3D_DESCRIPTOR& d = array.descriptor;
  TextureSource source;
  source.address = array.address;
  source.pitch = array.row;
  source.slice = array.slice;
  source.shape = array_geometry(d);
  source.extent = {extent(d.Width), extent(d.Height), array_rank(d) == 3 ? extent(d.Depth) : 1};
  source.layers = static_cast<std::uint32_t>(array_layers(d));
  source.gather = (d.Flags & kArrayGather) != 0;
  source.format = d.Format;
  source.channels = d.NumChannels;
  source.bytes = static_cast<std::uint32_t>(array.element);
  source.name = describe_array(d);
  return source;
}

/// Requires memory within one allocation of the device.
void require_memory(std::uint64_t address, std::uint64_t bytes) {
  const std::lock_guard execution(sim_driver().execution);
  checked_range({"cuTexObjectCreate", address, bytes, Side::device, false});
}

/// The source for rows of texels outside an array.
TextureSource plain_source(CUdeviceptr address, CUarray_format format, unsigned channels) {
  TextureSource source;
  source.address = address;
  source.format = format;
  source.channels = channels;
  source.bytes = texel_bytes(format, channels);
  return source;
}

TextureSource linear_source(const CUDA_RESOURCE_DESC& resource) {
  const auto& memory = resource.res.linear;
  TextureSource source = plain_source(memory.devPtr, memory.format, memory.numChannels);
  source.linear = true;
  source.extent = {extent(memory.sizeInBytes / source.bytes), 1, 1};
  source.name = "linear memory";
  require_memory(memory.devPtr, std::uint64_t{source.extent[0]} * source.bytes);
  return source;
}

TextureSource pitched_source(const CUDA_RESOURCE_DESC& resource) {
  const auto& memory = resource.res.pitch2D;
  TextureSource source = plain_source(memory.devPtr, memory.format, memory.numChannels);
  source.pitch = memory.pitchInBytes;
  source.shape = Geometry::d2;
  source.extent = {extent(memory.width), extent(memory.height), 1};
  source.name = "pitched memory";
  require_memory(memory.devPtr,
                 memory.pitchInBytes * (memory.height - 1) + memory.width * source.bytes);
  return source;
}

TextureSampler make_sampler(const CUDA_TEXTURE_DESC& description, const TextureSource& source) {
  TextureSampler sampler;
  std::copy_n(description.addressMode, 3, sampler.address.begin());
  std::copy_n(description.borderColor, 4, sampler.border.begin());
  sampler.filters = description.filterMode == CU_TR_FILTER_MODE_LINEAR && !source.linear;
  sampler.normalized = (description.flags & kTextureNormalizedCoordinates) != 0;
  sampler.promotes = (description.flags & kTextureReadAsInteger) == 0 &&
                     texel_bytes(source.format, 1) < 4 && !is_floating_texel(source.format);
  return sampler;
}

/// Whether a GPU can do it and this device cannot.
bool is_beyond(const CUDA_RESOURCE_DESC& resource, const CUDA_TEXTURE_DESC& description) {
  constexpr unsigned kKnown =
      kTextureReadAsInteger | kTextureNormalizedCoordinates | kTextureNoTrilinearOptimization;
  return resource.resType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY ||
         (description.flags & ~kKnown) != 0 || description.maxAnisotropy > 1;
}

TextureObject make_object(const Context& context, const CUDA_RESOURCE_DESC& resource,
                          const std::shared_ptr<CudaArray>& array) {
  TextureObject object;
  object.context = context.id;
  object.resource = resource;
  if (array == nullptr) return object;
  require(array->context->id == context.id);
  object.source = array_source(*array);
  object.has_array = true;
  object.array = array;
  return object;
}

std::shared_ptr<const TextureObject> find_object(unsigned long long handle, bool is_surface) {
  current_context();
  auto object = sim_driver().textures.find(handle);
  require(object != nullptr && object->is_surface == is_surface);
  return object;
}

void destroy(unsigned long long handle, bool is_surface) {
  current_context();
  require(sim_driver().textures.remove(handle, is_surface));
}

void get_resource(CUDA_RESOURCE_DESC* resource, unsigned long long handle, bool is_surface) {
  const auto object = find_object(handle, is_surface);
  require(resource != nullptr);
  *resource = object->resource;
}

}  // namespace

void calls::cuTexObjectCreate(CUtexObject* texture, const CUDA_RESOURCE_DESC* resource,
                              const CUDA_TEXTURE_DESC* sampler,
                              const CUDA_RESOURCE_VIEW_DESC* view) {
  const auto context = current_context();
  require(texture != nullptr && resource != nullptr && sampler != nullptr);
  require(view == nullptr && !is_beyond(*resource, *sampler), CUDA_ERROR_NOT_SUPPORTED);
  const auto array = find_array(*resource);
  require(check_texture(*resource, *sampler, array != nullptr ? &array->descriptor : nullptr,
                        ProfileLimits{})
              .empty());
  TextureObject object = make_object(*context, *resource, array);
  if (resource->resType == CU_RESOURCE_TYPE_LINEAR) object.source = linear_source(*resource);
  if (resource->resType == CU_RESOURCE_TYPE_PITCH2D) object.source = pitched_source(*resource);
  object.description = *sampler;
  object.sampler = make_sampler(*sampler, object.source);
  *texture = sim_driver().textures.add(std::move(object));
}

void calls::cuSurfObjectCreate(CUsurfObject* surface, const CUDA_RESOURCE_DESC* resource) {
  const auto context = current_context();
  require(surface != nullptr && resource != nullptr);
  const auto array = find_array(*resource);
  require(check_surface(*resource, array != nullptr ? &array->descriptor : nullptr).empty());
  TextureObject object = make_object(*context, *resource, array);
  object.is_surface = true;
  *surface = sim_driver().textures.add(std::move(object));
}

void calls::cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC* sampler, CUtexObject texture) {
  const auto object = find_object(texture, false);
  require(sampler != nullptr);
  *sampler = object->description;
}

void calls::cuTexObjectDestroy(CUtexObject texture) { destroy(texture, false); }
void calls::cuSurfObjectDestroy(CUsurfObject surface) { destroy(surface, true); }

void calls::cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC* resource, CUtexObject texture) {
  get_resource(resource, texture, false);
}
void calls::cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC* resource, CUsurfObject surface) {
  get_resource(resource, surface, true);
}

}  // namespace kernwright::sim
