// The passes of decode() over a lowered function before code generation, in this order:
// block_order(), mark_busy_waits(), simplify(), fuse(), assign_slots().
#pragma once

#include "sim/code/lower/lowered.h"

#include <cstdint>
#include <vector>

namespace kernwright::sim {

/// Numbers of the reachable blocks in reverse post-order; the blocks of a loop come before the code
/// after it. The scheduler runs the lanes with the lowest position first, so this order makes lanes
/// wait at points where they can meet again.
std::vector<std::uint32_t> block_order(const Lowered& function);

/// Sets LoweredBlock::busy_waits in the blocks of loops that only wait for shared memory. Such a
/// loop changes no memory. Lanes leave it only by branches, and each condition comes, in the
/// branch's own block, from an mbarrier's test or a load of shared memory and from values not
/// changed by the loop. The loop may also count or read the clock. When everything that could
/// change this memory is in such loops too, they never end.
void mark_busy_waits(Lowered& function, const std::vector<std::uint32_t>& order);

/// The code moved by simplify() to the front of a function.
struct Prologue {
  static constexpr std::uint32_t kNone = ~0u;
  std::uint32_t block = kNone;         ///< number of the new block; kNone when nothing moved
  std::vector<std::uint32_t> results;  ///< registers that keep their values as long as the frame
};

/// Works on registers with one write, before every read. Copies of them are replaced by their
/// sources. Instructions of an entry function with the same result in every block of a launch (from
/// parameters, thread indices, the launch's shape and constants) move into a block of their own
/// before `order`; it runs once for each new frame. Moved or removed ops cannot fault, wait or be
/// seen by other threads; each op keeps its original instruction.
Prologue simplify(Lowered& function, std::vector<std::uint32_t>& order, bool is_entry);

/// mul.wide and the additions of a base to its product become one op each, if nothing else reads
/// the product: d = base + index * bytes. If only up to three accesses of so many bytes a lane read
/// the address, the op goes to each of them, and the pair gets a common handler for full warps
/// (LoweredOp::pair_handler). Runs after simplify(). Each op keeps its original instruction, and
/// faults stay with the access.
void fuse(Lowered& function, const std::vector<std::uint32_t>& order);

/// Most bytes of one function's registers, constants and call parameters for a warp: 1 MiB a
/// thread.
inline constexpr std::uint64_t kMaxFrameBytes = std::uint64_t{32} << 20;

/// The layout of a frame, in bytes from its start.
struct FrameLayout {
  std::vector<std::uint32_t> registers;  ///< per virtual register; unused ones share the sink
  std::vector<std::uint32_t> constants;
  std::vector<std::uint32_t> areas;
  std::vector<std::uint32_t> live_at_entry;  ///< registers that may be read before they are written
  std::uint64_t bytes = 0;  ///< above kMaxFrameBytes: too many, and no place is right
};

/// Bytes of the slot of one register of `lane_bytes` (kPredicateWidth: a predicate).
std::uint32_t slot_bytes(std::uint8_t lane_bytes) noexcept;

/// Registers possibly read before they are written.
std::vector<std::uint32_t> live_at_entry(const Lowered& function,
                                         const std::vector<std::uint32_t>& order);

/// Liveness over blocks (bit sets), then a linear scan over the blocks in `order`. Registers of one
/// width get the same slot if they are never alive together. Registers of one op never share, and
/// those in `kept` share with no later one.
FrameLayout assign_slots(const Lowered& function, const std::vector<std::uint32_t>& order,
                         const std::vector<std::uint32_t>& kept = {});

}  // namespace kernwright::sim
