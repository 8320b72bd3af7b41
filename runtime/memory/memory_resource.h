// Sources of device memory: the interface of every resource, and a device's default one.
#pragma once

#include "core/stream.h"
#include "driver/driver_api.h"
#include "memory/allocation_ledger.h"
#include "memory/memory_stats.h"
#include "memory/pool/graph_blocks.h"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace kernwright {

class Capture;
class Device;

/// Stream-ordered allocation: memory is usable by work queued on `stream` after allocate(), and
/// deallocate() may be called while work queued before it on `stream` still uses the memory. An
/// empty stream is the device's legacy stream. Implementations are thread-safe. Sizes are bytes.
class MemoryResource {
 public:
  virtual ~MemoryResource() = default;
  /// Aligned to at least 256. Throws OutOfMemory; InvalidArgument for 0 bytes, more than 2^63 - 1,
  /// and a stream of another device.
  virtual CUdeviceptr allocate(std::size_t bytes, const Stream& stream) = 0;
  /// The address if cached memory serves at once, without a call of the driver and without waiting;
  /// else 0. Throws InvalidArgument as allocate().
  virtual CUdeviceptr try_allocate(std::size_t bytes, const Stream& stream);
  /// Throws InvalidArgument, and changes nothing, for memory not (any more) allocated or of another
  /// size; otherwise the driver's errors.
  virtual void release(CUdeviceptr address, std::size_t bytes, const Stream& stream) = 0;
  /// Releases and returns true if it can without a call of the driver and without waiting for
  /// another thread; else returns false and changes nothing.
  virtual bool try_release(CUdeviceptr, std::size_t, const Stream&) noexcept { return false; }
  /// As release(), but logs errors instead of throwing: for destructors.
  virtual void deallocate(CUdeviceptr address, std::size_t bytes,
                          const Stream& stream) noexcept = 0;
  virtual Device& device() const = 0;

  /// The name in messages and reports: "PoolResource".
  virtual std::string name() const = 0;
  virtual MemoryStats stats() const = 0;
  /// The current allocations, in the order of allocation.
  virtual std::vector<AllocationRecord> records() const = 0;
  /// Use over time, oldest first; empty without a record of it.
  virtual std::vector<HistorySample> history() const { return {}; }
  /// Gives cached memory back until at most `bytes_to_keep` are reserved, or nothing more can be
  /// given; waits for work that uses it. Returns the bytes given back.
  virtual std::size_t trim(std::size_t bytes_to_keep = 0);
  /// Lets go of streams whose memory was freed and whose work has ended. A cache holds such
  /// streams, and with them their partitions. Does not wait.
  virtual void let_idle_streams_go() {}
  /// Limits the reserved bytes from now on (of a resource without a cache: the used ones); 0: no
  /// limit. Throws InvalidArgument below the bytes in use.
  virtual void set_limit(std::size_t bytes) = 0;
  /// For evictable buffers: one of this resource was moved to the host.
  virtual void note_eviction() noexcept {}
  /// Whether new memory may be used by every stream at once, and deallocate() waits for the device.
  virtual bool is_synchronous() const noexcept { return false; }
  /// Whether the memory at `address`, the beginning of an allocation, belongs to the graph of
  /// `capture`. The graph keeps it; memory freed on a stream of the capture serves later requests
  /// on that stream.
  virtual bool belongs_to(Capture&, CUdeviceptr) const { return false; }
  /// Whether addresses are those of host memory, too.
  virtual bool is_host_accessible() const noexcept { return false; }
};

/// Asks the driver for each allocation, and records it. Out of memory, or above its limit, it lets
/// others give memory back (reclaim.h) and tries again.
class DriverResource : public MemoryResource {
 public:
  explicit DriverResource(Device& device) : device_(device), graph_blocks_(device) {}
  CUdeviceptr allocate(std::size_t bytes, const Stream& stream) final;
  void release(CUdeviceptr address, std::size_t bytes, const Stream& stream) final;
  void deallocate(CUdeviceptr address, std::size_t bytes, const Stream& stream) noexcept final;
  Device& device() const final { return device_; }
  MemoryStats stats() const override { return ledger_.stats(); }
  std::vector<AllocationRecord> records() const final { return ledger_.records(); }
  std::vector<HistorySample> history() const final { return ledger_.history(); }
  void set_limit(std::size_t bytes) final;
  void note_eviction() noexcept final { ledger_.note_eviction(); }

