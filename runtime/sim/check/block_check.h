// The checks of one block in flight.
#pragma once

#include "sim/check/block_place.h"
#include "sim/check/checked_launch.h"
#include "sim/check/copies/async_copies.h"
#include "sim/check/copies/async_proxy.h"
#include "sim/check/flow/lost_values.h"
#include "sim/check/history/known_regions.h"
#include "sim/check/history/shared_history.h"
#include "sim/check/init/init_check.h"
#include "sim/check/lane_check.h"
#include "sim/check/order/barrier_arrivals.h"
#include "sim/check/order/block_order.h"
#include "sim/check/order/cluster_order.h"
#include "sim/check/order/random_schedule.h"
#include "sim/check/race/race_check.h"
#include "sim/check/race/rules.h"
#include "sim/check/race/speculated.h"
#include "sim/check/race/touch.h"
#include "sim/check/report/block_findings.h"
#include "sim/check/slow_path.h"
#include "sim/exec/warp/lane_memory.h"
#include "sim/exec/watcher.h"

#include <cstdint>
#include <string>
#include <utility>

namespace kernwright::sim {

/// Lives as long as its BlockRunner, on one host thread. Handlers read only the first fields; its
/// functions are for all other decisions. Parts constructed from a BlockCheck belong to it.
class BlockCheck final : public Watcher {
 public:
  BlockCheck(CheckedLaunch& launch, const WatchedBlocks& blocks);
  /// Hands its findings to the launch.
  ~BlockCheck() override;
  /// The checks of the warp's block.
  static BlockCheck& get(const Warp& warp) { return static_cast<BlockCheck&>(*warp.worker->check); }

  /// Forgets the block before it, except its accesses to global memory.
  void begin(const Block& block) override;

  const CheckedOp* ops = nullptr;  ///< by op index
  CheckSites sites;
  bool init = false, race = false, sync = false;
  bool parts = false;   ///< CheckedProgram::kernel_orders_parts()
  bool alone = false;   ///< no other worker runs blocks of the launch
  bool inside = false;  ///< a checked handler runs: locate() need not look
  SlowPath slow;
  SpeculatedLoads loads;  ///< in front: each access asks whether there are any
  SharedHistory shared;
  /// Records the postponed reads; set with the first of them.
  void (*replay)(BlockCheck& check) = nullptr;
  BlockPlace where;
  BlockOrder order;
  RaceRules rules;
  BlockFindings findings;
  BarrierArrivals arrivals;
  LostValues lost;
  KnownRegions regions;
  InitCheck unwritten;
  LaneCheck lanes;
  AsyncCopies copies;
  RaceCheck races;
  AsyncProxy proxy;
  ClusterOrder cluster;
  RandomSchedule schedule;  ///< under a seed

  const std::uint32_t* warp_order() override {
    return slow.pauses() ? schedule.warp_order() : nullptr;
  }
  /// Checked handlers make their own checks; these are for all other accesses.
  void located(const Op* op, Warp& warp, int lane, const LaneAccess& access) override;
  void accessed(const Op* op, Warp& warp, int lane, const LaneAccess& access) override;
  void used(const Op* op, Warp& warp, int lane, std::uint64_t address,
            std::uint32_t bytes) override {
    if (init) unwritten.use(op, warp, lane, address, bytes);
  }
  void allocated(std::uint64_t address, std::uint64_t bytes) override {
    if (init) where.launch.shadow.poison(address, bytes);
  }

  AsyncCopy copy_to(const Op* op, Warp& warp, int lane, std::uint64_t rank, const Piece& to,
                    const Piece& from) override {
    return proxy.copy_to(op, warp, lane, rank, to, from);
  }
  void copy_between(const Op* op, Warp& warp, int lane, const Piece& from,
                    AsyncCopy& copy) override {
    proxy.copy_between(op, warp, lane, from, copy);
  }
  void copied(std::uint64_t mbarrier, const AsyncCopy& copy) override {
    if (init || race) copies.end_bulk(mbarrier, copy);
  }
  void copy_from(const Op* op, Warp& warp, int lane, BulkStore store) override {
    proxy.copy_from(op, warp, lane, std::move(store));
  }
  void use_map(const Op* op, Warp& warp, int lane, std::uint64_t address) override {
    proxy.use_map(op, warp, lane, address);
  }
  void product_touched(const Op* op, const Warp& warp, std::string what,
                       std::uint32_t product) override {
    if (sync) findings.product(op, warp, std::move(what), product);
  }
  void end_phase(std::uint64_t mbarrier) override {
    if (init || race) copies.end_phase(mbarrier);
  }

  /// The checks of the block with this rank in the cluster; null if there is none or it has ended.
  BlockCheck* peer(std::uint64_t rank) const;
  void end_cluster_phase() override { cluster.end_phase(); }
  void pass_cluster(const Warp& warp, std::uint32_t who) override { cluster.pass(warp, who); }
  void end_cluster_arrivals(bool all_wait) override { cluster.end_arrivals(all_wait); }
  void end() override { cluster.end(); }

  // Order. All take the warp of the active lanes.
  void meet(const Op* op, Warp& warp, const std::uint32_t* members) override;
  void fence(Warp& warp, Reach reach);
  /// fence.proxy.async.
  void fence_proxy(const Warp& warp);
  void arrive(const Op* op, Warp& warp, std::uint32_t id, std::uint32_t group, bool wait,
              bool counted) override;
  void release(const Block& block, std::uint32_t id, const Barriers::One& barrier) override;

  void new_tick();
  /// Before any shadow of shared memory is looked at or changed.
  void settle_reads() {
    if (shared.late.count != 0) replay(*this);
  }

  /// The shadow of an access now, without bytes.
  Shadow get_stamp(const CheckedOp& info, std::uint32_t thread) const noexcept {
    const Shadow site = info.site < kMostSites ? info.site : kMostSites;
    return order.stamp | site << kSiteShift | thread;
  }
};

}  // namespace kernwright::sim
