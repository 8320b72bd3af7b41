// Several devices behind workers, for work of many threads.
#pragma once

#include "worker/device/remote_device.h"

#include <memory>
#include <utility>

namespace kernwright {

/// One RemoteDevice for each GPU that a worker sees, or a number of simulated ones. Their processes
/// start when first needed. Thread-safe; must outlive its leases.
class DevicePool {
 public:
  /// `count` 0: one for each GPU; 1 where there is none (the simulated device). On GPUs `count` is
  /// at most their number (InvalidArgument): two on one GPU would disturb each other's times.
  /// KERNWRIGHT_DEVICE in `options`, or in this process's environment, chooses the kind. If it
  /// names one device ("cuda:1"), the pool has only that one.
  explicit DevicePool(unsigned count = 0, RemoteDeviceOptions options = {},
                      const WaitLimits& limits = {});
  /// Ends the processes.
  ~DevicePool();
  DevicePool(const DevicePool&) = delete;
  DevicePool& operator=(const DevicePool&) = delete;

  /// A device for one user, given back by the destructor.
  class Lease {
   public:
    Lease(DevicePool& pool, unsigned index) : pool_(&pool), index_(index) {}
    ~Lease();
    Lease(Lease&& other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)), index_(other.index_) {}
    Lease& operator=(Lease&&) = delete;

    RemoteDevice* operator->() const { return &**this; }
    RemoteDevice& operator*() const;
    /// Index of the device in its pool: a device's memory and kernels stay with it between leases.
    unsigned index() const noexcept { return index_; }

   private:
    DevicePool* pool_;
    unsigned index_;
  };

  /// The free device with the lowest index; waits while all are in use. Throws Timeout, Cancelled
  /// or Interrupted as `limits` say.
  Lease lease(const WaitLimits& limits = {});

  unsigned size() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kernwright
