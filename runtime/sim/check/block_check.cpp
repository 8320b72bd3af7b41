// The checks of one block: where it begins and ends, and where its threads meet.
#include "sim/check/block_check.h"

namespace kernwright::sim {
namespace {

constexpr std::uint64_t kFenceCost = 1000;  ///< see Warp::charge()

}  // namespace

BlockCheck::BlockCheck(CheckedLaunch& launch, const WatchedBlocks& blocks)
    : ops(launch.program.ops.data()),
      sites(launch.program.site_ops.size()),
      init(launch.checks.init),
      race(launch.checks.race),
      sync(launch.checks.sync),
      parts(launch.program.kernel_orders_parts(blocks.kernel)),
      alone(launch.alone),
      loads(*this),
      shared(blocks.shared_bytes, race, race && !parts),
      where(launch),
      order(where, blocks.warps),
      rules(where, order, parts),
      findings(where),
      arrivals(findings),
      lost(where, findings, slow),
      regions(launch.shadow),
      unwritten(where, regions, shared, findings, slow),
      lanes(*this),
      copies(*this),
      races(*this),
      proxy(*this),
      cluster(*this),
      schedule(blocks.warps) {
  slow.set(SlowPath::kPauses, launch.seed != 0);
  if (init) unwritten.enable(blocks.shared_bytes, blocks.local_bytes);
}

BlockCheck::~BlockCheck() {
  proxy.forget_stores();
  findings.hand_over();
}

void BlockCheck::begin(const Block& block) {
  copies.forget();
  proxy.forget();
  unwritten.begin();
  lost.clear();
  loads.clear();
  where.begin(block);
  cluster.clear();
  // Shadows of blocks before would be taken for accesses from elsewhere in the cluster.
  if (where.clustered) {
    shared.clear();
    copies.forget_origins();
  }
  schedule.begin(where.launch.seed, block.linear_index);
  if (!order.begin(parts)) race = false;
  shared.begin_phase();
  shared.block_epoch = shared.read_epoch;
  shared.hidden.clear();
  if (!parts) return;
  shared.readers.clear();
  arrivals.clear();
}

void BlockCheck::located(const Op* op, Warp& warp, int lane, const LaneAccess& access) {
  if (!inside) accessed(op, warp, lane, access);
}

void BlockCheck::accessed(const Op* op, Warp& warp, int lane, const LaneAccess& access) {
  lanes.touch(op, warp, lane, access.kind, access.address, access.size, access.space);
}

void BlockCheck::new_tick() {
  if (loads.any && parts) [[unlikely]]
    loads.look(nullptr);
  shared.new_epoch();
  if (!order.advance()) race = false;
}

void BlockCheck::meet(const Op* op, Warp& warp, const std::uint32_t* members) {
  if (sync && members != nullptr) findings.members(op, warp, members);
  if (!race) return;
  if (loads.any) [[unlikely]]
    loads.look(&warp);
  new_tick();
  order.meet(warp, members);
}

void BlockCheck::fence(Warp& warp, Reach reach) {
  if (!race || !parts) return;
  warp.charge(kFenceCost);
  new_tick();
  order.fence(warp, reach);
}

void BlockCheck::fence_proxy(const Warp& warp) {
  if (!race) return;
  new_tick();
  order.fence_proxy(warp);
}

void BlockCheck::arrive(const Op* op, Warp& warp, std::uint32_t id, std::uint32_t group, bool wait,
                        bool counted) {
  arrivals.arrive(op, warp, id, group, sync && wait && !counted);
  if (wait || !race) return;
  new_tick();
  arrivals.ticks(id)[warp.index] = order.tick();
}

void BlockCheck::release(const Block& block, std::uint32_t id, const Barriers::One& barrier) {
  arrivals.release(id);
  if (!race) return;
  if (loads.any) [[unlikely]]
    loads.look(nullptr);
  new_tick();
  if (order.release(block, id, barrier, arrivals.ticks(id)) && !parts) shared.begin_phase();
}

}  // namespace kernwright::sim
