// The init check of a block: unwritten bytes and their uses.
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
  /// Sets `slow` while some lane holds an unwritten loaded value.
  InitCheck(const BlockPlace& place, KnownRegions& regions, SharedHistory& history,
            BlockFindings& findings, SlowPath& slow)
      : place_(place), regions_(regions), history_(history), findings_(findings), slow_(slow) {}

  std::uint64_t* shared = nullptr;  ///< bitmap of shared memory; null: not checked (poison.h)
  std::uint64_t* local = nullptr;   ///< of local memory, bytes in the order of Worker::local

  /// Makes the bitmaps.
  void enable(std::uint64_t shared_bytes, std::uint64_t local_bytes);
  /// A block begins.
  void begin();

  /// Bit i: byte i of the access is unwritten.
  std::uint64_t unwritten(const Warp& warp, int lane, const LaneTouch& touch);
  /// One lane's read of some unwritten bytes. Returns the bytes, a bit each, to count as written
  /// from now on: each is reported once.
  std::uint64_t judge(const Op* op, Warp& warp, int lane, const LaneTouch& touch);
  /// One lane's access; `at` is the place of its bytes in the bitmap.
  void touch(const Op* op, Warp& warp, int lane, const LaneTouch& touch, std::uint64_t* map,
             std::uint64_t at);
  /// A read of shared memory by the asynchronous proxy. If a store moves it unchanged, its target
  /// `to` becomes as unwritten as the source; null: the target is unknown.
  void read_by_proxy(const Op* op, Warp& warp, int lane, const LaneTouch& touch,
                     const BulkStore* to);
  /// A builtin function uses a value; in local memory it must be written.
  void use(const Op* op, Warp& warp, int lane, std::uint64_t address, std::uint32_t bytes);
  /// The copy of a device function's parameter block to local memory.
  void note_parameters(const Op* op, const Warp& warp);

  /// A load with LoadedBytes::later runs anew.
  void forget_loads(const Op* op, const Warp& warp);
  /// The active lanes use such loads' values (CheckedOp::uses); a store at these addresses.
  void settle_loads(const Op* op, Warp& warp, ptx::Space space, const std::uint64_t* addresses);

  bool has_copies() const noexcept { return !copies_.empty(); }
  /// After the store: its copy is as unwritten as before.
  void end_copies(const Warp& warp);
  /// The target of a copy is written, but where parts of its source in global memory are not.
  void write_target(const AsyncCopy& copy);

 private:
  /// The old contents under a lane's store of unwritten bytes.
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
