// A queue of work on one device.
#pragma once

#include "driver/driver_api.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace kernwright {

class Device;
class Event;

/// A shared reference to a CUstream; copies share the stream, the last one destroys it (if owned).
/// A default-constructed Stream is empty. Thread-safe as CUDA's streams are.
class Stream {
 public:
  Stream() = default;
  /// A new non-blocking stream. Lower numbers are higher priority; clamped to the device's range.
  static Stream create(Device& device, int priority = 0);
  /// The legacy default stream of the device (handle 0).
  static Stream legacy(Device& device);
  /// The calling thread's own default stream, another one in each thread that uses it.
  static Stream per_thread(Device& device);
  /// Another library's stream; `keep_alive` is held as long as the Stream lives. The handle of a
  /// stream from create() keeps that stream.
  static Stream borrow(Device& device, CUstream handle, std::shared_ptr<void> keep_alive = {});

  explicit operator bool() const noexcept { return box_ != nullptr; }
  CUstream handle() const noexcept;  ///< null (the legacy stream) for an empty Stream
  Device& device() const;            ///< throws InvalidArgument for an empty Stream, as all below
  /// Never reused, unlike handles; 0 for an empty Stream, the same for each legacy() of a device.
  std::uint64_t id() const noexcept;
  std::string identify() const;  ///< "stream 65536 of cuda:0 (NVIDIA H200)"
  /// Whether the last copy destroys the CUstream: false for legacy and borrowed ones.
  bool is_owned() const noexcept;
  int priority() const;

  /// Records `event` (or a new timing event) after the work queued so far.
  Event record() const;
  void record(Event& event) const;
  /// Later work of this stream waits for `event`; the host does not. An event of a capture makes
  /// the stream part of that capture until it is joined back. Throws CaptureError for a captured
  /// stream and an event from outside its capture.
  void wait(const Event& event) const;
  /// Blocks the host until the stream is empty. Throws DeviceFault, DeviceLost or Timeout;
  /// CaptureError, as done() does, while the stream is being captured.
  void synchronize(std::optional<std::chrono::nanoseconds> timeout = std::nullopt) const;
  bool done() const;

 private:
  struct Box;
  explicit Stream(std::shared_ptr<Box> box) : box_(std::move(box)) {}
  const Box& box() const;
  void join_capture(const Event& event) const;
  std::shared_ptr<Box> box_;
};

}  // namespace kernwright
