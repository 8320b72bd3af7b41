// Texture and surface objects: what kernels take as cudaTextureObject_t and cudaSurfaceObject_t.
#pragma once

#include "core/arguments.h"
#include "core/image/cuda_array.h"

#include <array>
#include <cstdint>
#include <memory>
#include <string>

namespace kernwright {

/// How a texture is sampled. Address modes are those of x, y and z.
struct TextureOptions {
  std::array<CUaddress_mode, 3> address{CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP,
                                        CU_TR_ADDRESS_MODE_CLAMP};
  CUfilter_mode filter = CU_TR_FILTER_MODE_POINT;
  bool normalized = false;         ///< coordinates count from 0 to 1, not to the extent
  bool normalized_floats = false;  ///< integers of 8 or 16 bits read as floats of -1 or 0 to 1
  /// The value beyond an axis of CU_TR_ADDRESS_MODE_BORDER; for integers their bits.
  std::array<float, 4> border{};
};

/// Elements in ordinary memory: a row, or rows `pitch` bytes apart.
struct TextureMemory {
  CUdeviceptr address = 0;
  ScalarType type = ScalarType::float32;
  unsigned channels = 1;
  std::size_t width = 0;                ///< elements
  std::size_t height = 0;               ///< 0: linear memory, for tex1Dfetch
  std::size_t pitch = 0;                ///< bytes; unused for linear memory
  std::shared_ptr<const void> owner{};  ///< of the memory: held as long as the texture lives
};

/// A reference to a texture object; copies share it. The last one waits for the launches that it
/// was an argument of, then destroys it. Thread-safe.
class TextureObject {
 public:
  /// Throws InvalidArgument with the rule that is broken, DriverError.
  explicit TextureObject(const CudaArray& array, const TextureOptions& options = {});
  TextureObject(Device& device, const TextureMemory& memory, const TextureOptions& options = {});

  CUtexObject handle() const noexcept { return object_->handle(); }
  Device& device() const noexcept { return object_->device(); }
  const TextureOptions& options() const noexcept { return options_; }
  /// See TrackedObject::use_on(); launch() says it itself.
  void use_on(const Stream& stream) const { object_->use_on(stream); }
  const std::shared_ptr<TrackedObject>& object() const noexcept { return object_; }
  /// "texture over a 2-D array of (480, 640) elements, 4 x uint8 on cuda:0"
  std::string identify() const { return object_->name(); }

 private:
  void create(Device& device, const CUDA_RESOURCE_DESC& resource,
              const CUDA_ARRAY3D_DESCRIPTOR* array, std::string name,
              std::shared_ptr<const void> owner);

  TextureOptions options_;
  std::shared_ptr<TrackedObject> object_;
};

/// A reference to a surface object over a CUDA array made with CudaArrayOptions::surface; else as
/// TextureObject.
class SurfaceObject {
 public:
  explicit SurfaceObject(const CudaArray& array);

  CUsurfObject handle() const noexcept { return object_->handle(); }
  Device& device() const noexcept { return object_->device(); }
  void use_on(const Stream& stream) const { object_->use_on(stream); }
  const std::shared_ptr<TrackedObject>& object() const noexcept { return object_; }
  std::string identify() const { return object_->name(); }

 private:
  std::shared_ptr<TrackedObject> object_;
};

/// An argument that is the handle of a tracked object.
template <typename Object>
struct HandleArgument {
  static ArgumentView view(const Object& object) {
    return {.kind = ArgumentView::Kind::bytes,
            .noun = "the handle of a texture or surface",
            .data = object.object()->handle_bytes(),
            .size = sizeof(std::uint64_t),
            .device = &object.device()};
  }
  static void used(const Object& object, const Stream& stream) { object.use_on(stream); }
};
template <>
struct KernelArgument<TextureObject> : HandleArgument<TextureObject> {};
template <>
struct KernelArgument<SurfaceObject> : HandleArgument<SurfaceObject> {};

}  // namespace kernwright
