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
class Partition;

/// The priorities that a device gives to streams. A lower number is a higher priority; 0 is the
/// default, and the lowest on every device so far. Without priorities both are 0.
struct PriorityRange {
  int least = 0;
  int greatest = 0;
};
PriorityRange priority_range(Device& device);

/// A priority by name: the greatest, the middle or the least of the device's range.
enum class StreamPriority : std::uint8_t { high, medium, low };
int priority_of(Device& device, StreamPriority name);

/// A shared reference to a CUstream; copies share the stream, the last one destroys it (if owned).
/// A default-constructed Stream is empty. Thread-safe as CUDA's streams are.
class Stream {
 public:
  Stream() = default;
  /// A new non-blocking stream. Throws InvalidArgument for a priority outside priority_range():
  /// CUDA would take the nearest one, and lower numbers, which are higher priorities, are easily
  /// mixed up.
  static Stream create(Device& device, int priority = 0);
  /// The same inside a partition, which the stream keeps alive. Throws PartitionError above the
  /// partition's limit of streams.
  static Stream create(const Partition& partition, int priority = 0);
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
  /// Empty for a stream of the whole device, and for another library's.
  Partition partition() const;
  /// Multiprocessors for its kernels: the partition's, else all of the device.
  int multiprocessors() const;

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

/// Multiprocessors for kernels on `stream`; an empty one is of the whole device.
int multiprocessors_of(const Stream& stream, const Device& device);

}  // namespace kernwright
