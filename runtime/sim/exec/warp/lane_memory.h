// Access to device memory by single threads: every state space, fully checked. The slow path of the
// memory handlers and the only path of built-in functions.
#pragma once

#include "sim/exec/warp/warp.h"
#include "sim/mem/access_kind.h"
#include "sim/ptx/types.h"

#include <cstddef>
#include <cstdint>

namespace kernwright::sim {

/// The space of a generic address; shared memory may be another block's of the cluster.
ptx::Space window_space(std::uint64_t address) noexcept;

/// An address of the program as handlers and checks take it: in the block's own shared memory it is
/// the offset alone, in another block's the rank plus one is above it. Addresses in other memory
/// stay.
std::uint64_t seen_from_block(const Warp& warp, ptx::Space space, std::uint64_t address) noexcept;

/// One access of one lane, at an address as seen from the block. `space` generic means: the
/// address's window decides.
struct LaneAccess {
  ptx::Space space = ptx::Space::generic;
  AccessKind kind = AccessKind::read;
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  std::uint64_t alignment = 1;  ///< 1 = none required
};

/// Host address of the bytes, or null after warp.fault() has recorded why they cannot be accessed
/// (bounds, use after free, alignment, read-only memory). The pointer is good until the allocation
/// is freed; for shared and local memory until the block ends.
std::byte* locate(const Op* op, Warp& warp, int lane, const LaneAccess& access);

/// The same without a report: null when the access is not allowed.
std::byte* try_locate(const Warp& warp, int lane, const LaneAccess& access) noexcept;

/// Adds an access to global memory to the launch's access log; there must be one.
void note_access(const Warp& warp, AccessKind kind, std::uint64_t address, std::uint64_t size);

/// Records the error of an access refused by try_locate(). Always returns null.
const Op* report_access(const Op* op, Warp& warp, int lane, const LaneAccess& access);

/// Bytes accessible from `address`, as seen from the block, on, up to `limit`; 0 for none.
std::uint64_t accessible_bytes(const Warp& warp, int lane, std::uint64_t address,
                               std::uint64_t limit) noexcept;

/// Whether an address in the window of shared memory, as seen from the block, is its own.
bool is_local_shared(const Warp& warp, std::uint64_t address);

/// Whether a generic address lies in a __constant__ variable.
bool is_constant(const Warp& warp, std::uint64_t address);

}  // namespace kernwright::sim
