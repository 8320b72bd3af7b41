// The one interface for watching blocks while they run: the checks, traces, counts.
#pragma once

#include "sim/exec/block/barriers.h"
#include "sim/exec/copy/watched_copy.h"
#include "sim/exec/warp/lane_memory.h"
#include "sim/exec/warp/warp.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace kernwright::sim {

/// Watches the blocks of one BlockRunner, on its host thread. Reports by ops' handlers are a matter
/// between them and a watcher; the rest of this folder reports through these functions. All of them
/// may be ignored.
class Watcher {
 public:
  Watcher() = default;
  virtual ~Watcher();
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  /// A block begins.
  virtual void begin(const Block&) {}
  /// The calling host thread runs the block from now on.
  virtual void attach() {}
  /// All threads of the block have exited.
  virtual void end() {}
  /// The warps of the block in the order of their next run; null: by number.
  virtual const std::uint32_t* warp_order() { return nullptr; }

  /// locate() found the bytes of an access by one lane. `space` generic: the address decides.
  virtual void located(const Op*, Warp&, int /*lane*/, const LaneAccess&) {}
  /// The same, for an instruction with reports of its own.
  virtual void accessed(const Op*, Warp&, int /*lane*/, const LaneAccess&) {}
  /// A builtin function uses the bytes at this generic address.
  virtual void used(const Op*, Warp&, int /*lane*/, std::uint64_t /*address*/,
                    std::uint32_t /*bytes*/) {}
  /// Device code allocated memory.
  virtual void allocated(std::uint64_t /*address*/, std::uint64_t /*bytes*/) {}
  /// A lane printed.
  virtual void printed(const Warp&, int /*lane*/, std::string_view /*text*/) {}

  /// Lanes arrive at a block barrier, before it may be complete.
  virtual void arrive(const Op*, Warp&, std::uint32_t /*id*/, std::uint32_t /*lanes*/,
                      bool /*wait*/, bool /*counted*/) {}
  /// The barrier is complete; the waiting threads go on.
  virtual void release(const Block&, std::uint32_t /*id*/, const Barriers::One&) {}
  /// The warp's active lanes did a *.sync instruction. `members` as for Warp::converge(); null:
  /// everybody.
  virtual void meet(const Op*, Warp&, const std::uint32_t* /*members*/) {}

  /// All have arrived at the cluster's barrier. For one block of the cluster.
  virtual void end_cluster_phase() {}
  /// All threads of the cluster have arrived. `all_wait`: those of the block are about to go on.
  virtual void end_cluster_arrivals(bool /*all_wait*/) {}
  /// These lanes go on behind the cluster's barrier.
  virtual void pass_cluster(const Warp&, std::uint32_t /*lanes*/) {}

  /// One lane issues a bulk copy to shared memory of the block with this rank, `from` global memory
  /// (or nowhere). The result goes to the block's copied() when the bytes have arrived.
  virtual AsyncCopy copy_to(const Op*, Warp&, int /*lane*/, std::uint64_t /*rank*/,
                            const Piece& /*to*/, const Piece& /*from*/) {
    return {};
  }
  /// The copy, of this block's thread, reads shared memory of this block.
  virtual void copy_between(const Op*, Warp&, int /*lane*/, const Piece& /*from*/, AsyncCopy&) {}
  /// The mbarrier at this offset received the copy's byte count.
  virtual void copied(std::uint64_t /*mbarrier*/, const AsyncCopy&) {}
  /// One lane issues a bulk copy from shared to global memory; only its pieces are looked at.
  virtual void copy_from(const Op*, Warp&, int /*lane*/, BulkStore) {}
  /// A phase of the mbarrier at this offset of shared memory ended.
  virtual void end_phase(std::uint64_t /*mbarrier*/) {}
  /// A tensor copy reads the map at this generic address.
  virtual void use_map(const Op*, Warp&, int /*lane*/, std::uint64_t /*address*/) {}
  /// The op touches a register of a wgmma in flight, of op `product`; `what` names the register.
  virtual void product_touched(const Op*, const Warp&, std::string /*what*/,
                               std::uint32_t /*product*/) {}
};

/// A watcher's knowledge of the blocks before the first begins.
struct WatchedBlocks {
  std::uint32_t kernel = 0;  ///< index into Program::functions
  std::uint32_t warps = 0;
  std::uint64_t shared_bytes = 0;
  std::uint64_t local_bytes = 0;  ///< of all threads of a block
};

/// One watched launch: gives each BlockRunner its watcher. Thread-safe.
class LaunchWatcher {
 public:
  explicit LaunchWatcher(std::uint64_t its_seed = 0) : seed(its_seed) {}
  virtual ~LaunchWatcher();
  LaunchWatcher(const LaunchWatcher&) = delete;
  LaunchWatcher& operator=(const LaunchWatcher&) = delete;

  virtual std::unique_ptr<Watcher> watch(const WatchedBlocks& blocks) = 0;

  const std::uint64_t seed;  ///< chooses who goes on; 0: as without a watcher
};

}  // namespace kernwright::sim
