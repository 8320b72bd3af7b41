// The allocations that are alive, with their sizes and where they were made.
#pragma once

#include "core/launch/launch_site.h"
#include "driver/driver_types.h"
#include "memory/memory_stats.h"
#include "memory/usage_history.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace kernwright {

/// A live allocation.
struct AllocationRecord {
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
  std::uint64_t stream = 0;  ///< Stream::id(); 0: the legacy stream
  std::uint64_t serial = 0;  ///< counts allocations of one resource from 1
  LaunchSite site;
};

/// Thread-safe.
class AllocationLedger {
 public:
  /// Bytes of an allocation in progress, which count against the limit while it lives. False when
  /// they would go above it.
  class Promise {
   public:
    Promise(AllocationLedger& ledger, std::size_t bytes) noexcept;
    ~Promise();
    Promise(const Promise&) = delete;
    Promise& operator=(const Promise&) = delete;
    explicit operator bool() const noexcept { return kept_; }

   private:
    AllocationLedger& ledger_;
    const std::size_t bytes_;
    const bool kept_;
  };

  /// Notes an allocation, charged to current_allocation_site(). Throws std::bad_alloc.
  void add(CUdeviceptr address, std::size_t bytes, std::uint64_t stream);
  /// Bytes in use at once; 0: no limit. False, and nothing changed, below what is in use.
  bool set_limit(std::size_t bytes) noexcept;
  /// Strikes it out. Throws InvalidArgument, and changes nothing, for an address that is not the
  /// start of a live allocation and for another size than it was made with.
  void remove(CUdeviceptr address, std::size_t bytes);
  void note_failure() noexcept;   ///< an allocation failed
  void note_eviction() noexcept;  ///< content moved to the host

  std::vector<AllocationRecord> records() const;  ///< in the order they were made
  /// Every allocation counts as a miss and as one of the driver's.
  MemoryStats stats() const;
  /// Use over time, oldest first; the last sample is of this moment. What is reserved is in use.
  std::vector<HistorySample> history() const;

 private:
  HistorySample moment() const noexcept;
  void sample() noexcept;
  bool promise(std::size_t bytes) noexcept;

  mutable std::mutex mutex_;
  std::unordered_map<CUdeviceptr, AllocationRecord> live_;
  MemoryStats stats_;
  std::uint64_t promised_ = 0;  ///< bytes of allocations in progress
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  UsageHistory history_;
};

/// "3 MiB in 3 allocations from app.py:12, 256 B in 1 allocation from an unknown place": the
/// largest holders first, each line of the program once, at most `limit` of them; empty for none.
/// Asks for the text of places: call it with no lock held.
std::string describe_holders(const std::vector<AllocationRecord>& records, std::size_t limit = 5);

}  // namespace kernwright
