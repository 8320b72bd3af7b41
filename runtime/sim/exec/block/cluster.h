// Blocks that run side by side: their shared memory, their barrier, their asynchronous copies.
#pragma once

#include "sim/exec/copy/bulk_copies.h"
#include "sim/exec/warp/warp.h"

#include <cstdint>
#include <string>
#include <vector>

namespace kernwright::sim {

struct ClusterMember;
struct Program;

/// Addresses in shared memory have the rank of their block above the offset. Handlers and checks
/// take them as seen_from_block() gives them.
inline constexpr int kRankShift = 24;
inline constexpr std::uint64_t kRankMask = 0xff;
inline constexpr std::uint64_t kRankLimit = 0x80;  ///< no rank is as large
inline constexpr std::uint64_t kOffsetMask = (std::uint64_t{1} << kRankShift) - 1;

/// A block launched without clusters is a cluster of its own. The blocks of one cluster run on one
/// host thread in turn, so nothing here needs a lock.
struct Cluster {
  std::vector<ClusterMember*> members;  ///< by rank
  /// Number of ended phases of barriers in shared memory: waiting threads check again.
  std::uint64_t phases = 0;
  int patience = 0;  ///< how often waits for an mbarrier may still run out before a phase ends
  std::uint64_t patient_phases = ~std::uint64_t{0};

  /// Releases the warps at barrier.cluster when all live threads of all blocks arrived.
  bool release();
};

/// The cluster's data about a block. Owned by its BlockRunner.
struct ClusterMember {
  Cluster* cluster = nullptr;
  Block* block = nullptr;
  std::uint32_t rank = 0;
  bool exited = false;  ///< all threads have; its shared memory must not be used any more
  std::vector<std::uint32_t> arrived;  ///< per warp: lanes that arrived in the barrier's open phase
  std::vector<std::uint32_t> passed;   ///< per warp: lanes whose phase ended and that did not wait
  std::uint64_t seen_phases = 0;
  std::uint32_t busy_rounds = 0;  ///< in a row, with waits alone
  BulkCopies copies;              ///< asynchronous ones that this block issued

  /// A block of `warps` warps begins.
  void reset(std::uint32_t warps);
  /// Wakes threads at mbarrier.try_wait when some phase ended since the last call.
  bool wake();
  /// Ends waits at mbarrier.try_wait without success, as a GPU's time limit does. False when
  /// nobody waits.
  bool expire() { return end_waits(true); }

 private:
  bool end_waits(bool give_up);
};

/// Host address of `address` in .shared::cluster, seen from `block`; null if it does not exist or
/// belongs to an exited block: then `why` has the reason, unless it is null.
std::byte* cluster_address(const Block& block, std::uint64_t address, std::uint64_t bytes,
                           std::string* why = nullptr);

/// The other block of the cluster named by an address in .shared::cluster, for a report; empty for
/// none.
std::string other_block_at(const Block& block, std::uint64_t address);

/// Reports a rank of mapa outside the cluster. Null.
const Op* report_rank(const Op* op, Warp& warp, int lane, std::uint32_t rank);

/// barrier.cluster.arrive for the active lanes. Null after a finding.
const Op* cluster_arrive(const Op* op, Warp& warp);
/// barrier.cluster.wait for the active lanes.
const Op* cluster_wait(const Op* op, Warp& warp);

/// Nobody can run, or all poll in vain, and no barrier is complete: makes this the block's fault,
/// with all waiting threads and their places, in the other blocks of its cluster too.
void report_deadlock(ClusterMember& member, const Program& program);

/// mbarrier.try_wait found the phase of all active lanes unfinished: they wait until some phase
/// ends. True when they waited before and the time is over: then the instruction gives up.
bool mbarrier_gives_up(const Op* op, Warp& warp);

}  // namespace kernwright::sim
