// What decode() does to a lowered function before it gives it code, in this order: block_order(),
// mark_busy_waits(), simplify(), fuse(), assign_slots().
#pragma once

#include "sim/code/lower/lowered.h"

#include <cstdint>
#include <vector>

namespace kernwright::sim {

/// Numbers of the reachable blocks in reverse post-order, the blocks of a loop before what follows
/// the loop. The scheduler runs the lanes with the lowest position first, so this order makes lanes
/// wait where they can meet again.
std::vector<std::uint32_t> block_order(const Lowered& function);

/// Sets LoweredBlock::busy_waits in the blocks of loops that change no memory and that lanes leave
/// by branches alone whose conditions come, in the branch's own block, from what an mbarrier's test
/// or a load of shared memory says, and from values that the loop does not change. Whatever else
/// such a loop does, counting or looking at the clock, once all that may change that memory is in
/// such loops too they go on for ever.
void mark_busy_waits(Lowered& function, const std::vector<std::uint32_t>& order);

/// What simplify() moved in front of a function's code.
struct Prologue {
  static constexpr std::uint32_t kNone = ~0u;
  std::uint32_t block = kNone;         ///< number of the new block; kNone when nothing moved
  std::vector<std::uint32_t> results;  ///< registers that keep their values as long as the frame
};

/// Works on registers that are written once, before every read. Their copies are read in place of
/// them; and of an entry function's instructions those that compute the same in every block of a
/// launch (from parameters, thread indices, the launch's shape and constants) move into a block of
/// their own, which precedes `order` and runs when a frame is new. Nothing that moves or goes can
/// fault, wait or be seen by other threads; each op keeps the instruction that it came from.
Prologue simplify(Lowered& function, std::vector<std::uint32_t>& order, bool is_entry);

/// mul.wide and the additions to a base that alone read its product become one op each,
/// d = base + index * bytes. Where up to three accesses of that many bytes a lane read the address
/// and nobody else does, the op goes to each of them, and the pair gets a handler that does both in
/// full warps (LoweredOp::with_next).
/// Shuffles whose distance is a constant get a handler that knows it. Runs behind simplify(). Each
/// op keeps the instruction that it came from, and faults stay with the access.
void fuse(Lowered& function, const std::vector<std::uint32_t>& order);

/// Of the registers, constants and call parameters of one function for a warp: 1 MiB a thread.
inline constexpr std::uint64_t kMaxFrameBytes = std::uint64_t{32} << 20;

/// Where everything of a frame lies, in bytes from its start.
struct FrameLayout {
  std::vector<std::uint32_t> registers;  ///< per virtual register; unused ones share the sink
  std::vector<std::uint32_t> constants;
  std::vector<std::uint32_t> areas;
  std::vector<std::uint32_t> live_at_entry;  ///< registers that may be read before they are written
  std::uint64_t bytes = 0;  ///< above kMaxFrameBytes: too many, and no place is right
};

/// Bytes of the slot of one register of `lane_bytes` (kPredicateWidth: a predicate).
std::uint32_t slot_bytes(std::uint8_t lane_bytes) noexcept;

/// Registers that may be read before they are written.
std::vector<std::uint32_t> live_at_entry(const Lowered& function,
                                         const std::vector<std::uint32_t>& order);

/// Liveness over blocks (bit sets), then a linear scan over the blocks in `order` that gives
/// registers of one width, which are never alive together, the same slot. Registers of one op never
/// share, and those in `kept` share with none that comes later.
FrameLayout assign_slots(const Lowered& function, const std::vector<std::uint32_t>& order,
                         const std::vector<std::uint32_t>& kept = {});

}  // namespace kernwright::sim
