// Objects of the driver known to kernels by handles of 64 bits; they live until those kernels are
// done.
#pragma once

#include "core/launch/launch_trail.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

namespace kernwright {

class Device;

/// A CUDA array, a texture or a surface: destroyed when the last reference to it is gone and the
/// work that use_on() named is done. Thread-safe.
class TrackedObject : public std::enable_shared_from_this<TrackedObject> {
 public:
  /// Ends the object; runs with the device's context current.
  using Destroy = CUresult (*)(const DriverApi& api, std::uint64_t handle);

  /// Takes the handle over. `owner` is what the object reads and holds alive.
  TrackedObject(Device& device, std::uint64_t handle, Destroy destroy, std::string name,
                std::shared_ptr<const void> owner = {});
  ~TrackedObject();
  TrackedObject(const TrackedObject&) = delete;
  TrackedObject& operator=(const TrackedObject&) = delete;

  std::uint64_t handle() const noexcept { return handle_; }
  /// The handle's bytes, for arguments.
  const std::uint64_t* handle_bytes() const noexcept { return &handle_; }
  Device& device() const noexcept { return device_; }
  const std::string& name() const noexcept { return name_; }

  /// Work queued on `stream` until now uses the object: dropping the last reference waits for it.
  /// An empty stream is the legacy one. The graph of a captured one keeps the object. For
  /// objects that track_object() made.
  void use_on(const Stream& stream);

 private:
  struct Handle;

  Device& device_;
  const std::uint64_t handle_;
  const std::string name_;
  std::mutex mutex_;  // guards trail_
  LaunchTrail trail_;
  std::shared_ptr<Handle> owned_;
};

/// A new TrackedObject; where it cannot be made, the handle is destroyed.
std::shared_ptr<TrackedObject> track_object(Device& device, std::uint64_t handle,
                                            TrackedObject::Destroy destroy, std::string name,
                                            std::shared_ptr<const void> owner = {});

}  // namespace kernwright
