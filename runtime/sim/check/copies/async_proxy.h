// The work of the asynchronous proxy for a block: bulk copies, tensor copies and wgmma. These read
// and write memory until a thread waits for them.
#pragma once

#include "sim/check/copies/async_reads.h"
#include "sim/check/copies/copy_groups.h"
#include "sim/check/copies/wgmma_groups.h"
#include "sim/check/race/access.h"
#include "sim/exec/copy/watched_copy.h"
#include "sim/tensor_map.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace kernwright::sim {

class BlockCheck;

class AsyncProxy {
 public:
  explicit AsyncProxy(BlockCheck& check) : check_(check) {}

  AsyncReads reads;  ///< of this block's shared memory

  /// Before another block begins.
  void forget() {
    forget_stores();
    fenced_maps_.clear();
    products_.clear();
  }
  /// Stores without a wait end with the block.
  void forget_stores();

  // As those of Watcher.
  AsyncCopy copy_to(const Op* op, Warp& warp, int lane, std::uint64_t rank, const Piece& to,
                    const Piece& from);
  void copy_between(const Op* op, Warp& warp, int lane, const Piece& from, AsyncCopy& copy);
  void copy_from(const Op* op, Warp& warp, int lane, BulkStore store);
  void use_map(const Op* op, Warp& warp, int lane, std::uint64_t address);

  /// cp.async.bulk.commit_group and wait_group (.read) of the active lanes.
  void end_bulk_group(const Warp& warp);
  void wait_for_stores(Warp& warp, std::size_t left, bool reads_only);
  /// fence.proxy.tensormap::generic.acquire at the lanes' addresses.
  void fence_maps(const Op* op, const Warp& warp);
  /// A warp's wgmma, commit_group and wait_group.
  void wgmma(const Op* op, Warp& warp);
  void end_wgmma_group(const Warp& warp) { products_.close(warp.index); }
  void wait_for_wgmma(const Warp& warp, std::size_t left);
  /// A write to shared memory of `owner` that a copy or wgmma still reads, or may have read.
  void look_at_write(const WordAccess& access, const BlockCheck& owner, std::uint64_t begin,
                     std::uint64_t end);

 private:
  template <typename F>
  void restamp_global(const Piece& piece, F is, Shadow shadow);
  void write_by_copy(const Op* op, Warp& warp, int lane, std::uint64_t rank, const Piece& to,
                     Shadow copy_stamp);
  void end_read(Warp& warp, int lane, BulkStore& store);
  void end_store(const BulkStore& store, Shadow shadow);
  void read(const Op* op, Warp& warp, int lane, std::uint64_t at, std::uint32_t bytes,
            const BulkStore* to = nullptr);
  bool is_readable(const WordAccess& access, Shadow write);
  void look_at_source(const Op* op, Warp& warp, int lane, const LaneTouch& touch);
  std::array<Shadow, 4> byte_writes(const LaneTouch& touch, std::uint64_t word, Shadow write);
  Shadow map_write(std::uint64_t address);
  bool needs_fence(Shadow write, const Warp& warp) const;

  BlockCheck& check_;
  CopyGroups<BulkStore> stores_;
  WgmmaGroups products_;
  /// By address: the write shadows of a tensor map at the block's last fence for it.
  std::unordered_map<std::uint64_t, std::array<Shadow, kTensorMapBytes / 4>> fenced_maps_;
  Shadow before_ = 0;  ///< a write known to come before the one in question
};

}  // namespace kernwright::sim
