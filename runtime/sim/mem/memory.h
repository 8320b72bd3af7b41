// Global memory of one simulated device: allocations with guard gaps, look-up by address.
#pragma once

#include "sim/mem/address.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kernwright::sim {

/// [begin, end) in device addresses. Empty when begin == end.
struct AddressRange {
  std::uint64_t begin = 0, end = 0;
  bool contains(std::uint64_t address, std::uint64_t size) const noexcept {
    return address >= begin && address <= end && size <= end - address;
  }
};

/// `host` and `managed` memory has the same, untagged address on host and device (unified
/// addressing); all other kinds live at tagged addresses that host code cannot dereference.
/// `read_only` memory is device memory that kernels may only read for a while.
enum class AllocationKind : std::uint8_t {
  device,
  module_variable,
  constant,
  heap,
  host,
  managed,
  read_only,
};

/// A live allocation.
struct Allocation {
  AddressRange range;
  AllocationKind kind = AllocationKind::device;
  std::string label;
};

/// Thread-safe. Allocations are page aligned. A guard gap after each is at least as long as the
/// allocation (and 4 KiB), and no allocation covers it; after memory accessible to host code it
/// faults. A freed address is not handed out again until every other address of its size class was
/// used, so use-after-free stays recognisable. Fresh memory reads as zero; freed memory goes back
/// to the operating system. Packed blocks differ: see allocate_packed().
///
/// Every live allocation of host or managed memory, or of more than 512 KiB, takes two entries of
/// the process's memory map, so Linux's default of 65530 entries allows about 32000 of those.
class Memory {
 public:
  /// Reserves address space, no memory: sixteen times the capacity or more. If this is above half
  /// of the process's limit, the capacity is a half, a quarter, ... of `capacity_bytes`, at least
  /// `least_bytes`. Throws OutOfMemory if even this is not available.
  Memory(std::uint64_t capacity_bytes, std::uint64_t least_bytes);
  /// With exactly this capacity.
  explicit Memory(std::uint64_t capacity_bytes) : Memory(capacity_bytes, capacity_bytes) {}
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// Address of fresh memory, or nothing when the capacity is used up (host memory does not count
  /// towards it) or `bytes` is 0.
  std::optional<std::uint64_t> allocate(std::uint64_t bytes, AllocationKind kind,
                                        std::string label = {});
  /// A block of the device heap of up to kLargestPacked bytes: aligned to 64 bytes, followed by a
  /// gap as long as itself and 32 bytes, in pages shared with others. It holds earlier contents,
  /// and its address may come again after 4096 others of its size were freed (of more than 2 KiB:
  /// as many as take 16 MiB).
  std::optional<std::uint64_t> allocate_packed(std::uint64_t bytes);
  static constexpr std::uint64_t kLargestPacked = 32 << 10;
  /// False when `address` is not the start of a live allocation made by one of these. The caller
  /// ensures that no running work still uses the memory. Only blocks of the device heap may go
  /// while kernels run: host accesses to their pages do not fault until reclaim().
  bool free(std::uint64_t address);
  /// From now on kernels may only read the device memory that begins at `address`, or write it
  /// again. Copies and fills of the host go on. False when no such allocation is live. Only while
  /// nothing runs.
  bool set_read_only(std::uint64_t address, bool is_read_only);
  /// Gives back the pages of freed heap blocks. Only while nothing runs.
  void reclaim();

  /// Makes host memory of the caller known to the device (page-locking it, in CUDA's words).
  /// False when it overlaps something known. The caller keeps it alive until release_host().
  bool adopt_host(std::uint64_t address, std::uint64_t bytes);
  /// False when `address` was not given to adopt_host().
  bool release_host(std::uint64_t address);

  /// The live allocation around `address` (read-only ones carry writable = false), else an empty
  /// range. Lock-free but for adopted host memory; handlers cache the result per site.
  AddressRange find(std::uint64_t address, bool* writable = nullptr) const noexcept;
  /// The same without the neighbours.
  AddressRange search(std::uint64_t address, bool* writable = nullptr) const noexcept;
  /// Whether an own constant variable lies at the address.
  bool is_constant(std::uint64_t address) const noexcept;
  /// An own allocation with kind and label; slower.
  std::optional<Allocation> lookup(std::uint64_t address) const;
  /// Bumped whenever an allocation ends: cached ranges of an older generation are stale. Never 0.
  /// Inline because handlers ask at every access.
  std::uint64_t generation() const noexcept { return generation_.load(std::memory_order_acquire); }

  /// Memories with allocations visible in find() and describe() here: peers, and the host's; the
  /// host's comes first. They outlive this one's use.
  void set_neighbours(std::vector<const Memory*> neighbours);
  /// Whether the address lies in this memory's reserved address space.
  bool covers(std::uint64_t address) const noexcept;
  /// For ends of allocations in a neighbour.
  void expire_cached_ranges() noexcept { generation_.fetch_add(1, std::memory_order_acq_rel); }

  /// For messages: "16 bytes past the end of the allocation of 4096 bytes at 0x..." or
  /// "inside an allocation of 4096 bytes at 0x... that was freed" (then *freed is set).
  std::string describe(std::uint64_t address, std::uint64_t size, bool* freed = nullptr) const;

  std::uint64_t used() const noexcept;      ///< bytes, in whole pages
  std::uint64_t capacity() const noexcept;  ///< bytes

 private:
  struct State;
  std::unique_ptr<State> state_;
  std::atomic<std::uint64_t> generation_{1};
};

}  // namespace kernwright::sim
