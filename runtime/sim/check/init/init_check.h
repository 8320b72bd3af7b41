// The init check of a block: which bytes nobody wrote, and who uses them.
#pragma once

#include "sim/check/block_place.h"
#include "sim/check/history/known_regions.h"
#include "sim/check/history/shared_history.h"
#include "sim/check/init/unwritten_loads.h"
#include "sim/check/report/block_findings.h"
#include "sim/check/slow_path.h"
#include "sim/exec/copy/watched_copy.h"

#include <cstdint>
#include <vector>

namespace kernwright::sim {

class InitCheck {
 public:
  /// Sets `slow` while some lane holds what it loaded where nobody wrote.
  InitCheck(const BlockPlace& place, KnownRegions& regions, SharedHistory& history,
            BlockFindings& findings, SlowPath& slow)
      : place_(place), regions_(regions), history_(history), findings_(findings), slow_(slow) {}

  std::uint64_t* shared = nullptr;  ///< bitmap of shared memory; null: nobody asks (poison.h)
  std::uint64_t* local = nullptr;   ///< of local memory, bytes in the order of Worker::local

  /// Makes the bitmaps.
  void enable(std::uint64_t shared_bytes, std::uint64_t local_bytes);
  /// A block begins.
  void begin();

  /// Bit i: nothing has written byte i of what is touched.
  std::uint64_t unwritten(const Warp& warp, int lane, const LaneTouch& touch);
  /// One lane's read of bytes some of which nobody wrote. Returns those that shall count as written
  /// from now on, a bit each: the same is said once.
  std::uint64_t judge(const Op* op, Warp& warp, int lane, const LaneTouch& touch);
  /// One lane's access; `at` is the place of its bytes in the bitmap.
  void touch(const Op* op, Warp& warp, int lane, const LaneTouch& touch, std::uint64_t* map,
             std::uint64_t at);
  /// The asynchronous proxy reads shared memory. The target of a store that moves it as it is,
  /// `to`, will be as unwritten where some of it is written; null: nobody knows where it goes.
  void read_by_proxy(const Op* op, Warp& warp, int lane, const LaneTouch& touch,
                     const BulkStore* to);
  /// A builtin function uses a value, which has to be written where that is local memory.
  void use(const Op* op, Warp& warp, int lane, std::uint64_t address, std::uint32_t bytes);
  /// The copy of a device function's parameter block to local memory.
  void note_parameters(const Op* op, const Warp& warp);

  /// A load with LoadedBytes::later runs anew.
  void forget_loads(const Op* op, const Warp& warp);
  /// The active lanes use what such loads read (CheckedOp::uses); a store at these addresses.
  void settle_loads(const Op* op, Warp& warp, ptx::Space space, const std::uint64_t* addresses);

  bool has_copies() const noexcept { return !copies_.empty(); }
  /// Behind the store: what it copied is as unwritten as before.
  void end_copies(const Warp& warp);
  /// The target of a copy is written, but where parts of its source in global memory are not.
  void write_target(const AsyncCopy& copy);

 private:
  /// What a lane's store is about to overwrite with unwritten bytes.
  struct Copy {
    ptx::Space space = ptx::Space::local;
    int lane = 0;
    std::uint64_t address = 0, bits = 0;
  };

  bool lies_in_object(const Warp& warp, int lane, const LaneTouch& touch, std::uint32_t alignment);
  void note_load(const Op* op, const Warp& warp, int lane, const LaneTouch& touch,
                 std::uint64_t bits, bool padded, bool partly);
  void settle_load(const Op* op, Warp& warp, const ValueUse& use, const UnwrittenLoad& load,
                   ptx::Space space, const std::uint64_t* addresses);
  bool move_on(const Warp& warp, int lane, bool padded, ptx::Space to, std::uint64_t address,
               int shift, std::uint64_t bits);

  const BlockPlace& place_;
  KnownRegions& regions_;
  SharedHistory& history_;
  BlockFindings& findings_;
  SlowPath& slow_;
  std::vector<std::uint64_t> shared_bits_, local_bits_;
  UnwrittenLoads loads_;
  std::vector<Copy> copies_;
};

}  // namespace kernwright::sim
