// Objects that can give device memory back after a failed allocation, and partitions with it.
#pragma once

#include "core/partition.h"

#include <cstddef>
#include <span>
#include <vector>

namespace kernwright {

class Device;

/// A holder of device memory it can do without. Thread-safe.
class Reclaimer {
 public:
  virtual ~Reclaimer() = default;
  virtual Device& device() const = 0;
  /// Gives back about `bytes`, or as much as it can, and returns the amount. Never waits for a lock
  /// of an allocation in progress. Called with no lock held.
  virtual std::size_t reclaim(std::size_t bytes) = 0;
  /// Reclaimers of a higher order are asked when those before gave too little: caches come first,
  /// then data to be moved.
  virtual int reclaim_order() const noexcept = 0;
};

/// Makes `reclaimer` known until it is withdrawn. Withdrawal waits for a reclaim() in progress.
void register_reclaimer(Reclaimer& reclaimer);
void withdraw_reclaimer(Reclaimer& reclaimer) noexcept;

/// While it lives, reclaim_memory() gives nothing to this thread. A pool does its own reclaiming,
/// and holds locks while it asks its upstream.
class NoReclaim {
 public:
  NoReclaim() noexcept;
  ~NoReclaim();
  NoReclaim(const NoReclaim&) = delete;
  NoReclaim& operator=(const NoReclaim&) = delete;
};

/// Whether a NoReclaim of this thread lives: an OutOfMemory is not for the user then, and must not
/// ask for the text of places in the program.
bool is_reclaim_forbidden() noexcept;

/// Asks all of `device` but `except` whose order is at least `first`, in order, until `bytes` are
/// given back. Returns how much was.
std::size_t reclaim_memory(const Device& device, std::size_t bytes, const Reclaimer* except,
                           int first = 0);

/// Partition::make(), tried twice. A pool holds the stream of freed memory, and with the stream a
/// partition, until the work of that stream has ended. Where too few multiprocessors are free, this
/// call waits for that work. Throws as Partition::make() does. Thread-safe.
std::vector<Partition> make_partitions(Device& device, std::span<const PartitionRequest> requests);

/// partition_rules() after a pool let go of streams whose work has ended: `free` counts what
/// make_partitions() takes without waiting. Throws DriverError. Thread-safe.
PartitionRules settled_partition_rules(Device& device);

}  // namespace kernwright
