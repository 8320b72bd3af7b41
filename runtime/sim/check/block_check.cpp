// The checks of one block: where it begins and ends.
#include "sim/check/block_check.h"

#include "sim/check/report/finding_text.h"
#include "sim/code/program.h"
#include "sim/exec/block/cluster.h"
#include "sim/exec/warp/lane_memory.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace kernwright::sim {
using ptx::Space;

BlockCheck::BlockCheck(CheckedLaunch& launch, const WatchedBlocks& blocks)
    : ops(launch.program.ops.data()),
      init(launch.checks.init),
      race(launch.checks.race),
      sync(launch.checks.sync),
      parts(launch.program.kernel_orders_parts(blocks.kernel)),
      alone(launch.alone),
      pauses(launch.seed != 0),
      loads(*this),
      shared(blocks.shared_bytes, race, race && !parts),
      where(launch),
      order(where, blocks.warps),
      rules(where, order, parts),
      findings(where),
      regions(launch.shadow),
      unwritten(where, regions, findings),
      copies(*this),
      races(*this),
      proxy(*this),
      cluster(*this),
      schedule_(blocks.warps),
      site_store_(launch.program.site_ops.size() + 1) {
  sites = site_store_.data();
  if (launch.program.site_ops.size() > kMostSites) {
    site_store_.resize(kMostSites + 1);
    sites = site_store_.data();
  }
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
  lost_.clear();
  loads.clear();
  note_followed();
  where.begin(block);
  cluster.clear();
  // Shadows of blocks before would be taken for accesses from elsewhere in the cluster.
  if (where.clustered) {
    shared.clear();
    copies.forget_origins();
  }
  schedule_.begin(where.launch.seed, block.linear_index);
  if (!order.begin(parts)) race = false;
  shared.begin_phase();
  shared.block_epoch = shared.read_epoch;
  shared.hidden.clear();
  if (!parts) return;
  shared.readers.clear();
  arrivals_.fill({});
}

}  // namespace kernwright::sim
