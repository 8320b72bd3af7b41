// One thread's bulk copy: its operands, their memory, findings.
#pragma once

#include "base/fault.h"
#include "sim/exec/copy/bulk_copies.h"
#include "sim/exec/copy/bulk_ops.h"
#include "sim/exec/copy/watched_copy.h"
#include "sim/exec/warp/lane_memory.h"
#include "sim/exec/warp/warp.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace kernwright::sim {

/// The end of a copy to shared memory, in one block.
struct BulkTarget {
  std::byte* data = nullptr;
  std::byte* mbarrier = nullptr;
  std::uint64_t offset = 0;          ///< of `data` in its block's shared memory
  std::uint64_t barrier_offset = 0;  ///< of `mbarrier`
  Block* block = nullptr;            ///< whose they are
  std::vector<AsyncCopy> checked;    ///< what the checks want to know again
};

struct BulkLane {
  const Op* op;
  Warp& warp;
  int lane;
  BulkForm form;

  /// The data of a later copy: the warp may run other code by then.
  struct Later {
    Warp* warp;
    std::uint32_t op_index;
    int lane;
    BulkForm form;
    BulkLane now() const { return {warp->code + op_index, *warp, lane, form}; }
  };
  Later later() const { return {&warp, warp.op_index(op), lane, form}; }

  std::uint32_t word(std::uint32_t reg) const { return warp.reg<std::uint32_t>(reg)[lane]; }
  std::uint16_t half(std::uint32_t reg) const { return warp.reg<std::uint16_t>(reg)[lane]; }
  /// The address in register `reg`, the `index`-th of the instruction, displacement included.
  std::uint64_t address(std::uint32_t reg, int index) const;
  /// The same of an address in shared memory, as seen from the block.
  std::uint64_t shared_address(std::uint32_t reg, int index) const;

  // Each reports errors and then returns false or null.
  bool fault(FaultKind kind, std::uint64_t at, std::uint64_t bytes, std::string message) const;
  std::byte* find(ptx::Space space, AccessKind kind, std::uint64_t at, std::uint64_t bytes,
                  std::uint64_t alignment) const;
  /// The targets in all blocks: one, or with multicast those of `mask`.
  bool find_targets(std::uint64_t target, std::uint64_t bytes, std::uint64_t alignment,
                    std::uint64_t mbarrier, std::uint32_t mask,
                    std::vector<BulkTarget>& found) const;
  Watcher* check() const { return warp.worker->check; }
  /// Reports an issued copy to the checks: `bytes` to each target, from `source` in global memory
  /// or nowhere.
  void note(std::vector<BulkTarget>& targets, std::span<const Piece> bytes,
            std::span<const Piece> source) const;
  /// Reports the arrival of `bytes` to the target's mbarrier.
  bool complete(const BulkTarget& target, std::uint64_t bytes) const;

  bool issue(BulkCopies::Move move) const;
  bool issue_in_group(BulkCopies::Move move) const;
};

/// cp.async.bulk.tensor, cp.reduce.async.bulk.tensor and cp.async.bulk.prefetch.tensor; the
/// prefetch only checks its operands (tensor_copy.cpp).
bool tensor_to_shared(const BulkLane& lane);
bool tensor_to_global(const BulkLane& lane);
bool tensor_prefetch(const BulkLane& lane);

}  // namespace kernwright::sim
