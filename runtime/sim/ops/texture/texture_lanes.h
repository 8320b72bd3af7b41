// Shared by texture and surface instructions: the elements of their lists, and memory behind an
// object.
#pragma once

#include "sim/code/program.h"
#include "sim/exec/texture.h"
#include "sim/exec/warp/lane_memory.h"
#include "sim/exec/watcher.h"
#include "sim/ops/lanes.h"

namespace kernwright::sim::KW_SIM_NS {

inline constexpr std::uint32_t kGeometryBits = 7;  ///< Op::flags: ptx::Geometry
inline constexpr unsigned kTexelCost = 8;          ///< of a lane; see Warp::charge()

inline ptx::Geometry op_geometry(const Op* op) {
  return static_cast<ptx::Geometry>(op->flags & kGeometryBits);
}

inline bool has_layers(ptx::Geometry shape) {
  return shape == ptx::Geometry::a1d || shape == ptx::Geometry::a2d ||
         shape == ptx::Geometry::acube;
}

/// Coordinates along an axis; those of cubemaps are along the axes of a face.
inline int count_axes(ptx::Geometry shape) {
  return shape == ptx::Geometry::d3                                  ? 3
         : shape == ptx::Geometry::d1 || shape == ptx::Geometry::a1d ? 1
                                                                     : 2;
}

/// A lane's element `i` of a list of registers.
template <typename T>
T& list_element(const Warp& warp, std::uint32_t list, int i, int lane) {
  const std::uint32_t offset = warp.program->lists[list + static_cast<unsigned>(i)];
  return warp.reg<T>(offset)[lane];
}

/// Host address of bytes of an object's memory, reported to the checks; null after a finding.
inline std::byte* reach(const Op* op, Warp& warp, int lane, AccessKind kind, std::uint64_t address,
                        std::uint64_t bytes) {
  const LaneAccess access{ptx::Space::global, kind, address, bytes, 1};
  std::byte* const host = locate(op, warp, lane, access);
  Watcher* const check = warp.worker->check;
  if (host != nullptr && check != nullptr) check->accessed(op, warp, lane, access);
  return host;
}

/// The object of each lane in turn; most warps have one.
class LaneTexture {
 public:
  LaneTexture(const Op* op, Warp& warp, bool as_surface, ptx::Geometry shape)
      : op_(op), warp_(warp), as_surface_(as_surface), shape_(shape) {}
  /// Null after a finding.
  const TextureObject* at(int lane) {
    const std::uint64_t handle = warp_.reg<std::uint64_t>(op_->a)[lane];
    if (object_ != nullptr && handle == handle_) return object_.get();
    handle_ = handle;
    object_ = use_texture(op_, warp_, lane, handle, as_surface_, shape_);
    return object_.get();
  }

 private:
  const Op* op_;
  Warp& warp_;
  const bool as_surface_;
  const ptx::Geometry shape_;
  std::uint64_t handle_ = 0;
  std::shared_ptr<const TextureObject> object_;
};

}  // namespace kernwright::sim::KW_SIM_NS