 protected:
  /// One call of the driver; its name is left in `call`. The context is current. On a captured
  /// stream it must not become part of the graph.
  virtual CUresult take(CUdeviceptr& address, std::size_t bytes, const Stream& stream,
                        const char*& call) = 0;
  virtual CUresult give(CUdeviceptr address, const Stream& stream, const char*& call) noexcept = 0;
  /// Bytes used and reserved, for the message of OutOfMemory; by default all but the free ones.
  virtual MemoryStats use_of_device(std::uint64_t free, std::uint64_t total) const;

  Device& device_;
  AllocationLedger ledger_;

 private:
  CUdeviceptr try_take(std::size_t bytes, const Stream& stream, bool& over_limit);

  GraphBlocks graph_blocks_;  ///< allocations of captures
};

/// cuMemAlloc and cuMemFree: synchronous, no reuse.
class DeviceResource final : public DriverResource {
 public:
  using DriverResource::DriverResource;
  std::string name() const override { return "DeviceResource"; }
  bool is_synchronous() const noexcept override { return true; }

 private:
  CUresult take(CUdeviceptr& address, std::size_t bytes, const Stream& stream,
                const char*& call) override;
  CUresult give(CUdeviceptr address, const Stream& stream, const char*& call) noexcept override;
};

/// cuMemAllocAsync and cuMemFreeAsync on the driver's default pool. Its release threshold keeps
/// freed memory for reuse. Behaves as DeviceResource where the device has no pools. When the driver
/// is out of memory, the pool is trimmed and the allocation tried once more.
class AsyncResource final : public DriverResource {
 public:
  explicit AsyncResource(Device& device);
  std::string name() const override { return "AsyncResource"; }
  MemoryStats stats() const override;
  std::size_t trim(std::size_t bytes_to_keep = 0) override;

 private:
  CUresult take(CUdeviceptr& address, std::size_t bytes, const Stream& stream,
                const char*& call) override;
  CUresult give(CUdeviceptr address, const Stream& stream, const char*& call) noexcept override;
  MemoryStats use_of_device(std::uint64_t free, std::uint64_t total) const override;

  CUmemoryPool pool_ = nullptr;  ///< the device's own, never destroyed; null without pools
};

/// Throws InvalidArgument for 0 bytes, for 2^63 bytes or more and for a stream of another device.
void require_allocatable(const Device& device, std::size_t bytes, const Stream& stream);

/// Throws InvalidArgument for a limit below the bytes in use.
[[noreturn]] void throw_limit_below_use(const Device& device, std::size_t limit,
                                        std::uint64_t used);

/// Whether memory of `device` can be given back at all: not in a forked child, at exit, and on a
/// lost device, where it is left alone.
bool may_release(const Device& device) noexcept;

/// Throws OutOfMemory with all sizes and holders. The device's context must be current.
[[noreturn]] void throw_out_of_memory(Device& device, std::size_t bytes, const MemoryStats& use,
                                      const std::vector<AllocationRecord>& held,
                                      const std::string& why = {});

/// The resource of new arrays on `device`: a PoolResource over a DeviceResource unless another one
/// was set. Process-wide.
std::shared_ptr<MemoryResource> default_resource(Device& device);
/// The same when there is one already, else null. Calls no driver.
std::shared_ptr<MemoryResource> known_default_resource(const Device& device);

/// New arrays of `device` come from `resource`; null means the first one again. Earlier allocations
/// stay with their own resource. Returns the resource used until now. Throws InvalidArgument for a
/// resource of another device.
std::shared_ptr<MemoryResource> set_default_resource(Device& device,
                                                     std::shared_ptr<MemoryResource> resource);

}  // namespace kernwright
