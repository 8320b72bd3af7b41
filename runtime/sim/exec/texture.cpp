// The table of texture and surface objects, and errors of handles.
#include "sim/exec/texture.h"

#include "base/format.h"
#include "sim/mem/address.h"

#include <algorithm>
#include <utility>

namespace kernwright::sim {
namespace {

using ptx::Geometry;

const char* noun(bool is_surface) { return is_surface ? "surface" : "texture"; }

constexpr const char* kShapes[] = {"", "1d", "2d", "3d", "a1d", "a2d", "cube", "acube"};

/// Surfaces know cubemaps as layers of faces.
bool fits(const TextureObject& object, Geometry shape) {
  const Geometry actual = object.source.shape;
  if (shape == Geometry::none || actual == shape) return true;
  return object.is_surface && shape == Geometry::a2d &&
         (actual == Geometry::cube || actual == Geometry::acube);
}

}  // namespace

std::uint64_t TextureTable::add(TextureObject object) {
  const auto shared = std::make_shared<const TextureObject>(std::move(object));
  const std::unique_lock lock(mutex_);
  const std::uint64_t handle = kTextureWindow + 16 * (last_ + 1);
  objects_.emplace(handle, shared);
  ++last_;
  return handle;
}

bool TextureTable::remove(std::uint64_t handle, bool is_surface) {
  const std::unique_lock lock(mutex_);
  const auto found = objects_.find(handle);
  if (found == objects_.end() || found->second->is_surface != is_surface) return false;
  objects_.erase(found);
  return true;
}

void TextureTable::remove_context(std::uint64_t context) {
  const std::unique_lock lock(mutex_);
  std::erase_if(objects_, [&](const auto& entry) { return entry.second->context == context; });
}

std::shared_ptr<const TextureObject> TextureTable::find(std::uint64_t handle) const {
  const std::shared_lock lock(mutex_);
  const auto found = objects_.find(handle);
  return found == objects_.end() ? nullptr : found->second;
}

bool TextureTable::had(std::uint64_t handle) const {
  const std::shared_lock lock(mutex_);
  return handle > kTextureWindow && handle <= kTextureWindow + 16 * last_ && handle % 16 == 0;
}

const Op* texture_fault(const Op* op, Warp& warp, int lane, FaultKind kind, std::string message) {
  return warp.fault(op, kind, lane, 0, 0, std::move(message));
}

std::shared_ptr<const TextureObject> use_texture(const Op* op, Warp& warp, int lane,
                                                 std::uint64_t handle, bool as_surface,
                                                 Geometry shape) {
  const TextureTable* const table = warp.worker->launch->textures;
  auto object = table != nullptr ? table->find(handle) : nullptr;
  const auto refuse = [&](FaultKind kind, std::string message) {
    texture_fault(op, warp, lane, kind, std::move(message));
    return nullptr;
  };
  if (object == nullptr) {
    const bool destroyed = table != nullptr && table->had(handle);
    return refuse(destroyed ? FaultKind::use_after_free : FaultKind::bounds,
                  destroyed ? format("the {} object {:#x} was destroyed", noun(as_surface), handle)
                            : format("{:#x} is no {} object", handle, noun(as_surface)));
  }
  if (object->is_surface != as_surface)
    return refuse(FaultKind::bounds, format("{:#x} is a {} object, not a {} object", handle,
                                            noun(object->is_surface), noun(as_surface)));
  if (object->has_array && object->array.expired())
    return refuse(FaultKind::use_after_free, format("{} behind a {} object was destroyed",
                                                    object->source.name, noun(as_surface)));
  if (!fits(*object, shape))
    return refuse(FaultKind::bounds,
                  format("an access of geometry .{} to {}",
                         kShapes[static_cast<std::size_t>(shape)], object->source.name));
  return object;
}

}  // namespace kernwright::sim
