// wgmma reads its matrices from shared memory until a warp waits for its group.
#include "sim/check/block_check.h"
#include "sim/check/copies/async_proxy.h"
#include "sim/code/wgmma_matrix.h"
#include "sim/exec/warp/scheduler.h"
#include "sim/exec/warp/warpgroup.h"

#include <bit>

namespace kernwright::sim {

void AsyncProxy::wgmma(const Op* op, Warp& warp) {
  const CheckedOp& info = check_.ops[warp.op_index(op)];
  const int lane = std::countr_zero(warp.mask);
  const std::uint32_t w = warp.index;
  std::uint32_t& group = products_.open(w);
  if (check_.race && group == 0) {
    group = reads.begin(
        check_.get_stamp(info, w * std::uint32_t{kLanes} + static_cast<std::uint32_t>(lane)) |
        kAllBytes);
  }
  before_ = 0;
  const auto read_rows = [&](const SharedMatrix& matrix, unsigned row_block, unsigned k_blocks) {
    for (unsigned k = 0; k < k_blocks; ++k) {
      for (unsigned i = 0; i < 8; ++i) {
        const std::uint64_t at = matrix.chunk(row_block, k, i);
        read(op, warp, lane, at, kMatrixChunk);
        if (check_.race) reads.add(group, at, kMatrixChunk);
      }
    }
  };
  if ((op->flags & kRegisters) == 0) {
    const SharedMatrix a(warp.reg<std::uint64_t>(op->a)[lane], (op->flags & kTransposeA) != 0);
    for (unsigned r = 0; r < 2; ++r) read_rows(a, 2 * (w % kWarpgroupWarps) + r, 2);
  }
  const SharedMatrix b(warp.reg<std::uint64_t>(op->b)[lane], (op->flags & kTransposeB) != 0);
  for (unsigned n = 0; n < info.tiles; ++n) read_rows(b, n, b_depth(op->flags));
}

void AsyncProxy::wait_for_wgmma(const Warp& warp, std::size_t left) {
  if (!products_.wait(warp.index, left, check_.order.tick(), reads)) return;
  if (!check_.race) return;
  if (!check_.where.clustered) {
    reads.drop_if([&](const AsyncRead& read) {
      return read.ended != 0 && read.ended < get_tick(check_.order.floor);
    });
  }
}

}  // namespace kernwright::sim
