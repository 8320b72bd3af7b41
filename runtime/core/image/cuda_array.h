// CUDA arrays: memory in an order of the device's own, for textures and surfaces.
#pragma once

#include "base/scalar_type.h"
#include "core/tracked_object.h"
#include "driver/driver_api.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace kernwright {

/// The format of elements of a type of 8 to 32 bits. Throws InvalidArgument for a type that no
/// array has.
CUarray_format texel_format(ScalarType type);
/// The type of a format.
ScalarType texel_type(CUarray_format format) noexcept;

struct CudaArrayOptions {
  unsigned channels = 1;  ///< numbers of an element: 1, 2 or 4
  bool layered = false;   ///< the first axis counts layers
  bool cubemap = false;   ///< the first axis counts faces: 6, or 6 for each layer
  bool surface = false;   ///< surface objects can be made of it
  bool gather = false;    ///< for tex2Dgather
};

/// A reference to a CUDA array; copies share it, the last one destroys it when no work queued with
/// it is left. Axes are in the order of an array's: width last. Thread-safe, as memory is: who
/// writes while others read orders them by streams.
class CudaArray {
 public:
  /// Uninitialised memory. Throws InvalidArgument with the rule that is broken, OutOfMemory.
  CudaArray(Device& device, std::span<const std::int64_t> shape, ScalarType type,
            const CudaArrayOptions& options = {});

  Device& device() const noexcept { return object_->device(); }
  CUarray handle() const noexcept;
  const CUDA_ARRAY3D_DESCRIPTOR& descriptor() const noexcept { return descriptor_; }
  std::vector<std::int64_t> shape() const;
  ScalarType type() const noexcept { return texel_type(descriptor_.Format); }
  unsigned channels() const noexcept { return descriptor_.NumChannels; }
  std::size_t bytes() const noexcept;  ///< of all elements, without gaps

  // Whole arrays, elements row-major without gaps. Those of the host return when the copy is done,
  // in the order of `stream`, and throw CaptureError for a captured one; those of device memory are
  // queued. An empty stream is the legacy one.
  void copy_from_host(const void* from, const Stream& stream = {});
  void copy_to_host(void* to, const Stream& stream = {}) const;
  void copy_from_device(CUdeviceptr from, const Stream& stream = {});
  void copy_to_device(CUdeviceptr to, const Stream& stream = {}) const;

  /// See TrackedObject::use_on(); copies say it themselves.
  void use_on(const Stream& stream) const { object_->use_on(stream); }
  /// For what reads the array and holds it alive.
  const std::shared_ptr<TrackedObject>& object() const noexcept { return object_; }
  /// "a 2-D array of (480, 640) elements, 4 x uint8 on cuda:0"
  std::string identify() const;

 private:
  CUDA_MEMCPY3D whole() const noexcept;
  void copy(const CUDA_MEMCPY3D& box, const Stream& stream) const;
  void wait_for(const CUDA_MEMCPY3D& box, const Stream& stream, const char* call) const;

  CUDA_ARRAY3D_DESCRIPTOR descriptor_{};
  std::shared_ptr<TrackedObject> object_;
};

}  // namespace kernwright
