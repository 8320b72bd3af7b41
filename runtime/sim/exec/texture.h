// Texture and surface objects for device code: their source and their way of reading it.
#pragma once

#include "driver/driver_types.h"
#include "sim/exec/warp/warp.h"

#include <array>
#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <string>
#include <unordered_map>

namespace kernwright::sim {

/// Elements in device memory. Rows, slices (of a 3-D array) and layers follow each other.
struct TextureSource {
  std::uint64_t address = 0;  ///< of the first element
  std::uint64_t pitch = 0;    ///< bytes from row to row
  std::uint64_t slice = 0;    ///< bytes from slice to slice, or from layer to layer
  std::array<std::uint32_t, 3> extent{1, 1, 1};  ///< width, height, depth
  std::uint32_t layers = 1;                      ///< six for each cube
  ptx::Geometry shape = ptx::Geometry::d1;
  bool linear = false;  ///< memory without rows, which only integer coordinates reach
  bool gather = false;  ///< the array was made for texture gather
  CUarray_format format = CU_AD_FORMAT_FLOAT;
  std::uint32_t channels = 1;
  std::uint32_t bytes = 4;  ///< of an element
  std::string name;         ///< "a 2-D array of (480, 640) elements"
};

struct TextureSampler {
  std::array<CUaddress_mode, 3> address{CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP,
                                        CU_TR_ADDRESS_MODE_CLAMP};
  bool filters = false;     ///< linear, not point
  bool normalized = false;  ///< coordinates count from 0 to 1
  bool promotes = false;    ///< integers read as floats of -1 or 0 to 1
  std::array<float, 4> border{};
};

struct TextureObject {
  bool is_surface = false;
  std::uint64_t context = 0;      ///< Context::id
  CUDA_RESOURCE_DESC resource{};  ///< what it was made of
  CUDA_TEXTURE_DESC description{};
  TextureSource source;
  TextureSampler sampler;
  bool has_array = false;
  std::weak_ptr<const void> array;  ///< ends when the source's CUDA array is destroyed
};

/// All live objects of a process. A handle is no address and is never used again, so a destroyed
/// one is known. Thread-safe.
class TextureTable {
 public:
  std::uint64_t add(TextureObject object);
  /// False for anything but a live handle of this kind.
  bool remove(std::uint64_t handle, bool is_surface);
  /// Ends all objects of a context.
  void remove_context(std::uint64_t context);
  /// Null for anything but a live handle.
  std::shared_ptr<const TextureObject> find(std::uint64_t handle) const;
  /// Whether it was one.
  bool had(std::uint64_t handle) const;

 private:
  mutable std::shared_mutex mutex_;
  std::unordered_map<std::uint64_t, std::shared_ptr<const TextureObject>> objects_;
  std::uint64_t last_ = 0;
};

/// The object behind a handle used by a lane as a texture or surface of this shape (none: any).
/// Null after a finding.
std::shared_ptr<const TextureObject> use_texture(const Op* op, Warp& warp, int lane,
                                                 std::uint64_t handle, bool as_surface,
                                                 ptx::Geometry shape);

/// A finding of a lane at a texture or surface instruction. Returns null.
const Op* texture_fault(const Op* op, Warp& warp, int lane, FaultKind kind, std::string message);

}  // namespace kernwright::sim
