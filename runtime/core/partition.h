// Partitions: disjoint sets of a device's multiprocessors, each with streams of its own.
#pragma once

#include "base/errors.h"
#include "core/stream.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace kernwright {

class Device;

/// Partitions that a device's multiprocessors cannot be divided into. All counts are of
/// multiprocessors: `needed` after rounding, `free` in no partition, `minimum` and `alignment` of
/// the driver. Python: also ValueError.
class PartitionError : public Error {
 public:
  PartitionError(const std::string& message, int needed_count, int free_count, int minimum_count,
                 int alignment_count)
      : Error(message),
        needed(needed_count),
        free(free_count),
        minimum(minimum_count),
        alignment(alignment_count) {}
  int needed, free, minimum, alignment;
};

/// How a device's multiprocessors can be divided, as the driver says.
struct PartitionRules {
  bool supported = false;   ///< the driver has green contexts, from CUDA 12.5 on
  int multiprocessors = 0;  ///< of the device
  int minimum = 0;          ///< multiprocessors of the smallest partition
  int alignment = 0;        ///< sizes are multiples of this, except for one with the remainder
  int free = 0;             ///< multiprocessors in no partition
};

/// Asks the driver; without green contexts `supported` is false and the last three are 0.
PartitionRules partition_rules(Device& device);

/// What a partition is asked to have.
struct PartitionRequest {
  int multiprocessors = 0;   ///< at least so many; 0: all that are left, for one request at most
  std::uint64_t memory = 0;  ///< bytes that work in it may hold; 0: no limit
  double share = 1;          ///< of time that work in it may run; above 0 and at most 1
  int streams = 0;           ///< that may be alive at a time; 0: no limit
};

/// A set of multiprocessors that no other living partition of the device has. Kernels on its
/// streams run there and nowhere else; other streams still run everywhere. Memory, modules, events
/// and the current context are those of the device: code that was loaded before runs inside. A
/// graph runs where it was captured, whatever stream launches it.
///
/// The memory and share of the request are kept here for whoever schedules work; the stream limit
/// is enforced here. L2 cache, memory bandwidth and copy engines are shared with all others.
///
/// A shared reference: copies share the partition. Its streams and graphs captured on them keep it.
/// The last one to go waits for the work inside; then the multiprocessors are free again.
/// Thread-safe.
class Partition {
 public:
  Partition() = default;
  /// All partitions, or none: throws PartitionError where the device has too few multiprocessors
  /// left, InvalidArgument for wrong requests, DriverError (801) without green contexts. All
  /// partitions of a device are of one split, made at the first call, so that they never overlap.
  static std::vector<Partition> make(Device& device, std::span<const PartitionRequest> requests);

  explicit operator bool() const noexcept { return box_ != nullptr; }
  Device& device() const;             ///< throws InvalidArgument for an empty one, as all below
  std::uint64_t id() const noexcept;  ///< never reused; 0 for an empty one
  std::string identify() const;  ///< "partition 1 (16 multiprocessors) of cuda:0 (NVIDIA H200)"
  int multiprocessors() const;   ///< given: at least the number that was asked for
  const PartitionRequest& request() const;
  int live_streams() const;

  /// A new non-blocking stream in it, with a priority as Stream::create() takes it. Throws
  /// PartitionError above the limit of streams.
  Stream stream(int priority = 0) const;

 private:
  friend class Stream;
  struct Box;
  explicit Partition(std::shared_ptr<Box> box) : box_(std::move(box)) {}
  Box& box() const;
  CUstream open_stream(int priority) const;
  void close_stream(CUstream handle) const noexcept;
  std::shared_ptr<Box> box_;
};

}  // namespace kernwright
